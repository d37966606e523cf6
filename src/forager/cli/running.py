"""Run commands: call services, print results, ask for confirmation, stop on signals."""

from __future__ import annotations

import asyncio
import inspect
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from forager.amounts import listed
from forager.cli.failures import FAILED, INTERRUPTED, TERMINATED, USAGE, Declined, print_error
from forager.cli.options import AsJson, flags_of, grouped, with_signature
from forager.cli.output import Columns, note, say, show_json, show_list, show_rows
from forager.errors import ForagerError, InvalidInput

if TYPE_CHECKING:
    from forager.db.database import Database
    from forager.fetch.domains.service import Domains
    from forager.fetch.proxies.service import Proxies
    from forager.jobs.queue import Queue
    from forager.settings import Settings
    from forager.tasks.service import Tasks
    from forager.webhooks.service import Webhooks

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The database, settings and services of a command."""

    database: Database
    settings: Settings

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
    def domains(self) -> Domains:
        from forager.fetch.domains.service import Domains

        return Domains(self.database)

    @property
    def proxies(self) -> Proxies:
        from forager.fetch.proxies.service import Proxies
        from forager.secrets import Vault

        return Proxies(self.database, Vault(self.settings))

    @property
    def webhooks(self) -> Webhooks:
        from forager.secrets import Vault
        from forager.webhooks.service import Webhooks

        return Webhooks(self.database, Vault(self.settings))


Ask = Callable[..., Awaitable[Any]]
Command = Callable[..., None]


def answers(
    show: Columns | Callable[[Any], Any],
    *,
    none: str | None = None,
    document: Callable[[Any], Any] | None = None,
    then: Callable[[Any], None] | None = None,
) -> Callable[[Ask], Command]:
    """Turn a coroutine into a command that prints its result as JSON or with `show`.

    `show` is the columns of a table, prints the answer itself, or returns its text; `none` is
    printed for an empty answer. `document` turns the answer into the JSON document. `then` gets
    the answer after it is printed, to exit with another code.
    """

    def print_answer(answer: Any, as_json: bool) -> None:
        if as_json:
            show_json(answer if document is None else document(answer))
        elif none is not None and not answer:
            note(none)
        elif isinstance(show, Mapping):
            show_rows(show, answer)
        elif (text := show(answer)) is not None:
            say(text)
        if then is not None:
            then(answer)

    return _printed(print_answer)


def lists(
    show: Columns | Callable[[Sequence[Any]], None],
    *,
    none: str | None = None,
    document: Callable[[Any], Any] | None = None,
) -> Callable[[Ask], Command]:
    """Turn a coroutine that returns one page of a list into a command; see `show_list`."""
    return _printed(
        lambda page, as_json: show_list(page, as_json, show, none=none, document=document)
    )


def _printed(print_answer: Callable[[Any, bool], None]) -> Callable[[Ask], Command]:
    def decorate(ask: Ask) -> Command:
        _, *own = inspect.signature(ask, eval_str=True).parameters.values()

        def run(context: typer.Context, as_json: bool, **given: Any) -> None:
            answer = with_services(context, lambda here: ask(here, **given))
            print_answer(answer, as_json)

        kind = inspect.Parameter.KEYWORD_ONLY
        context = inspect.Parameter("context", kind, annotation=typer.Context)
        as_json = inspect.Parameter("as_json", kind, annotation=AsJson, default=False)
        return grouped(with_signature(run, ask, [context, *own, as_json]))

    return decorate


def with_services(
    context: typer.Context, ask: Callable[[CommandContext], Awaitable[Answer]]
) -> Answer:
    """Return the result of `ask` on the configured database and the services on it."""
    from forager.db.database import open_database

    settings = flags_of(context).load()

    async def answer() -> Answer:
        async with open_database(settings, name="forager cli") as database:
            return await ask(CommandContext(database, settings))

    return asyncio.run(answer())


def fail_unless(is_good: Callable[[Any], object]) -> Callable[[Any], None]:
    """Exit with the code of failed work unless the answer is good."""

    def check(answer: Any) -> None:
        if not is_good(answer):
            raise typer.Exit(FAILED)

    return check


class StoppedAtOnce(ForagerError):
    """Stopped at once. Jobs that ran are given to another worker by the watchdog."""

    exit_code = INTERRUPTED


def leave_on_sigterm() -> None:
    """Exit through `finally` blocks, so that an unused embedded server is stopped."""

    def leave(_number: int, _frame: object) -> None:
        sys.exit(TERMINATED)

    signal.signal(signal.SIGTERM, leave)


async def run_until_stopped(work: Coroutine[Any, Any, None], stop: Callable[[], None]) -> None:
    """Run; the first signal calls `stop`, after which `work` is expected to end by itself."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    stopping = False

    def on_signal(number: signal.Signals) -> None:
        nonlocal stopping
        if not stopping:
            stopping = True
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
