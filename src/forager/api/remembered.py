"""Answers that cost much are given again for a while: the longer, the more they cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

# what is made sooner is made anew each time, and so never old
CHEAP = 0.2
# for so many times as long as it took to make
REST = 30
LONGEST = 60.0
MAX_KEPT = 200


@dataclass(slots=True)
class Remembered:
    """Nothing is kept of a small database. Of a large one, nothing is made twice at a time."""

    _kept: dict[object, tuple[float, Any]] = field(default_factory=dict)
    _making: dict[object, asyncio.Task[Any]] = field(default_factory=dict)

    async def get(self, key: object, make: Callable[[], Awaitable[Any]]) -> Any:
        """The answer; while somebody makes it anew, the one before."""
        now = time.monotonic()
        until, answer = self._kept.get(key, (0.0, None))
        if now < until or (key in self._making and now < until + LONGEST):
            return answer
        if key not in self._making:
            self._begin(key, make)
        # who asked first may go away; the others still wait for it
        return await asyncio.shield(self._making[key])

    def _begin(self, key: object, make: Callable[[], Awaitable[Any]]) -> None:
        def end(made: asyncio.Task[Any]) -> None:
            del self._making[key]
            if not made.cancelled():
                made.exception()  # those who wait are told; if nobody does, nobody misses it

        self._making[key] = asyncio.create_task(self._make(key, make), name=f"making {key}")
        self._making[key].add_done_callback(end)

    async def _make(self, key: object, make: Callable[[], Awaitable[Any]]) -> Any:
        began = time.monotonic()
        answer = await make()
        now = time.monotonic()
        if now - began < CHEAP:
            self._kept.pop(key, None)
            return answer
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        self._kept[key] = (now + min(LONGEST, REST * (now - began)), answer)
        return answer
