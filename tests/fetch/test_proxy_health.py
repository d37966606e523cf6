"""A failing proxy is turned off, probed, and turned on again."""

from __future__ import annotations

import asyncio

import pytest

from fetch.proxy_rows import OPTIONS, PASSWORD, add, crawl_once, fail, make_due, picked_id, record
from forager.db.database import Database
from forager.errors import Retry
from forager.fetch.client import Client
from forager.fetch.proxies.probe import ProxyProber
from forager.fetch.proxies.proxy import ProxyState
from forager.fetch.proxies.service import FAILURES_ALLOWED, Proxies, ProxyPool
from forager.fetch.response import Request
from forager.fetch.sender import Sender
from forager.secrets import Vault
from servers.hostile import HostileServer
from servers.proxies import HttpProxy, Socks5Proxy
from support.budgets import CrawlBudgets
from support.sql import execute, fetch_value


async def seconds_to_probe(database: Database, proxy_id: int) -> float:
    return float(
        await fetch_value(
            database,
            "SELECT extract(epoch FROM next_probe_at - now()) FROM proxies WHERE id = %s",
            proxy_id,
        )
    )


class MortalProxy(Socks5Proxy):
    """Closes every connection while it is dead."""

    dead = False

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.dead:
            await super().handle(reader, writer)


class SilentProxy(HttpProxy):
    """Records every request, and closes the connection."""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")


async def test_a_host_that_hangs_up_is_identified_by_another_proxy(
    proxies: Proxies, pool: ProxyPool, database: Database
) -> None:
    async with (
        HostileServer() as site,
        SilentProxy() as silent,
        HttpProxy() as sound,
        Client(OPTIONS) as client,
        CrawlBudgets(database, delay=0.0, concurrency=5) as budgets,
    ):
        sender = Sender(client, budgets, pool)
        bad, good = await add(
            proxies, f"http://127.0.0.1:{silent.port}", f"http://127.0.0.1:{sound.port}"
        )
        for _ in range(2):
            assert (await sender.send(Request(f"{site.url}/ok"), None)).status == 200
        # a server that closes the connection does so for every proxy: none is at fault
        with pytest.raises(Retry):
            await sender.send(Request(f"{site.url}/reset"), None)
    await pool.run_once()
    kept = {one.id: one for one in (await proxies.page(limit=10)).items}
    assert kept[bad].total_failures >= 1
    assert (kept[good].total_failures, kept[good].success_count) == (0, 2)


async def test_a_dying_proxy_is_turned_off_and_comes_back(
    proxies: Proxies, pool: ProxyPool, prober: ProxyProber, database: Database
) -> None:
    async with (
        HostileServer() as site,
        MortalProxy("ann", PASSWORD) as mortal,
        Client(OPTIONS) as client,
    ):
        # a kept-alive connection would outlive the proxy's death
        url = f"{site.url}/close"
        (a,) = await add(proxies, f"socks5://ann:{PASSWORD}@127.0.0.1:{mortal.port}")
        assert await crawl_once(pool, client, f"{site.url}/ok") == a
        await client.close()
        mortal.dead = True
        for _ in range(FAILURES_ALLOWED):
            assert await crawl_once(pool, client, url) == a
        assert await pool.run_once() == []
        assert (await record(proxies, a)).state is ProxyState.ACTIVE

        assert await crawl_once(pool, client, url) == a
        (off,) = await pool.run_once()
        assert (off.id, off.state, off.failure_count) == (a, ProxyState.FAILING, 11)
        assert (off.disabled_reason or "").startswith("11 failures in a row, the last: the proxy")
        assert await crawl_once(pool, client, url) is None

        assert await prober.run_once() == []  # not due yet
        await make_due(database, a)
        (result,) = await prober.run_once()
        assert not result.ok
        assert (await record(proxies, a)).state is ProxyState.FAILING
        assert await prober.run_once() == []

        mortal.dead = False
        await make_due(database, a)
        (result,) = await prober.run_once()
        assert result.ok
        back = await record(proxies, a)
        assert (back.state, back.disabled_reason, back.failure_count) == (
            ProxyState.ACTIVE,
            None,
            0,
        )
        assert await crawl_once(pool, client, f"{site.url}/ok") == a
        assert mortal.targets[-1] == f"127.0.0.1:{site.port}"


async def test_the_background_writer_turns_a_dead_proxy_off_at_once(
    proxies: Proxies, pool: ProxyPool
) -> None:
    (a,) = await add(proxies, "http://a.example")
    async with pool:
        for _ in range(FAILURES_ALLOWED + 1):
            pool.failed(a, "refused")
        while await picked_id(pool) is not None:
            await asyncio.sleep(0.01)
    assert (await record(proxies, a)).failure_count == FAILURES_ALLOWED + 1


