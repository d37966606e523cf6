"""A background service as data: its name, its interval and one step of its work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import psycopg

from forager.backoff import jittered
from forager.db.database import Database
from forager.errors import DatabaseUnavailable, DiskFull, ForagerError, error_text, error_with_type
from forager.logs import get_logger

Step = Callable[[], Awaitable[object]]

# pause before a step that is repeated because the previous one had a full chunk
FULL_CHUNK_PAUSE = 0.05
# a step that runs for longer than this, and than this many intervals, is stuck
STUCK_AFTER = 600.0
STUCK_INTERVALS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Run `step` every `every` seconds, at a random moment of the second half of each interval.

    A step that handles a full `chunk` is repeated at once. `first_within` bounds the wait before
    the first step (0: none; by default the interval). `resources` opens what the steps share;
    the supervisor opens it again after an unexpected error. `stuck_after` bounds the seconds of a
    step before it is reported as stuck; it is not canceled, because that could hide the cause.

    A step that raises an error is repeated with increasing pauses, and `forager workers services`
    shows the error.

        Service(name="old reports", every=3600.0, step=partial(delete_reports, database), chunk=500)
    """

    name: str
    every: float
    step: Step
    chunk: int | None = None
    first_within: float | None = None
    resources: Callable[[], AbstractAsyncContextManager[object]] | None = None
    stuck_after: float | None = None

    @property
    def step_limit(self) -> float:
        """The time after which a step counts as stuck."""
        if self.stuck_after is not None:
            return self.stuck_after
        return max(STUCK_AFTER, STUCK_INTERVALS * self.every)

    def first_pause(self) -> float:
        """The time before the first step, at random so that processes do not run together."""
        return jittered(self.every if self.first_within is None else self.first_within)

    def pause(self, handled: object) -> float:
        """Seconds until the next step, given the number of items that the last one handled."""
        if self.chunk is not None and isinstance(handled, int) and handled >= self.chunk:
            return min(FULL_CHUNK_PAUSE, self.every)
        return jittered(self.every)


async def in_chunks(
    database: Database, statement: Callable[..., Awaitable[int]], *, limit: int, **arguments: Any
) -> int:
    """Repeat a statement of at most `limit` rows until it affects fewer; return the total."""
    total = 0
    while True:
        rows = await database.run(statement, limit=limit, **arguments)
        total += rows
        if rows < limit:
            return total


log = get_logger("services")

# the database can do this to every service, and it passes without a restart
UNAVAILABLE = (DatabaseUnavailable, DiskFull, psycopg.OperationalError, psycopg.InterfaceError)
REASON_LENGTH = 500

# items skipped by the current step of a service; outside of a service they are only logged
SKIPPED: ContextVar[list[str] | None] = ContextVar("skipped", default=None)


@contextmanager
def isolated(item: str) -> Iterator[None]:
    """Skip and report `item` if the block fails, unless the database is unavailable."""
    try:
        yield
    except UNAVAILABLE:
        raise
    except Exception as error:
        skipped = SKIPPED.get()
        if skipped is None:
            log.error("item skipped", item=item, reason=reason_of(error), exc_info=error)
        else:
            skipped.append(f"{item}: {reason_of(error)}")


def reason_of(error: BaseException) -> str:
    """The reason of a failure, as it is shown."""
    known = isinstance(error, (ForagerError, psycopg.Error))
    return (error_text(error) if known else error_with_type(error))[:REASON_LENGTH]
