"""Keep background services running while the database is unreachable, with few log lines.

Each service logs an outage when it begins, each minute while it lasts, and when it is over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import TypeVar

import psycopg
from structlog.stdlib import BoundLogger

from forager.db.database import Database
from forager.errors import DatabaseUnavailable, DiskFull, error_text

# errors of the database that pass by themselves
TRANSIENT_ERRORS = (DatabaseUnavailable, DiskFull, psycopg.Error)
SAID_EVERY = 60.0
RECONNECT_INTERVAL = 1.0
RETRY_INTERVAL = 0.5
# space does not come back quickly, and every attempt writes
FULL_INTERVAL = 5.0

Result = TypeVar("Result")


class Outage:
    """Suppress database outages: `with outage: await step()`. Other exceptions propagate."""

    def __init__(
        self,
        log: BoundLogger,
        message: str,
        *,
        also: tuple[type[Exception], ...] = (),
        said_every: float = SAID_EVERY,
    ) -> None:
        self._log = log
        self._message = message
        self._transient_errors = (*TRANSIENT_ERRORS, *also)
        self._said_every = said_every
        self._began: float | None = None
        self._said_at = 0.0

    @property
    def lasts(self) -> bool:
        """Whether the last step failed."""
        return self._began is not None

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if error is None:
            self.over()
        elif isinstance(error, self._transient_errors):
            self.note(error)
            return True
        return False  # a bug, or a request to stop

    def note(self, error: BaseException) -> None:
        """Record a failure, and log it unless that was done a moment ago."""
        now = time.monotonic()
        if self._began is None or now - self._said_at >= self._said_every:
            self._log.warning(self._message, reason=error_text(error))
            self._said_at = now
        if self._began is None:
            self._began = now

    def over(self) -> None:
        """Record a success, and log it after a failure."""
        if self._began is not None:
            seconds = round(time.monotonic() - self._began, 1)
            self._log.info("recovered", what=self._message, seconds=seconds)
            self._began = None


async def listen(database: Database, channel: str, wake: Callable[[str | None], object]) -> None:
    """Call `wake` with the payload of every notification; reconnect after an outage.

    It runs until it is canceled. `wake` is also called with None whenever listening begins: what
    was sent before is not lost.
    """
    while True:
        with suppress(*TRANSIENT_ERRORS):
            async with aclosing(database.notifications(channel)) as notifications:
                async for payload in notifications:
                    wake(payload)
        await asyncio.sleep(RECONNECT_INTERVAL)


# one entry for each operation of this process that waits for the database or the disk
_WAITING: list[Exception] = []


def is_waiting_for_storage() -> bool:
    """Whether an operation of this process waits: work that it holds up is not stuck."""
    return bool(_WAITING)


async def retry_until_available(
    operation: Callable[[], Awaitable[Result]],
    log: BoundLogger,
    *,
    also: tuple[type[Exception], ...] = (),
) -> Result:
    """Repeat an operation, which must be idempotent, until the database and the disk take it.

    The wait is bounded from outside: without the database, the lease of the process expires.
    """
    unavailable: tuple[type[Exception], ...] = (DatabaseUnavailable, DiskFull, *also)
    is_waiting = False
    try:
        while True:
            try:
                return await operation()
            except unavailable as error:
                if not is_waiting:
                    reason = error_text(error)
                    log.warning("database or disk unavailable, will retry", reason=reason)
                    _WAITING.append(error)
                    is_waiting = True
                full = isinstance(error, DiskFull)
                await asyncio.sleep(FULL_INTERVAL if full else RETRY_INTERVAL)
    finally:
        if is_waiting:
            _WAITING.pop()
