"""Run commands: call services, ask for confirmation, stop on signals."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from forager.cli.failures import INTERRUPTED, TERMINATED, USAGE, Declined, complain
from forager.cli.options import flags_of
from forager.errors import ForagerError, InvalidInput

if TYPE_CHECKING:
    from forager.db.database import Database
    from forager.jobs.queue import Queue
    from forager.settings import Settings

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHOWN = 20

Answer = TypeVar("Answer")


def with_database(
    context: typer.Context, ask: Callable[[Database, Settings], Awaitable[Answer]]
) -> Answer:
    """Return the result of `ask` on the configured database."""
    from forager.db.database import open_database

    settings = flags_of(context).load()

    async def answer() -> Answer:
        async with open_database(settings, name="forager cli") as database:
            return await ask(database, settings)

    return run(answer())


def with_queue(context: typer.Context, ask: Callable[[Queue], Awaitable[Answer]]) -> Answer:
    """Return the result of `ask` on the job queue."""
    from forager.jobs.kinds import import_modules
    from forager.jobs.queue import Queue

    def answer(database: Database, settings: Settings) -> Awaitable[Answer]:
        import_modules(settings.job_modules)
        return ask(Queue(database, settings))

    return with_database(context, answer)


def run(work: Coroutine[Any, Any, Answer]) -> Answer:
    return asyncio.run(work)


class StoppedAtOnce(ForagerError):
    """Stopped at once. Jobs that ran are given to another worker by the watchdog."""

    exit_code = INTERRUPTED


def leave_on_sigterm() -> None:
    """Leave as if by sys.exit: the last one out must still stop the embedded server."""

    def leave(_number: int, _frame: object) -> None:
        sys.exit(TERMINATED)

    signal.signal(signal.SIGTERM, leave)


async def run_until_stopped(work: Coroutine[Any, Any, None], stop: Callable[[], None]) -> None:
    """Run; the first signal calls `stop`, after which `work` is expected to end by itself."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    asked = False

    def on_signal(number: signal.Signals) -> None:
        nonlocal asked
        if not asked:
            asked = True
            stop()
        elif number is signal.SIGINT:
            task.cancel()

    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            loop.add_signal_handler(number, on_signal, number)
    try:
        await task
    except asyncio.CancelledError:
        raise StoppedAtOnce from None


def confirm(question: str, *, yes: bool) -> None:
    """Return if it may be done; otherwise raise what says why not."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(
            f"{question} There is no terminal to ask on.", hint="Give --yes to do it."
        )
    if not typer.confirm(question, err=True):
        raise Declined


def leave_if_unknown(ids: Sequence[int], noun: str, hint: str) -> None:
    """End with the exit code of a wrong id, if there is one among those that were named."""
    if not ids:
        return
    shown = ", ".join(str(each) for each in ids[:SHOWN])
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    complain(f"there is no {noun} {shown}{more}; the others were seen to", hint)
    raise typer.Exit(USAGE)
