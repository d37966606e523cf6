"""`forager doctor`: is everything well, and if not, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli import output
from forager.cli.failures import FAILED
from forager.cli.flags import flags_of
from forager.cli.options import AsJson
from forager.cli.output import clean
from forager.cli.progress import Steps
from forager.cli.running import run
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.doctor import Check
    from forager.jobs.job import Job

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}
COLUMN = 14


def doctor(
    context: typer.Context,
    job: Annotated[bool, typer.Option("--job", help="Also run a real job, a small one.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check everything Forager depends on, and suggest fixes. Exit code 1 if something fails.

    Each problem is shown with its impact and the next step.
    """
    checks = _examine(context, job=job, as_json=as_json)
    failed = any(check.level == "fail" for check in checks)
    if as_json:
        output.show_json({"items": checks, "next_cursor": None, "ok": not failed})
    if failed:
        raise typer.Exit(FAILED)


def _examine(context: typer.Context, *, job: bool, as_json: bool) -> list[Check]:
    from forager.doctor import examine
    from forager.doctor.check import failed_with, ok

    try:
        settings = flags_of(context).load()
    except InvalidInput as error:
        wrong = failed_with("settings", error)
        if not as_json:
            _show(wrong)
        return [wrong]
    with Steps("job", 100, shown=not as_json) as steps:

        def watch(job: Job) -> None:
            steps.show(job.progress_percentage, what=f"job {job.shown_status}")

        def tell(check: Check) -> None:
            steps.stop()
            if not as_json:
                _show(check)

        well = ok("settings", _where_from(context))
        tell(well)
        return [well, *run(examine(settings, tell, watch=watch if job else None))]


def _where_from(context: typer.Context) -> str:
    from forager.settings import Origin, origins

    own = [
        f"{name} ({origin})"
        for name, origin in origins(flags_of(context).given).items()
        if origin is not Origin.DEFAULT
    ]
    return f"{len(own)} set: {', '.join(own)}" if own else "all defaults"


def _show(check: Check) -> None:
    from rich.text import Text

    console = output.console()
    line = Text.assemble(
        (f"{check.level:<6}", STYLES[check.level]), f"{check.name:<{COLUMN}}", clean(check.finding)
    )
    console.print(line, soft_wrap=True)
    for words, style in ((check.why, "dim"), (check.advice, "bold")):
        if words:
            console.print(Text(f"{'':<{6 + COLUMN}}{clean(words)}", style=style), soft_wrap=True)
