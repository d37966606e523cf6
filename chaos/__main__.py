"""`python -m chaos`: inject faults for some minutes, and check that the promises are kept."""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
from collections.abc import Coroutine
from dataclasses import replace
from typing import Annotated, Any

import typer

from chaos.broken import Switch, checked_switch
from chaos.progress import RunProgress
from chaos.report import as_json, show, show_totals
from chaos.run import Plan, Result, run
from forager.cli.failures import exit_code_of
from forager.cli.options import Flags
from forager.cli.output import show_json
from forager.logs import configure_logs

VIOLATED = 1
FAULTS_PER_MINUTE = 30

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=False)


@app.command()
def chaos(
    minutes: Annotated[float, typer.Option(min=0, help="Duration of the fault injection.")] = 2.0,
    seed: Annotated[int | None, typer.Option(help="Repeat the faults of an earlier run.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Number of runs; each uses the next seed.")] = 1,
    faults: Annotated[
        int | None, typer.Option(min=0, help="Number of faults.", show_default="30 per minute")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=20, help="Number of workers.")] = 3,
    pages: Annotated[int, typer.Option(min=40, help="Number of pages of the crawled site.")] = 3000,
    load: Annotated[int, typer.Option(min=0, max=256, help="Processes that load the cores.")] = 0,
    switch: Annotated[
        str | None,
        typer.Option("--break", help=f"Break a promise on purpose: {', '.join(Switch)}."),
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    keep: Annotated[bool, typer.Option(help="Keep the database and the logs.")] = False,
) -> None:
    """Crawl a site of thousands of pages while processes are killed, frozen and disconnected.

    Everything runs on this machine and is removed at the end. Exit code 1: a promise was broken.
    """
    configure_logs("critical")
    plan = Plan(
        seed=secrets.randbelow(1_000_000) if seed is None else seed,
        seconds=minutes * 60,
        faults=round(minutes * FAULTS_PER_MINUTE) if faults is None else faults,
        workers=workers,
        pages=pages,
        load=load,
        switch=checked_switch(switch) or "",
        until_violation=switch is not None,
        keep=keep,
    )
    results = [_run(replace(plan, seed=plan.seed + n), as_json_) for n in range(runs)]
    if runs > 1 and not as_json_:
        show_totals(results)
    if any(result.violations for result in results):
        raise typer.Exit(VIOLATED)


def _run(plan: Plan, in_json: bool) -> Result:
    with RunProgress(plan) as progress:
        result = asyncio.run(_until_stopped(run(plan, progress.show_progress)))
    if in_json:
        show_json(as_json(result))
    else:
        show(result)
    return result


async def _until_stopped(work: Coroutine[Any, Any, Result]) -> Result:
    """End a run on SIGTERM and SIGHUP as on Ctrl-C: all processes that it started are stopped."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def main() -> None:
    command = typer.main.get_command(app)
    try:
        code = command.main(prog_name="python -m chaos", standalone_mode=False)
    except BaseException as error:
        code = exit_code_of(error, Flags({"log_level": "debug"}))  # with a traceback
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
