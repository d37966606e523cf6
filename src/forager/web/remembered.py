"""Answers that cost much are given again for a while: the longer, the more they cost."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

# for so many times as long as it took to make
REST = 10
LONGEST = 60.0
MAX_KEPT = 200


@dataclass(slots=True)
class Remembered:
    """With a small database an answer takes a millisecond and is as good as never kept."""

    _kept: dict[object, tuple[float, Any]] = field(default_factory=dict)

    async def get(self, key: object, make: Callable[[], Awaitable[Any]]) -> Any:
        began = time.monotonic()
        until, answer = self._kept.get(key, (0.0, None))
        if began < until:
            return answer
        answer = await make()
        took = time.monotonic() - began
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        self._kept[key] = (time.monotonic() + min(LONGEST, REST * took), answer)
        return answer
