"""The switch of a host: slow, pause, stop and resume."""

from __future__ import annotations

import pytest

from forager.access.caller import Caller, Scope
from forager.crawl.traffic import Traffic, TrafficChange, set_traffic
from forager.db.database import Database
from forager.db.ids import new_id
from forager.fetch.domains.service import DomainChanges, Domains
from forager.jobs.job import NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.settings import Settings
from forager.tasks.store.scheduling import select_loads
from support.budgets import CrawlBudgets, renew
from tasks.tasks_at_hand import make_task

HOST = "shop.example"
ADMIN = Caller(None, Scope.ADMIN)


class Switch:
    def __init__(self, database: Database, settings: Settings) -> None:
        self.domains = Domains(database)
        self._given = (database, settings)

    async def set(self, traffic: Traffic, caller: Caller = ADMIN) -> TrafficChange:
        return await set_traffic(*self._given, caller, HOST, traffic)

    async def delays(self) -> tuple[float | None, float | None]:
        domain = await self.domains.get(HOST)
        return domain.crawl_delay_seconds, domain.traffic_delay


@pytest.fixture
def switch(database: Database, settings: Settings) -> Switch:
    return Switch(database, settings)


@pytest.mark.parametrize(
    ("delay", "slowed"), [(None, 10.0), (0.5, 10.0), (30.0, 60.0), (80_000.0, 86_400.0)]
)
async def test_resume_restores_the_delay_from_before_slow(
    switch: Switch, delay: float | None, slowed: float
) -> None:
    await switch.domains.add(HOST, DomainChanges(delay=delay))
    for _ in range(2):
        assert (await switch.set(Traffic.SLOW)).domain.traffic_delay == slowed
        assert await switch.delays() == (delay, slowed)
    assert (await switch.set(Traffic.RESUME)).domain.traffic_delay is None
    assert await switch.delays() == (delay, None)


async def test_resume_keeps_a_delay_that_slow_did_not_set(switch: Switch) -> None:
    await switch.domains.add(HOST, DomainChanges(delay=30.0))
    await switch.set(Traffic.RESUME)
    assert await switch.delays() == (30.0, None)
    await switch.set(Traffic.SLOW)
    await switch.domains.set(HOST, DomainChanges(delay=45.0))
    await switch.set(Traffic.PAUSE)
    await switch.set(Traffic.RESUME)
    assert await switch.delays() == (45.0, None)


async def test_slow_applies_to_crawls_and_tasks_unless_they_are_slower(
    switch: Switch, database: Database
) -> None:
    await switch.domains.add(HOST, DomainChanges(delay=0.5))
    async with CrawlBudgets(database, delay=0.1) as budgets:
        with await budgets.acquire(HOST):
            pass
        delays = []
        for traffic in (Traffic.SLOW, Traffic.RESUME):
            await switch.set(traffic)
            await renew(budgets, HOST)
            delays.append(budgets.account_of(HOST).delay)
    assert delays == [10.0, 0.5]
    domain = (await switch.set(Traffic.SLOW)).domain
    await make_task(database, domain.id)
    [load] = await database.run(select_loads)
    assert load.delay == 10.0
    await switch.domains.set(HOST, DomainChanges(delay=30.0))
    [load] = await database.run(select_loads)
    assert load.delay == 30.0


async def test_stop_and_resume_change_the_jobs_of_the_caller_and_no_delay(
    switch: Switch, database: Database, settings: Settings
) -> None:
    await switch.domains.add(HOST, DomainChanges(delay=30.0))
    queue = Queue(database, settings)
    owner, other = new_id(), new_id()
    payload = {"urls": [f"https://{HOST}/"]}
    jobs = await queue.enqueue_many(
        [NewJob(kind="crawl", payload=payload, user_id=each) for each in (owner, other)]
    )
    caller = Caller(owner, Scope.OPERATE)

    async def statuses() -> list[Status]:
        return [(await queue.get(job.id)).status for job in jobs]

    stopped = await switch.set(Traffic.STOP, caller)
    assert (stopped.jobs, stopped.refused, stopped.domain.task_hold) == (1, 0, "stopped")
    assert await statuses() == [Status.PAUSED, Status.PENDING]
    assert (await switch.set(Traffic.STOP)).jobs == 1
    await switch.set(Traffic.SLOW, caller)
    resumed = await switch.set(Traffic.RESUME, caller)
    assert (resumed.jobs, resumed.refused, resumed.domain.task_hold) == (1, 0, None)
    assert await statuses() == [Status.PENDING, Status.PAUSED]
    # the caller sees no paused job any more
    await switch.set(Traffic.RESUME, caller)
    assert await switch.delays() == (30.0, None)


async def test_pause_and_stop_hold_tasks_until_resume(switch: Switch) -> None:
    await switch.domains.add(HOST)
    holds = [(await switch.set(each)).domain.task_hold
             for each in (Traffic.PAUSE, Traffic.STOP, Traffic.RESUME)]  # fmt: skip
    assert holds == ["paused", "stopped", None]
