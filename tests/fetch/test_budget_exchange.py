"""CrawlBudgets exchange permits with the database, and share them between holders."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from fetch.budget_rows import HOST, Open, add_row, exchange_with
from forager.db.database import Database
from forager.fetch.budgets import store
from forager.fetch.budgets.exchange import Answers, SlotRequest
from support.budgets import CrawlBudgets
from support.sql import execute
from support.waiting import eventually


async def test_a_lost_database_is_waited_for(database: Database, open_budgets: Open) -> None:
    budgets = await open_budgets(delay=0.05)
    for _ in range(3):
        with await budgets.acquire(HOST):
            await execute(
                database,
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()
                """,
            )


async def test_leaving_gives_the_permits_back(database: Database, open_budgets: Open) -> None:
    budgets = await open_budgets()
    (await budgets.acquire(HOST)).release()
    assert await execute(database, "SELECT permits FROM domain_permits") == [(5,)]
    await budgets.__aexit__()
    assert await execute(database, "SELECT permits FROM domain_permits") == []


async def test_many_hosts_are_exchanged_together(
    open_budgets: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[set[int]] = []
    exchange = store.exchange

    async def count(*values: Any, waits: bool) -> store.ExchangeResult:
        batches.append({each.domain_id for each in values[2]})
        return await exchange(*values, waits=waits)

    monkeypatch.setattr(store, "exchange", count)
    budgets = await open_budgets(delay=1.0)
    async with budgets._exchanging:
        waiting = [asyncio.create_task(budgets.acquire(f"{n}.example")) for n in range(50)]
        await eventually(lambda: budgets.pages_waiting == 50)
    for slot in await asyncio.gather(*waiting):
        slot.release()
    assert max(map(len, batches)) == 50


async def test_a_locked_row_delays_no_other_host(database: Database, open_budgets: Open) -> None:
    await add_row(database, "locked.example")
    budgets = await open_budgets()
    async with database.transaction() as connection:
        await connection.execute(
            "SELECT FROM domains WHERE domain_name = 'locked.example' FOR UPDATE"
        )
        waiting = asyncio.create_task(budgets.acquire("locked.example"))
        await eventually(lambda: budgets.pages_waiting == 1)
        for _ in range(3):
            (await budgets.acquire(HOST)).release()
        assert not waiting.done()
    (await waiting).release()


async def test_a_process_sends_no_more_than_it_can(database: Database) -> None:
    async with CrawlBudgets(database, delay=0.0, concurrency=None, at_once=2) as budgets:
        slots = [await budgets.acquire(f"{n}.example") for n in range(2)]
        waiting = asyncio.create_task(budgets.acquire(HOST))
        await eventually(lambda: budgets.waiting_to_send == 1)
        assert budgets.pages_waiting == 0  # its host could be sent a request
        slots[0].release()
        (await waiting).release()


async def share(database: Database, domain_id: int, holder: UUID, busy: int = 0) -> int:
    wanted = SlotRequest(
        domain_id=domain_id, delay=0.0, concurrency=5, robots_delay=0.0, direct=0, proxied={},
        max_wait=0, busy=busy, answers=Answers(),
    )  # fmt: skip
    return (await exchange_with(database, holder, wanted)).permits


async def test_a_newcomer_waits_until_the_others_shrank(database: Database) -> None:
    domain_id = await add_row(database)
    old, new = uuid4(), uuid4()
    assert await share(database, domain_id, old) == 5
    assert await share(database, domain_id, new) == 0
    smaller = await share(database, domain_id, old, busy=4)
    assert smaller in (2, 3)
    assert await share(database, domain_id, new) == 1  # four connections are still open
    await share(database, domain_id, old)
    assert await share(database, domain_id, new) + await share(database, domain_id, old) == 5


async def test_many_holders_never_have_more_than_the_limit(database: Database) -> None:
    domain_id = await add_row(database)
    holders = [uuid4() for _ in range(8)]

    async def all_are_used() -> bool:
        """Whether one round leaves no permit unused: not if their turns changed during it."""
        for holder in holders:
            await share(database, domain_id, holder)
            ((together,),) = await execute(database, "SELECT sum(permits) FROM domain_permits")
            assert together <= 5
        return bool(together == 5)

    for _ in range(3):
        await eventually(all_are_used)


async def test_a_crawl_that_asked_for_less_is_not_starved(open_budgets: Open) -> None:
    greedy = await open_budgets(concurrency=64)
    modest = await open_budgets(concurrency=2)
    (await greedy.acquire(HOST)).release()
    (await modest.acquire(HOST)).release()
    account = modest._hosts[HOST].account
    assert account.permits == 2
