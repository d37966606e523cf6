"""Crawls that share the budgets of one process: each keeps its own options."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from uuid import uuid4

import pytest

from fetch.budget_rows import HOST, add_row
from forager.db.database import Database
from forager.fetch.budgets.budget import Budgets
from forager.fetch.budgets.slots import HostThrottled
from forager.fetch.budgets.view import BudgetView, HostPace
from support.waiting import eventually


@pytest.fixture
async def budgets(database: Database) -> AsyncIterator[Budgets]:
    async with Budgets(database, holder=uuid4()) as running:
        yield running


@pytest.mark.usefixtures("short_grace")
async def test_each_crawl_has_its_own_number_of_connections(budgets: Budgets) -> None:
    modest = BudgetView(budgets, delay=0.0, concurrency=1)
    greedy = BudgetView(budgets, delay=0.0, concurrency=3)
    slots = [await greedy.acquire(HOST) for _ in range(2)]
    first = await modest.acquire(HOST)
    waiting = asyncio.create_task(modest.acquire(HOST))
    with pytest.raises(HostThrottled):
        await modest.acquire(HOST, max_wait=0.1)
    assert not waiting.done()
    first.release()
    (await waiting).release()
    for slot in slots:
        slot.release()


async def test_a_crawl_at_its_limit_does_not_block_another(budgets: Budgets) -> None:
    modest = BudgetView(budgets, delay=0.0, concurrency=1)
    greedy = BudgetView(budgets, delay=0.0, concurrency=4)
    (await greedy.acquire(HOST)).release()
    first = await modest.acquire(HOST)
    waiting = asyncio.create_task(modest.acquire(HOST))
    await eventually(lambda: budgets.pages_waiting == 1)
    (await greedy.acquire(HOST)).release()
    assert not waiting.done()
    first.release()
    (await waiting).release()


async def test_crawls_with_many_and_with_few_requests_get_the_same_number_of_slots(
    budgets: Budgets,
) -> None:
    greedy, modest = (BudgetView(budgets, delay=0.05, concurrency=5) for _ in range(2))
    sent: list[str] = []

    async def request(name: str, view: BudgetView, times: int) -> None:
        for _ in range(times):
            with await view.acquire(HOST):
                sent.append(name)

    crowd = [asyncio.create_task(request("greedy", greedy, 20)) for _ in range(8)]
    await eventually(lambda: budgets.pages_waiting == len(crowd))
    before = len(sent)
    await request("modest", modest, 8)
    assert sent[before:].count("greedy") <= 10
    for task in crowd:
        task.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)


async def test_the_longer_delay_applies_until_its_crawl_leaves(budgets: Budgets) -> None:
    fast = BudgetView(budgets, delay=0.05)
    granted: list[float] = []
    with BudgetView(budgets, delay=0.3) as slow:
        for view in (slow, fast, fast, slow):
            with await view.acquire(HOST) as slot:
                granted.append(slot.granted_at)
    assert min(later - earlier for earlier, later in pairwise(granted)) >= 0.27 - 1e-6
    account = budgets.account_of(HOST)
    assert account is not None
    assert account.crawls.delay == 0.05


@pytest.mark.usefixtures("short_grace")
async def test_a_setting_of_the_domain_overrides_the_crawls(
    database: Database, budgets: Budgets
) -> None:
    await add_row(database, max_concurrent_requests=3)
    view = BudgetView(budgets, delay=0.0, concurrency=1)
    slots = [await view.acquire(HOST) for _ in range(3)]
    with pytest.raises(HostThrottled):
        await view.acquire(HOST, max_wait=0.1)
    for slot in slots:
        slot.release()


async def test_a_crawl_learns_the_pace_of_its_hosts(budgets: Budgets) -> None:
    view, paces = BudgetView(budgets, delay=2.0, concurrency=4), list[HostPace]()
    view.on_slot = lambda host, pace: paces.append(pace) if host == HOST else None
    with await view.acquire(HOST) as slot:
        pass
    [pace] = paces
    assert (pace.delay, pace.connections) == (2.0, 4)
    assert pace.next_at >= slot.granted_at + 2.0
    assert pace.reason == f"rate-limited by {HOST} (one request every 2 s)"
    assert view.waits() == []
