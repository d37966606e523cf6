"""The scheduler: wakes tasks whose time has come, and hands out what budgets can use."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass

from forager.db.database import Connection, Database
from forager.db.patience import Patience
from forager.fetch.user_agent import agent_header
from forager.logs import get_logger
from forager.settings import Settings
from forager.tasks.allowance import LOOK_AHEAD, DomainLoad, Pace, allowance
from forager.tasks.hints import tell
from forager.tasks.robots_delays import RobotsDelays
from forager.tasks.store import scheduling as store

log = get_logger("scheduler")

# A tick that meets one of these is followed by the next at once. Each row costs random writes in
# half a dozen indexes, most of all just after a checkpoint; a tick shall stay short even then.
WAKE_AT_ONCE = 2_000
QUEUE_AT_ONCE = 2_000
SHORT_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Tick:
    """What one look did; `led` is False if another scheduler was at it."""

    led: bool = False
    woken: int = 0
    withdrawn: int = 0
    queued: int = 0

    @property
    def cut(self) -> bool:
        """Whether there is probably more to do at once."""
        return self.woken >= WAKE_AT_ONCE or self.queued >= QUEUE_AT_ONCE


class Scheduler:
    """Any number of processes may run one.

    Waking goes on beside each other, by SKIP LOCKED. Queueing compares what a domain has queued
    with what it may have, and two who count at the same time would both fill it up: it is done
    under an advisory lock, which ends with its transaction or its session, however that ends.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._window = settings.scheduler_interval + LOOK_AHEAD
        self._robots = RobotsDelays(agent_header(settings))

    async def run(self) -> None:
        patience = Patience(log, "tasks are not scheduled now")
        revival = Patience(log, "the embedded database does not start")
        while True:
            cut = False
            with patience:
                cut = (await self.run_once()).cut
            if patience.is_needed:
                with revival:
                    await self._database.revive()
            await asyncio.sleep(SHORT_PAUSE if cut else self._pause())

    async def run_once(self) -> Tick:
        """One look at what is due."""
        woken = await self._wake()
        async with self._database.transaction() as connection:
            if not await store.lead(connection):
                return Tick(woken=woken)
            await store.walk_indexes(connection)
            withdrawn = await store.withdraw_queued(connection, self._window)
            queued = await self._queue(connection)
            await store.note_tick(connection)
            if queued:
                await store.tell_workers(connection)
        return Tick(led=True, woken=woken, withdrawn=withdrawn, queued=queued)

    async def _wake(self) -> int:
        async with self._database.transaction() as connection:
            await store.walk_indexes(connection)
            return await store.wake_due(connection, WAKE_AT_ONCE)

    async def _queue(self, connection: Connection) -> int:
        loads = await store.select_loads(connection)
        if not loads:
            return 0
        await self._robots.refresh(connection)
        proxies = await store.count_proxies(connection, stale_after=self._settings.stale_after)
        tied = {region: number for region, number in proxies.items() if region is not None}
        pace = Pace(self._window, sum(proxies.values()), self._settings.task_proxies, tied)
        queued = await store.queue_due(connection, self._allowances(loads, pace), QUEUE_AT_ONCE)
        await tell(connection, self._settings, queued)
        return len(queued)

    def _allowances(self, loads: Sequence[DomainLoad], pace: Pace) -> list[tuple[DomainLoad, int]]:
        robots = self._robots.by_domain({load.name for load in loads})
        return [
            (load, number)
            for load in loads
            if (number := allowance(load, pace, robots.get(load.name, 0.0)))
        ]

    def _pause(self) -> float:
        # schedulers that were started together shall not look together
        return self._settings.scheduler_interval * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
