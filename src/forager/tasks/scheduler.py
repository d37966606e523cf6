"""The scheduler: makes tasks due, and queues as many as the budgets of their domains allow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from forager.clock import local_time
from forager.db.database import Connection, Database
from forager.extract.hosts import host_of, parent_domains
from forager.fetch.response import agent_header
from forager.fetch.robots.rules import parse_robots
from forager.logs import get_logger
from forager.services.service import Service, isolated
from forager.settings import Settings
from forager.tasks.allowance import LOOK_AHEAD, DomainLoad, TickPace, allowance
from forager.tasks.hints import send_hints
from forager.tasks.store import scheduling as store
from forager.tasks.store.stages import notify_workers

log = get_logger("scheduler")

# A tick that handles this many is followed by the next at once. Each row costs random writes in
# half a dozen indexes, which is slowest after a checkpoint; a tick must stay short even then.
TASKS_PER_TICK = 2_000
# a tick costs a dozen statements: while no task is due, one is enough to look for work
FULL_TICK_EVERY = 10.0
# after so long without any work, the scheduler looks for it less often; ticks show that it runs
IDLE_AFTER = 60.0
IDLE_LOOK_EVERY = 3.0
IDLE_TICK_EVERY = 30.0


@dataclass(frozen=True, slots=True)
class SchedulerTick:
    """The result of one run; `led` is False if another scheduler queued at the same time."""

    led: bool = False
    woken: int = 0
    withdrawn: int = 0
    queued: int = 0


class Scheduler:
    """Makes tasks due and queues them; any number of processes may run it.

    Several may wake tasks at the same time, with SKIP LOCKED. Queueing compares the queued tasks of
    a domain with its allowance, which two processes would both fill up: it needs an advisory lock,
    which ends with its transaction.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._window = settings.scheduler_interval + LOOK_AHEAD
        self._robots = RobotsDelays(agent_header(settings))
        self._look_at = self._full_tick_at = 0.0
        self._idle_from = local_time() + IDLE_AFTER

    def service(self) -> Service:
        """The background service that makes due tasks available to workers."""
        return Service(
            name="scheduler",
            every=self._settings.scheduler_interval,
            step=self._step,
            chunk=TASKS_PER_TICK,
            first_within=0.0,
        )

    async def _step(self) -> int:
        now = local_time()
        if now < self._look_at:
            return 0
        has_work = await self._database.run(store.has_work)
        if has_work:
            self._idle_from = now + IDLE_AFTER
        is_idle = now >= self._idle_from
        self._look_at = now + IDLE_LOOK_EVERY if is_idle else now
        if not has_work and now < self._full_tick_at:
            return 0
        self._full_tick_at = now + (IDLE_TICK_EVERY if is_idle else FULL_TICK_EVERY)
        tick = await self.run_once()
        return max(tick.woken, tick.queued)

    async def run_once(self) -> SchedulerTick:
        """Enqueue due tasks, unless another process is the scheduler."""
        woken = await self._wake()
        async with self._database.transaction() as connection:
            if not await store.lead(connection):
                return SchedulerTick(woken=woken)
            await store.walk_indexes(connection)
            withdrawn = await store.withdraw_queued(connection, self._window)
            queued = await self._queue(connection)
            await store.note_tick(connection)
            if queued:
                await notify_workers(connection)
        return SchedulerTick(led=True, woken=woken, withdrawn=withdrawn, queued=queued)

    async def _wake(self) -> int:
        async with self._database.transaction() as connection:
            await store.walk_indexes(connection)
            return await store.wake_due(connection, TASKS_PER_TICK)

    async def _queue(self, connection: Connection) -> int:
        loads = await store.select_loads(connection)
        if not loads:
            return 0
        await self._robots.refresh(connection)
        proxies = await store.count_proxies(connection, stale_after=self._settings.stale_after)
        tied = {region: number for region, number in proxies.items() if region is not None}
        pace = TickPace(self._window, sum(proxies.values()), self._settings.task_proxies, tied)
        queued = await store.queue_due(
            connection,
            self._allowances(loads, pace),
            TASKS_PER_TICK,
            stale_after=self._settings.stale_after,
        )
        await send_hints(connection, self._settings, queued)
        return len(queued)

    def _allowances(
        self, loads: Sequence[DomainLoad], pace: TickPace
    ) -> list[tuple[DomainLoad, int]]:
        robots = self._robots.by_domain({load.name for load in loads})
        allowances = []
        for load in loads:
            with isolated(f"domain {load.name}"):
                number = allowance(load, pace, robots.get(load.name, 0.0))
                if number:
                    allowances.append((load, number))
        return allowances


LOOK_EVERY = 15.0
# files are dated before they are committed
OVERLAP = 60.0


class RobotsDelays:
    """Caches the delays of the robots.txt files in the database."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._delays: dict[str, float] = {}
        self._looked_at: float | None = None

    async def refresh(self, connection: Connection) -> None:
        """Read new Crawl-delays from the stored robots.txt files."""
        now = local_time()
        since = None if self._looked_at is None else now - self._looked_at
        if since is not None and since < LOOK_EVERY:
            return
        within = None if since is None else since + OVERLAP
        for origin, body in await store.select_delaying_robots(connection, within):
            with isolated(f"robots.txt of {origin}"):
                self._learn(host_of(origin), body)
        self._looked_at = now

    def _learn(self, host: str, body: bytes) -> None:
        delay = parse_robots(body).crawl_delay(self._agent) if body else None
        if delay:
            self._delays[host] = delay
        else:
            self._delays.pop(host, None)

    def by_domain(self, names: Collection[str]) -> dict[str, float]:
        """The longest delay of all hosts that a domain covers."""
        longest: dict[str, float] = {}
        for host, delay in self._delays.items():
            name = next((n for n in (host, *parent_domains(host)) if n in names), None)
            if name is not None:
                longest[name] = max(delay, longest.get(name, 0.0))
        return longest