async def test_a_success_in_between_starts_the_count_again(
    proxies: Proxies, pool: ProxyPool
) -> None:
    (a,) = await add(proxies, "http://a.example")
    for _ in range(FAILURES_ALLOWED):
        pool.failed(a, "refused")
    await pool.run_once()
    pool.succeeded(a, 1)
    for _ in range(FAILURES_ALLOWED):
        pool.failed(a, "refused")
    assert await pool.run_once() == []
    pool.failed(a, "refused")
    assert [off.id for off in await pool.run_once()] == [a]


def is_jittered(wait: float, longest: float) -> bool:
    """Whether it is half to all of a wait, less some seconds since it began."""
    return longest / 2 - 10 < wait <= longest


async def test_each_probe_in_vain_waits_longer_until_a_request_succeeds(
    proxies: Proxies, pool: ProxyPool, prober: ProxyProber, database: Database
) -> None:
    async with MortalProxy() as mortal:
        mortal.dead = True
        (a,) = await add(proxies, f"socks5://127.0.0.1:{mortal.port}")
        await fail(pool, a)
        waits = [await seconds_to_probe(database, a)]
        for _ in range(9):
            await make_due(database, a)
            await prober.run_once()
            waits.append(await seconds_to_probe(database, a))
        longest = [30 * times for times in (1, 1, 2, 4, 8, 16, 32, 64, 120, 120)]
        assert all(map(is_jittered, waits, longest)), waits
        mortal.dead = False
        await make_due(database, a)
        await prober.run_once()
        # the door opens, but nothing goes through: it must not flap
        await fail(pool, a)
        assert is_jittered(await seconds_to_probe(database, a), 3600)
        pool.succeeded(a, 1)
        await proxies.recovered(a)
        await pool.run_once()
        await fail(pool, a)
        assert is_jittered(await seconds_to_probe(database, a), 30)


async def test_many_failures_at_one_moment_do_not_turn_a_proxy_off(
    proxies: Proxies, pool: ProxyPool, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.fetch.proxies.service.QUIET_SECONDS", 30.0)
    (a,) = await add(proxies, "http://a.example")
    pool.succeeded(a, 1)
    for _ in range(FAILURES_ALLOWED + 1):
        pool.failed(a, "refused")
    assert await pool.run_once() == []
    await execute(database, "UPDATE proxies SET last_success_at = now() - interval '1 min'")
    await fail(pool, a)


async def test_a_slow_proxy_gets_fewer_requests(proxies: Proxies, pool: ProxyPool) -> None:
    slow, fast = await add(proxies, "http://slow.example", "http://fast.example")
    pool.succeeded(slow, 60_000)
    pool.succeeded(fast, 1)
    await pool.run_once()
    assert [await picked_id(pool) for _ in range(4)] == [slow, fast, fast, fast]


async def test_two_probers_do_not_probe_the_same_proxy(
    proxies: Proxies, pool: ProxyPool, prober: ProxyProber, database: Database, vault: Vault
) -> None:
    async with Socks5Proxy() as well:
        (a,) = await add(proxies, f"socks5://127.0.0.1:{well.port}")
        await fail(pool, a)
        await make_due(database, a)
        other = ProxyProber(database, vault, OPTIONS)
        results = await asyncio.gather(prober.run_once(), other.run_once())
    assert [result.proxy_id for some in results for result in some] == [a]


async def test_what_a_person_turned_off_stays_off(
    proxies: Proxies, pool: ProxyPool, prober: ProxyProber, database: Database
) -> None:
    (a,) = await add(proxies, "socks5://127.0.0.1:9")
    await fail(pool, a)
    off = await proxies.disable(a, "too expensive")
    assert (off.state, off.disabled_reason) == (ProxyState.DISABLED, "too expensive")
    assert not await proxies.recovered(a)
    assert await prober.run_once() == []
    pool.failed(a, "still in flight")
    assert await pool.run_once() == []
    assert (await record(proxies, a)).disabled_reason == "too expensive"


async def test_a_new_password_brings_the_probe_forward(
    proxies: Proxies, pool: ProxyPool, prober: ProxyProber
) -> None:
    async with HttpProxy("ann", PASSWORD) as server:
        (a,) = await add(proxies, f"http://ann:wrong@127.0.0.1:{server.port}")
        await fail(pool, a)
        assert await prober.run_once() == []
        await add(proxies, f"http://ann:{PASSWORD}@127.0.0.1:{server.port}")
        assert [result.ok for result in await prober.run_once()] == [True]
