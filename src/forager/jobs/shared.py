"""Services that all jobs of one runner share: opened at first use, closed with the runner."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Self, TypeVar

T = TypeVar("T")

# pages that may wait for extraction, whichever is more: of all jobs, and for each of them
BACKLOG_LIMIT, BACKLOG_PER_JOB = 200, 2


def longest_backlog(jobs: int) -> int:
    """How many pages may wait in a runner with so many jobs before it gets no more of either."""
    return max(BACKLOG_LIMIT, BACKLOG_PER_JOB * jobs)


class SharedServices:
    """Opens each service once per runner, whichever job needs it first.

    A job kind names a service by a key and says how to open it:

        budgets = await context.shared.get("budgets", lambda: Budgets(database))

    Services are closed in the reverse order of their opening, when the runner ends.
    """

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._open: dict[Hashable, Any] = {}
        # how many jobs the runner hosts
        self.jobs = 1
        # pages that wait for extraction: set by the service that extracts them
        self.backlog: Callable[[], int] = lambda: 0
        # whether they were so many at the last count that jobs should fetch few more
        self.is_backlogged = False
        self._opening: defaultdict[Hashable, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._open.clear()
        await self._stack.aclose()

    def count_backlog(self) -> int:
        """Count the pages that wait for extraction, and update `is_backlogged`."""
        pages = self.backlog()
        self.is_backlogged = pages > longest_backlog(self.jobs)
        return pages

    async def get(self, key: Hashable, opened: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """The service of this key; `opened` is called by the first job that needs it."""
        async with self._opening[key]:
            if key not in self._open:
                self._open[key] = await self._stack.enter_async_context(opened())
            service: T = self._open[key]
        return service
