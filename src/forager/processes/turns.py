"""Turns: a limited number at a time, and those who wait are served one after the other."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class TurnRefused(Exception):
    """The calls of this user were dropped while they waited for a turn."""


class FairTurns:
    """A semaphore with one queue per user: a free turn goes to the next user, not to the next call.

    A user with a thousand calls therefore delays a user with one by a single turn. A user may be
    limited to one turn at a time, so that its calls do not occupy all turns.
    """

    def __init__(self, turns: int) -> None:
        self._free = turns
        self._taken: Counter[Hashable] = Counter()
        self._limited: set[Hashable] = set()
        self._queues: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Calls that wait for a turn."""
        return sum(not call.done() for queue in self._queues.values() for call in queue)

    @property
    def limited(self) -> frozenset[Hashable]:
        return frozenset(self._limited)

    @asynccontextmanager
    async def turn(self, user: Hashable) -> AsyncIterator[None]:
        """Wait for a turn of a user; it ends with the block."""
        await self._acquire(user)
        try:
            yield
        finally:
            self._release(user)

    def limit(self, user: Hashable) -> None:
        """Give the user one turn at a time from now on."""
        self._limited.add(user)

    def unlimit(self, user: Hashable) -> None:
        """Give a user several turns at a time again."""
        if user in self._limited:
            self._limited.remove(user)
            self._grant()

    def drop(self, user: Hashable) -> None:
        """Refuse the calls of a user that wait now."""
        for call in self._queues.pop(user, ()):
            if not call.done():
                call.set_exception(TurnRefused)

    async def _acquire(self, user: Hashable) -> None:
        call = asyncio.get_running_loop().create_future()
        self._queues.setdefault(user, deque()).append(call)
        self._grant()
        try:
            await call
        except asyncio.CancelledError:
            if not call.cancelled() and call.exception() is None:
                self._release(user)  # it was granted in the same moment
            raise

    def _release(self, user: Hashable) -> None:
        self._free += 1
        self._taken -= Counter([user])
        self._grant()

    def _grant(self) -> None:
        """Give free turns to the users who have waited longest; their next calls are last."""
        while self._free:
            ready = next(((user,) for user in self._queues if self._may_begin(user)), None)
            if ready is None:
                return
            (user,) = ready
            queue = self._queues.pop(user)
            call = queue.popleft()
            if queue:
                self._queues[user] = queue
            if not call.done():  # else its caller was cancelled
                self._free -= 1
                self._taken[user] += 1
                call.set_result(None)

    def _may_begin(self, user: Hashable) -> bool:
        return user not in self._limited or not self._taken[user]
