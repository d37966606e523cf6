"""A background service as data: its name, its interval and one step of its work."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from forager.db.database import Database

Step = Callable[[], Awaitable[object]]

# pause before a step that is repeated because the previous one had a full chunk
FULL_CHUNK_PAUSE = 0.05
# a step that runs for longer than this, and than this many intervals, is stuck
STUCK_AFTER = 600.0
STUCK_INTERVALS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Run `step` every `every` seconds, at a random moment of the second half of each interval.

    A step that handles a full `chunk` is repeated at once. `first_within` bounds the wait before
    the first step (0: none; by default the interval). `resources` opens whatever the steps share;
    the supervisor opens it again after an unexpected error. `stuck_after` bounds the seconds of a
    step before it is reported as stuck; it is not canceled, because that could hide the cause.
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
        if self.stuck_after is not None:
            return self.stuck_after
        return max(STUCK_AFTER, STUCK_INTERVALS * self.every)

    def first_pause(self) -> float:
        return jittered(self.every if self.first_within is None else self.first_within)

    def pause(self, handled: object) -> float:
        """Seconds until the next step, given the number of items that the last one handled."""
        if self.chunk is not None and isinstance(handled, int) and handled >= self.chunk:
            return min(FULL_CHUNK_PAUSE, self.every)
        return jittered(self.every)


def jittered(seconds: float) -> float:
    """A random part of a wait, so that processes started together do not run together."""
    return seconds * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret


def backoff(failures: int, first: float, longest: float) -> float:
    """The wait after a number of failures in a row: doubling up to `longest`, with jitter."""
    wait = min(first * 2.0 ** min(max(failures - 1, 0), 30), longest)
    return wait * random.uniform(0.75, 1.0)  # noqa: S311 - not a secret


async def in_chunks(
    database: Database, statement: Callable[..., Awaitable[int]], *, limit: int, **arguments: Any
) -> int:
    """Repeat a statement of at most `limit` rows until it affects fewer; return the total."""
    total = 0
    while True:
        async with database.connection() as connection:
            rows = await statement(connection, limit=limit, **arguments)
        total += rows
        if rows < limit:
            return total
