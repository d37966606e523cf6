"""Job kinds: what a job of a given name does, and which payloads it takes."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forager.db.database import Connection
from forager.errors import InvalidInput, error_text

if TYPE_CHECKING:
    from forager.jobs.context import JobContext


@dataclass(frozen=True, slots=True)
class Completed:
    """The job is done.

    `finish` runs in the transaction that completes the job, so that both happen or neither; what
    it returns, if anything, replaces the stop reason.

        async def store_total(connection: Connection) -> None:
            await connection.execute("INSERT INTO totals VALUES (%s)", (total,))

        return Completed(finish=store_total)
    """

    stop_reason: str = "finished"
    finish: Callable[[Connection], Awaitable[str | None]] | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Release the job for some seconds, without spending a retry; `reason` is shown to users.

    The handler runs again with the checkpoint that it has saved:

        return Waiting(300, "the server asks for five minutes without requests")
    """

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The handler stopped because it was asked to, after it committed its progress."""


@dataclass(frozen=True, slots=True)
class Paused:
    """The job cannot continue before a person has done something, and is paused.

    `finish` runs in the transaction that pauses it.
    """

    reason: str
    finish: Callable[[Connection], Awaitable[None]] | None = None


Outcome = Completed | Waiting | Paused | Stopped


BUILTIN_MODULES = ("forager.jobs.selftest", "forager.crawl.service")


def any_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """Accept every payload, as it is."""
    return payload


def no_host(_: dict[str, Any]) -> str | None:
    """The job visits no host."""
    return None


@dataclass(frozen=True, slots=True)
class JobKind:
    """A name, and the async function that runs jobs of this name.

    `run` continues from what it has committed: after a crash, a pause or a restart of the database
    it is called again. GiveUp fails the job; any other exception spends a retry.

    `check` returns the payload to store, or raises InvalidInput. `module` is imported by the runner
    before `run` starts, and by no other process. `host` returns the host of a payload: if it is
    tied to a region, only workers of this region claim the job. `own_process`: whether each job
    gets its own process, because `run` may block; the default for kinds outside Forager.

        MEASURE = register(JobKind("measure", measure, check_words))
    """

    name: str
    run: Callable[[JobContext], Awaitable[Outcome]]
    check: Callable[[dict[str, Any]], dict[str, Any]] = any_payload
    module: str | None = None
    host: Callable[[dict[str, Any]], str | None] = no_host
    own_process: bool | None = None

    @property
    def runs_alone(self) -> bool:
        """Whether each job of this kind gets its own process."""
        if self.own_process is None:
            return self.run.__module__.partition(".")[0] != "forager"
        return self.own_process


_KINDS: dict[str, JobKind] = {}


def register(kind: JobKind) -> JobKind:
    """Register a kind in this process, and return it.

    The setting `job_modules` names the modules that do this, so that workers find the kind.
    """
    _KINDS[kind.name] = kind
    return kind


def load_kinds(modules: Iterable[str] = ()) -> dict[str, JobKind]:
    """Import the modules that register kinds; returns all registered kinds by name."""
    for module in BUILTIN_MODULES:
        importlib.import_module(module)
    import_modules(modules)
    return dict(sorted(_KINDS.items()))


def load_kind(name: str, modules: Iterable[str] = ()) -> JobKind:
    """One kind, with all that its jobs need."""
    import_modules(modules)
    kind = kind_named(name)
    if kind.module is not None:
        importlib.import_module(kind.module)
    return kind


def import_modules(modules: Iterable[str]) -> None:
    """Import the modules of the setting `job_modules`."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise InvalidInput(
                f"setting 'job_modules': {module} cannot be imported: {error_text(error)}"
            ) from error


def kind_named(name: str) -> JobKind:
    """A kind that is registered, or that Forager brings: those are imported when needed."""
    for module in BUILTIN_MODULES:
        if name not in _KINDS:
            importlib.import_module(module)
    try:
        return _KINDS[name]
    except KeyError:
        known = ", ".join(sorted(_KINDS))
        raise InvalidInput(
            f"there is no job kind {name!r}", hint=f"Known kinds: {known}."
        ) from None
