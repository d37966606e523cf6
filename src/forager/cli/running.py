"""Run commands: call services, print results, ask for confirmation, stop on signals."""

from __future__ import annotations

import asyncio
import getpass
import inspect
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from forager.amounts import listed
from forager.cli.failures import FAILED, INTERRUPTED, TERMINATED, USAGE, Declined, print_error
from forager.cli.options import AsJson, flags_of, grouped, with_signature
from forager.cli.output import (
    Columns,
    Listing,
    note,
    reader_has_left,
    say,
    show_json,
    show_list,
    show_rows,
    silence_stdout,
)
from forager.cli.steps import Steps
from forager.errors import ForagerError, InvalidInput, ReaderLeft

if TYPE_CHECKING:
    from forager.archive.storage import Storage
    from forager.db.database import Database
    from forager.fetch.proxies.service import Proxies
    from forager.jobs.queue import Queue
    from forager.operations.operation import Context
    from forager.processes.started import StartedProcess
    from forager.settings import Settings
    from forager.tasks.service import Tasks

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class CommandServices:
    """The database, settings and services of a command."""

    database: Database
    settings: Settings
    as_json: bool = False
    # of a crawl in the foreground
    spare_runner: StartedProcess | None = None
    # as in LANG; None for that of this process
    language: str | None = None

    @property
    def context(self) -> Context:
        """What operations need."""
        from forager.access.caller import LOCAL
        from forager.operations.operation import Context

        caller = replace(LOCAL, name=_user_name())
        return Context(
            self.database,
            self.settings,
            actor=caller.actor,
            caller=caller,
            language=self.language or os.environ.get("LANG"),
        )

    @property
    def queue(self) -> Queue:
        from forager.jobs.kinds import import_modules
        from forager.jobs.queue import Queue

        import_modules(self.settings.job_modules)
        return Queue(self.database, self.settings)

    @property
    def tasks(self) -> Tasks:
        from forager.tasks.service import Tasks

        return Tasks(self.database, self.settings)

    @property
    def proxies(self) -> Proxies:
        from forager.fetch.proxies.service import Proxies
        from forager.secrets import Vault

        return Proxies(self.database, Vault(self.settings))

    @property
    def archive(self) -> Storage:
        from forager.archive.options import archive_options

        return archive_options(self.settings).open()

    def steps(self, what: str, total: int | None = None) -> Steps:
        """A progress bar, unless a program reads the output."""
        return Steps(what, total, shown=not self.as_json)


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return ""


Ask = Callable[..., Awaitable[Any]]
Command = Callable[..., None]


def runs(ask: Ask) -> Command:
    """Turn a coroutine that prints its result, and has no --json, into a command."""
    return command_of(ask, lambda _context, _answer: None, has_json=False)


def answers(
    show: Columns | Callable[[Any], Any],
    *,
    none: str | None = None,
    document: Callable[[Any], Any] | None = None,
    then: Callable[[Any], None] | None = None,
    succeeded: Callable[[Any], object] | None = None,
) -> Callable[[Ask], Command]:
    """Turn a coroutine into a command that prints its result as JSON or with `show`.

    `show` is the columns of a table, prints the answer itself, or returns its text; `none` is
    printed for an empty answer. `document` turns the answer into the JSON document. `then` gets
    the answer after it is printed. Unless the answer `succeeded`, the command fails.
    """

    def print_answer(context: typer.Context, answer: Any) -> None:
        if context.params["as_json"]:
            show_json(answer if document is None else document(answer))
        elif none is not None and not answer:
            note(none)
        elif isinstance(show, Mapping):
            show_rows(show, answer)
        elif (text := show(answer)) is not None:
            say(text)
        if then is not None:
            then(answer)
        if succeeded is not None and not succeeded(answer):
            raise typer.Exit(FAILED)

    return lambda ask: command_of(ask, print_answer)


def lists(
    show: Columns | Callable[[Sequence[Any]], None],
    *,
    none: str | None = None,
    document: Callable[[Any], Any] | None = None,
) -> Callable[[Ask], Command]:
    """Turn a coroutine that returns one page of a list into a command; see `show_list`."""

    def print_page(context: typer.Context, page: Listing[Any]) -> None:
        show_list(page, context.params["as_json"], show, none=none, document=document)

    return lambda ask: command_of(ask, print_page)


def command_of(
    ask: Ask,
    print_answer: Callable[[typer.Context, Any], None],
    *,
    has_json: bool = True,
    prepare: Callable[..., dict[str, Any]] = dict,
) -> Command:
    """A command that runs `ask` on the services and prints what it returns.

    `prepare` turns the options into the arguments of `ask` before the database is opened.
    """
    _, *own = inspect.signature(ask, eval_str=True).parameters.values()

    def run(context: typer.Context, as_json: bool = False, **options: Any) -> None:
        given = prepare(**options)
        try:
            answer = with_services(
                context, lambda services: ask(services, **given), as_json=as_json
            )
        except BrokenPipeError as error:
            if not isinstance(error, ReaderLeft) and not reader_has_left():
                raise
            return silence_stdout()
        return print_answer(context, answer)

    kind = inspect.Parameter.KEYWORD_ONLY
    context = inspect.Parameter("context", kind, annotation=typer.Context)
    as_json = inspect.Parameter("as_json", kind, annotation=AsJson, default=False)
    return grouped(with_signature(run, ask, [context, *own, *([as_json] if has_json else [])]))


def with_services(
    context: typer.Context,
    ask: Callable[[CommandServices], Awaitable[Answer]],
    *,
    as_json: bool = False,
) -> Answer:
    """Return the result of `ask` on the configured database and the services on it."""
    from forager.db.database import open_database

    flags = flags_of(context)
    settings = flags.load()

    async def answer() -> Answer:
        async with open_database(settings, name="forager cli") as database:
            return await ask(CommandServices(database, settings, as_json, flags.spare_runner))

    return asyncio.run(answer())


class StoppedAtOnce(ForagerError):
    """Stopped at once. Jobs that ran are given to another worker by the watchdog."""

    exit_code = INTERRUPTED


def leave_on_sigterm() -> None:
    """Exit through `finally` blocks, so that an unused embedded server is stopped."""

    def leave(_number: int, _frame: object) -> None:
        sys.exit(TERMINATED)

    signal.signal(signal.SIGTERM, leave)


async def run_until_stopped(
    work: Coroutine[Any, Any, None], stop: Callable[[], None], *, grace: float
) -> None:
    """Run; the first signal calls `stop`, after which `work` is expected to end by itself.

    The process is killed `grace` seconds after the first signal, whatever it does then.
    """
    from forager.processes.signals import StopSignals

    task = asyncio.ensure_future(work)
    stopping = False

    def on_signal(number: signal.Signals) -> None:
        nonlocal stopping
        if not stopping:
            stopping = True
            stop()
        elif number is signal.SIGINT:
            task.cancel()

    with StopSignals(on_signal, grace=grace):
        try:
            await task
        except asyncio.CancelledError:
            raise StoppedAtOnce from None


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation; raise if it is refused or cannot be asked for."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(
            f"{question} There is no terminal to ask on.", hint="Give --yes to do it."
        )
    if not typer.confirm(question, err=True):
        raise Declined


def exit_if_unknown(ids: Sequence[int], noun: str, hint: str) -> None:
    """Exit with the code of a wrong ID if some of the given IDs are unknown."""
    if not ids:
        return
    print_error(f"there is no {noun} {listed(ids)}; the others were processed", hint)
    raise typer.Exit(USAGE)
