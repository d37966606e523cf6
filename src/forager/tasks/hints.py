"""Hints: ids of tasks that wait for a worker, as they reach one through a broker.

A hint is no permission: the worker claims the tasks in the database by the rules that hold for all,
and what cannot be claimed any more is forgotten.
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

# how long the sender of a hint waits for room: less than the time-out of a broker
OFFER_LIMIT = 20.0
# remembered for each stage; forgotten hints are sent again
MOST = 1_000


async def tell(connection: Connection, settings: Settings, task_ids: Sequence[int]) -> None:
    """These wait for a worker now. In the transaction that made them wait."""
    if task_ids and settings.dispatch is Dispatch.CELERY:
        await store.write_hints(connection, task_ids)


class HintsClosed(Exception):
    """The worker stops: another worker must get these hints."""


class StageHints:
    """Hinted tasks that one stage of a worker has not claimed yet."""

    def __init__(self) -> None:
        self._ids: dict[int, None] = {}
        self._wake: Callable[[], None] = lambda: None
        self._has_room = False
        self._closed = False
        # a look that began before a hint came says nothing of that hint
        self._begun = self._ended = 0
        self._changed = asyncio.Condition()

    def attach(self, wake: Callable[[], None]) -> None:
        """The stage that claims; `wake` makes it look at once."""
        self._wake = wake

    async def offer(self, ids: Iterable[int]) -> None:
        """Name tasks; returns when the stage has tried to claim them, or takes too long."""
        has_room = await self._until(self._is_open)
        if self._closed:
            raise HintsClosed
        self._remember(ids)
        if has_room:
            look = self._begun + 1
            self._wake()
            await self._until(lambda: self._ended >= look)

    def begin_look(self, most: int) -> list[int]:
        """The oldest of them, for the stage to try."""
        self._begun += 1
        return list(islice(self._ids, most))

    async def looked(self, done: Iterable[int], *, has_room: bool) -> None:
        """The stage has tried: these are claimed, or cannot be any more."""
        for id_ in done:
            self._ids.pop(id_, None)
        self._ended = self._begun
        self._has_room = has_room
        await self._tell()

    async def room(self, has_room: bool) -> None:
        """Whether the stage can begin something now."""
        if has_room != self._has_room:
            self._has_room = has_room
            await self._tell()

    async def close(self) -> list[int]:
        """Accept no more hints; return the tasks that this worker will not claim."""
        self._closed = True
        await self._tell()
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

    async def _until(self, is_so: Callable[[], bool]) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(OFFER_LIMIT), self._changed:
                await self._changed.wait_for(lambda: self._closed or is_so())
        return is_so()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


class Hints:
    """Both stages of a worker."""

    def __init__(self) -> None:
        self._stages = {stage: StageHints() for stage in Stage}

    def of(self, stage: Stage) -> StageHints:
        return self._stages[stage]

    async def close(self) -> list[int]:
        return [id_ for stage in self._stages.values() for id_ in await stage.close()]
