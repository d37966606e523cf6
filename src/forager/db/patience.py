"""Patience: how services in the background go on while the database is away, without much noise.

An outage is said when it begins, each minute while it lasts, and when it is over: once for each
service, however often that looks.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from types import TracebackType

import psycopg
from structlog.stdlib import BoundLogger

from forager.errors import DatabaseUnavailable, DiskFull, ForagerError

# what the database can do to a service, and what passes by itself
TROUBLE = (DatabaseUnavailable, DiskFull, psycopg.Error)
SAID_EVERY = 60.0

Look = Callable[[], Awaitable[object]]


class Patience:
    """A block that endures trouble: `with patience: await look()`. All else goes through it."""

    def __init__(
        self,
        log: BoundLogger,
        words: str,
        *,
        also: tuple[type[Exception], ...] = (),
        said_every: float = SAID_EVERY,
    ) -> None:
        self._log = log
        self._words = words
        self._trouble = (*TROUBLE, *also)
        self._said_every = said_every
        self._began: float | None = None
        self._said_at = 0.0

    @property
    def is_needed(self) -> bool:
        """Whether the last look met trouble."""
        return self._began is not None

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if error is None:
            self.over()
        elif isinstance(error, self._trouble):
            self.note(error)
            return True
        return False  # a fault of ours, or somebody wants us to stop

    def note(self, error: BaseException) -> None:
        """There is trouble; say so, unless that was said a moment ago."""
        now = time.monotonic()
        if self._began is None or now - self._said_at >= self._said_every:
            self._log.warning(self._words, reason=_reason(error))
            self._said_at = now
        if self._began is None:
            self._began = now

    def over(self) -> None:
        """All is well; say so, if it was not."""
        if self._began is not None:
            seconds = round(time.monotonic() - self._began, 1)
            self._log.info("the trouble is over", what=self._words, seconds=seconds)
            self._began = None


async def keep_watch(look: Look, patience: Patience, *, every: float) -> None:
    """Look at once, and then for ever, so many seconds after each look."""
    while True:
        with patience:
            await look()
        await asyncio.sleep(every)


async def keep_up(look: Look, patience: Patience, *, every: float) -> None:
    """Look for ever, at a random moment of each interval: not all workers shall come at once."""
    while True:
        await asyncio.sleep(every * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
        with patience:
            await look()


def _reason(error: BaseException) -> str:
    return error.message if isinstance(error, ForagerError) else str(error)
