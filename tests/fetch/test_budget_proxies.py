"""Each pair of host and proxy has a separate pace."""

from __future__ import annotations

import asyncio

import pytest

from fetch.budget_rows import HOST, LATE, MICROSECOND, Open, add_row, closest, column, granted
from forager.db.database import Database
from forager.errors import RotateProxy
from forager.fetch.budgets.exchange import PAIR_DELAY
from support.sql import execute


async def add_proxy(database: Database, port: int) -> int:
    rows = await execute(
        database,
        "INSERT INTO proxies (proxy_url, proxy_port) VALUES ('proxy.example', %s) RETURNING id",
        port,
    )
    return int(rows[0][0])


async def test_each_proxy_keeps_a_separate_pace(database: Database, open_budgets: Open) -> None:
    proxies = [await add_proxy(database, port) for port in (1, 2)]
    one, other = await open_budgets(), await open_budgets()
    times = await asyncio.gather(
        granted(one, proxies[0], 3), granted(other, proxies[0], 3), granted(one, proxies[1], 3)
    )
    gap = PAIR_DELAY * (1 - LATE) - MICROSECOND
    assert closest([*times[0], *times[1]]) >= gap
    assert closest(times[2]) >= gap


async def test_a_domain_may_set_the_rate_of_each_proxy(
    database: Database, open_budgets: Open
) -> None:
    await add_row(database, proxy_rate=2.5, crawl_delay_seconds=0.3)
    budgets = await open_budgets()
    times = await granted(budgets, await add_proxy(database, 1), 3)
    assert closest(times) >= 0.4 * (1 - LATE) - MICROSECOND


async def test_the_total_holds_for_all_proxies(database: Database, open_budgets: Open) -> None:
    proxies = [await add_proxy(database, port) for port in (1, 2)]
    delay = 0.1
    budgets = await open_budgets(delay=delay)
    times = await asyncio.gather(*(granted(budgets, proxy, 3) for proxy in proxies))
    assert closest([*times[0], *times[1]]) >= delay * (1 - LATE) - MICROSECOND
    for each in times:
        assert closest(each) >= PAIR_DELAY * (1 - LATE) - MICROSECOND


async def test_a_domain_may_count_per_proxy_alone(database: Database, open_budgets: Open) -> None:
    await add_row(database, crawl_delay_seconds=0.3, per_proxy_only=True)
    proxies = [await add_proxy(database, port) for port in (1, 2)]
    budgets = await open_budgets()
    before = await column(database, "next_slot_at")
    times = await asyncio.gather(*(granted(budgets, proxy, 3) for proxy in proxies))
    for each in times:
        assert closest(each) >= 0.3 * (1 - LATE) - MICROSECOND
    assert await column(database, "next_slot_at") == before


async def test_a_proxy_that_was_removed(open_budgets: Open) -> None:
    budgets = await open_budgets()
    with pytest.raises(RotateProxy, match="removed"):
        await budgets.acquire(HOST, proxy_id=99)
