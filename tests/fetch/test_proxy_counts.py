"""Requests and failures of proxies are counted and written together."""

from __future__ import annotations

import pytest

from fetch.proxy_rows import LOCAL, add, record
from forager.db.database import Database, SessionLimits
from forager.errors import DatabaseUnavailable
from forager.fetch.proxies.proxy import ProxyTally
from forager.fetch.proxies.service import Proxies, ProxyPool
from forager.secrets import Vault


async def test_counts_are_written_together(proxies: Proxies, pool: ProxyPool) -> None:
    a, b = await add(proxies, "http://a.example", "http://b.example")
    pool.succeeded(a, 100)
    pool.succeeded(a, 200)
    pool.failed(a, "refused")
    pool.failed(b, "a NUL \x00 and a surrogate \ud800 " + "x" * 10_000)
    assert (await record(proxies, a)).success_count == 0
    assert await pool.run_once() == []
    one, two = (await proxies.page(limit=2)).items
    assert (one.success_count, one.total_failures, one.failure_count) == (2, 1, 1)
    assert (one.avg_response_time_ms, one.last_failure_reason) == (150, "refused")
    assert None not in (one.last_success_at, one.last_failure_at)
    assert (two.success_count, two.avg_response_time_ms, two.last_success_at) == (0, None, None)
    pool.succeeded(a, 300)
    await pool.run_once()
    one = await record(proxies, a)
    assert (one.avg_response_time_ms, one.total_failures, one.failure_count) == (200, 1, 0)


async def test_an_absurd_time_spoils_nothing(proxies: Proxies, pool: ProxyPool) -> None:
    (a,) = await add(proxies, "http://a.example")
    pool.succeeded(a, 1e300)
    pool.succeeded(a, -5)
    await pool.run_once()
    assert (await record(proxies, a)).success_count == 2


async def test_the_rest_is_written_when_the_pool_closes(proxies: Proxies, pool: ProxyPool) -> None:
    (a,) = await add(proxies, "http://a.example")
    async with pool:
        pool.succeeded(a, 5)
    assert (await record(proxies, a)).success_count == 1


async def test_counts_survive_a_database_that_cannot_take_them(
    proxies: Proxies, database: Database, database_url: str, vault: Vault
) -> None:
    (a,) = await add(proxies, "http://a.example")
    async with Database(database_url, limits=SessionLimits(lock_ms=50)) as hurried:
        pool = ProxyPool(hurried, vault, LOCAL)
        pool.failed(a, "first")
        async with database.transaction() as connection:
            await connection.execute("LOCK TABLE proxies IN EXCLUSIVE MODE")
            with pytest.raises(DatabaseUnavailable):
                await pool.run_once()
        pool.failed(a, "second")
        await pool.run_once()
    kept = await record(proxies, a)
    assert (kept.total_failures, kept.failure_count) == (2, 2)
    assert kept.last_failure_reason == "second"


def test_tallies_add_up_in_the_order_things_happened() -> None:
    earlier, later = ProxyTally(), ProxyTally()
    earlier.succeed(10)
    earlier.fail("one")
    later.fail("two")
    assert earlier.followed_by(later) == ProxyTally(1, 2, 2, 10, "two")
    later.succeed(20)
    assert earlier.followed_by(later) == ProxyTally(2, 2, 0, 30, "two")


async def test_counts_of_a_removed_proxy_are_dropped(proxies: Proxies, pool: ProxyPool) -> None:
    a, b = await add(proxies, "http://a.example", "http://b.example")
    await proxies.remove(a)
    for proxy_id in (a, b):
        pool.failed(proxy_id, "refused")
    await pool.run_once()
    assert (await record(proxies, b)).failure_count == 1
