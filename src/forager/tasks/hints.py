"""Hints: ids of waiting tasks, which reach a worker through a broker.

A hint grants nothing: the worker claims the tasks in the database by the usual rules, and drops
those that cannot be claimed any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice

from forager.db.database import Connection
from forager.settings import Dispatch, Settings
from forager.tasks.stages.attempt import Stage
from forager.tasks.store import hints as store
from forager.tasks.store.hints import touch

__all__ = ["touch"]

# how long the sender of a hint waits for room: less than the timeout of a broker
OFFER_LIMIT = 20.0
# limit per stage; dropped hints are sent again
MOST = 1_000


async def send_hints(connection: Connection, settings: Settings, task_ids: Sequence[int]) -> None:
    """Enqueue hints for waiting tasks, in the transaction that queued them."""
    if task_ids and settings.dispatch is Dispatch.CELERY:
        await store.write_hints(connection, task_ids)


class HintsClosed(Exception):
    """The worker stops: another worker must get these hints."""


class StageHints:
    """Hinted tasks that a stage has not claimed yet."""

    def __init__(self) -> None:
        self._ids: dict[int, None] = {}
        self._wake: Callable[[], None] = lambda: None
        self._has_room = False
        self._closed = False
        # a claim that began before a hint arrived did not include it
        self._begun = self._ended = 0
        self._changed = asyncio.Condition()

    def attach(self, wake: Callable[[], None]) -> None:
        """Set the callback that makes the stage claim at once."""
        self._wake = wake

    async def offer(self, ids: Iterable[int]) -> None:
        """Add tasks; returns when the stage has tried to claim them, or after a timeout."""
        has_room = await self._until(self._is_open)
        if self._closed:
            raise HintsClosed
        self._remember(ids)
        if has_room:
            claim = self._begun + 1
            self._wake()
            await self._until(lambda: self._ended >= claim)

    def begin_claim(self, most: int) -> list[int]:
        """The oldest hinted tasks, for the stage to claim."""
        self._begun += 1
        return list(islice(self._ids, most))

    async def end_claim(self, done: Iterable[int], *, has_room: bool) -> None:
        """Remove tasks that are claimed, or cannot be claimed any more."""
        for id_ in done:
            self._ids.pop(id_, None)
        self._ended = self._begun
        self._has_room = has_room
        await self._notify()

    async def set_room(self, has_room: bool) -> None:
        """Set whether the stage can start tasks now."""
        if has_room != self._has_room:
            self._has_room = has_room
            await self._notify()

    async def close(self) -> list[int]:
        """Accept no more hints; return the tasks that this worker will not claim."""
        self._closed = True
        await self._notify()
        left, self._ids = list(self._ids), {}
        return left

    def __len__(self) -> int:
        return len(self._ids)

    def _is_open(self) -> bool:
        return self._has_room and len(self._ids) < MOST

    def _remember(self, ids: Iterable[int]) -> None:
        self._ids.update(dict.fromkeys(ids))
        while len(self._ids) > MOST:
            del self._ids[next(iter(self._ids))]

    async def _until(self, condition: Callable[[], bool]) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(OFFER_LIMIT), self._changed:
                await self._changed.wait_for(lambda: self._closed or condition())
        return condition()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


class Hints:
    """The hints for both stages of a worker."""

    def __init__(self) -> None:
        self._stages = {stage: StageHints() for stage in Stage}

    def of(self, stage: Stage) -> StageHints:
        return self._stages[stage]

    async def close(self) -> list[int]:
        return [id_ for stage in self._stages.values() for id_ in await stage.close()]
