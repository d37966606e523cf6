"""Answers that cost much are given again for a while: the longer, the more they cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

# what is made sooner is made anew each time, and so never old
CHEAP = 0.2
# for so many times as long as it took to make
REST = 10
LONGEST = 10.0
MAX_KEPT = 200


@dataclass(frozen=True, slots=True)
class Remembrance:
    """An answer, and since when it is given again; None: it was made for whoever asked."""

    answer: Any
    at: datetime | None


@dataclass(slots=True)
class Remembered:
    """Nothing is kept of a small database. Of a large one, nothing is made twice at a time."""

    _kept: dict[object, tuple[float, Remembrance]] = field(default_factory=dict)
    _making: dict[object, asyncio.Task[Remembrance]] = field(default_factory=dict)

    async def get(self, key: object, make: Callable[[], Awaitable[Any]]) -> Any:
        return (await self.look(key, make)).answer

    async def look(self, key: object, make: Callable[[], Awaitable[Any]]) -> Remembrance:
        """The answer and its age; while somebody makes it anew, the one before."""
        now = time.monotonic()
        until, kept = self._kept.get(key, (0.0, None))
        if kept and (now < until or (key in self._making and now < until + LONGEST)):
            return kept
        if key not in self._making:
            self._begin(key, make)
        # who asked first may go away; the others still wait for it
        return await asyncio.shield(self._making[key])

    def _begin(self, key: object, make: Callable[[], Awaitable[Any]]) -> None:
        def end(made: asyncio.Task[Remembrance]) -> None:
            del self._making[key]
            if not made.cancelled():
                made.exception()  # those who wait are told; if nobody does, nobody misses it

        self._making[key] = asyncio.create_task(self._make(key, make), name=f"making {key}")
        self._making[key].add_done_callback(end)

    async def _make(self, key: object, make: Callable[[], Awaitable[Any]]) -> Remembrance:
        began, at = time.monotonic(), datetime.now(UTC)
        answer = await make()
        now = time.monotonic()
        if now - began < CHEAP:
            self._kept.pop(key, None)
            return Remembrance(answer, None)
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        kept = Remembrance(answer, at)
        self._kept[key] = (now + min(LONGEST, REST * (now - began)), kept)
        return kept
