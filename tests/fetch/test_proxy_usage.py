"""What goes through proxies is counted for the domain that it was for, and paid by it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest

from fetch.proxy_rows import LOCAL, OPTIONS
from forager.db.database import Database
from forager.db.retention import delete_rows
from forager.errors import InvalidInput, NotFound, Retry
from forager.fetch.client import Client
from forager.fetch.domains.service import DomainChanges, Domains
from forager.fetch.proxies.costs import CostLine, UsageLog, report_costs
from forager.fetch.proxies.probe import ProxyProber
from forager.fetch.proxies.proxy import ProxySpec, parse_cost
from forager.fetch.proxies.service import Proxies, ProxyChanges, ProxyPool
from forager.fetch.proxies.store.usage import OLD_USAGE
from forager.fetch.response import Request
from forager.fetch.sender import Sender
from forager.secrets import Vault
from servers.hostile import HostileServer
from servers.proxies import HttpProxy
from support.budgets import CrawlBudgets
from support.sql import execute


@pytest.fixture
async def site() -> AsyncIterator[HostileServer]:
    async with HostileServer() as site:
        yield site


async def add(proxies: Proxies, address: str, cost: str | None = None) -> int:
    added = await proxies.add(ProxySpec.parse(address), allow_private=True)
    if cost is not None:
        await proxies.set(added.id, ProxyChanges(cost=parse_cost(cost)))
    return added.id


async def usage(database: Database) -> list[tuple[str, int, int, int]]:
    return await execute(
        database,
        """
            SELECT domain_name, proxy_id, sum(requests)::int, sum(bytes)::int
              FROM proxy_usage GROUP BY 1, 2 ORDER BY 1, 2
            """,
    )


async def used(database: Database, *rows: tuple[str, int, int, int]) -> None:
    """Requests and bytes of hosts through proxies, as a pool would write them."""
    log = UsageLog(database)
    for host, proxy_id, requests, size in rows:
        for number in range(requests):
            log.add(proxy_id, host, size if number == 0 else 0)
    await log.run_once()


async def test_each_request_through_a_proxy_is_counted(
    proxies: Proxies, database: Database, vault: Vault, site: HostileServer
) -> None:
    host = f"127.0.0.1:{site.port}"
    async with HttpProxy() as server:
        proxy = await add(proxies, f"http://127.0.0.1:{server.port}")
        async with (
            ProxyPool(database, vault, LOCAL) as pool,
            Client(OPTIONS) as client,
            CrawlBudgets(database, delay=0.0, concurrency=5) as budgets,
        ):
            sender = Sender(client, budgets, pool)
            first = await sender.send(Request(f"{site.url}/ok"), None)
            again = await sender.send(Request(f"{site.url}/ok"), None)
            # it was answered, so it went through the proxy, although the answer is dropped
            assert (await sender.send(Request(f"{site.url}/status/404"), None)).status == 404
        [(name, proxy_id, requests, size)] = await usage(database)
    assert (name, proxy_id, requests) == (host, proxy, 3)
    assert size >= first.wire_size + again.wire_size > 0


async def test_what_a_proxy_refuses_is_not_counted(
    proxies: Proxies, database: Database, vault: Vault, site: HostileServer
) -> None:
    async with HttpProxy() as server:
        address = f"http://127.0.0.1:{server.port}"
    await add(proxies, address)
    async with (
        ProxyPool(database, vault, LOCAL) as pool,
        Client(OPTIONS) as client,
        CrawlBudgets(database, delay=0.0, concurrency=5) as budgets,
    ):
        with pytest.raises(Retry):
            await Sender(client, budgets, pool).send(Request(f"{site.url}/ok"), None)
    assert await usage(database) == []


async def test_the_domain_that_applies_has_the_traffic(
    proxies: Proxies, database: Database
) -> None:
    proxy = await add(proxies, "http://proxy.example:1")
    await Domains(database).add("example.com")
    await used(
        database,
        ("www.example.com", proxy, 2, 10),
        ("example.com", proxy, 1, 5),
        ("other.org", proxy, 1, 7),
    )
    await used(database, ("example.com", proxy, 1, 100))
    assert await usage(database) == [("example.com", proxy, 4, 115), ("other.org", proxy, 1, 7)]
    for host in ("example.com", "www.example.com"):
        [line] = (await report_costs(database, domain=host)).lines
        assert (line.domain, line.requests) == ("example.com", 4)


async def test_counts_of_a_removed_proxy_are_dropped_with_it(
    proxies: Proxies, database: Database
) -> None:
    kept, gone = await add(proxies, "http://a.example:1"), await add(proxies, "http://b.example:1")
    await used(database, ("shop.example", gone, 1, 1))
    await proxies.remove(gone)
    await used(database, ("shop.example", gone, 1, 1), ("shop.example", kept, 1, 1))
    assert await usage(database) == [("shop.example", kept, 1, 1)]


async def test_many_writers_lose_nothing(proxies: Proxies, database: Database) -> None:
    ids = [await add(proxies, f"http://proxy.example:{port}") for port in range(1, 6)]
    hosts = [f"shop{number}.example" for number in range(5)]

    async def write(turn: int) -> None:
        rows = [(host, proxy, 1, turn) for host in hosts for proxy in ids]
        await used(database, *(rows if turn % 2 else reversed(rows)))

    await asyncio.gather(*(write(turn) for turn in range(6)))
    assert {(requests, size) for _, _, requests, size in await usage(database)} == {(6, 15)}


async def test_what_could_not_be_written_is_written_later(
    proxies: Proxies, database: Database
) -> None:
    proxy = await add(proxies, "http://proxy.example:1")
    log = UsageLog(database)
    log.add(proxy, "shop.example", 3)
    await execute(database, "ALTER TABLE proxy_usage RENAME TO elsewhere")
    with pytest.raises(Exception, match="proxy_usage"):
        await log.run_once()
    log.add(proxy, "shop.example", 4)
    await execute(database, "ALTER TABLE elsewhere RENAME TO proxy_usage")
    await log.run_once()
    await log.run_once()
    assert await usage(database) == [("shop.example", proxy, 2, 7)]


def paid(lines: list[CostLine]) -> dict[tuple[str | None, int], Decimal | None]:
    return {(line.domain, line.proxy_id): line.cost for line in lines}


async def test_a_report_has_the_cost_of_each_domain(proxies: Proxies, database: Database) -> None:
    by_request = await add(proxies, "http://ann:secret@a.example:1", "0.5/request")
    by_size = await add(proxies, "http://b.example:1", "3.5/GB")
    unknown = await add(proxies, "http://c.example:1")
    await used(
        database,
        ("x.example", by_request, 4, 1000),
        ("x.example", by_size, 1, 2_000_000_000),
        ("y.example", by_size, 1, 100),
        ("y.example", unknown, 9, 9),
    )
    report = await report_costs(database)
    assert paid(report.lines) == {
        ("x.example", by_size): Decimal(7),
        ("x.example", by_request): Decimal(2),
        ("y.example", by_size): Decimal(0),
        ("y.example", unknown): None,
    }
    assert report.totals == {"USD": Decimal(9)}
    assert (report.requests, report.bytes, report.count) == (15, 2_000_001_109, 4)
    assert all("secret" not in line.proxy for line in report.lines)

    mine = await report_costs(database, domain="x.example")
    assert paid(mine.lines) == {("x.example", by_size): 7, ("x.example", by_request): 2}

    top = await report_costs(database, limit=1)
    assert (top.is_cut, top.count, len(top.lines)) == (True, 4, 1)
    assert (top.lines[0].domain, top.lines[0].proxy_id) == ("x.example", by_size)
    assert top.totals == {"USD": Decimal(9)}


async def test_old_use_is_neither_shown_nor_kept(proxies: Proxies, database: Database) -> None:
    proxy = await add(proxies, "http://a.example:1", "1/request")
    await used(database, ("shop.example", proxy, 5, 5))
    await execute(database, "UPDATE proxy_usage SET day = day - 40")
    assert (await report_costs(database, days=35)).lines == []
    assert len((await report_costs(database, days=45)).lines) == 1
    async with database.connection() as connection:
        assert await delete_rows(connection, OLD_USAGE, days=45, limit=10) == 0
        assert await delete_rows(connection, OLD_USAGE, days=35, limit=10) == 1
    assert await usage(database) == []


async def test_the_period_of_a_bill_is_bounded(database: Database) -> None:
    for days, limit in ((0, 1), (100_000, 1), (1, 0), (1, 10_000)):
        with pytest.raises(InvalidInput):
            await report_costs(database, days=days, limit=limit)
    assert (await report_costs(database)).lines == []


# --- regions ---------------------------------------------------------------------------------


async def test_a_pool_hands_out_what_is_tied_to_its_region_or_to_none(
    proxies: Proxies, database: Database, vault: Vault
) -> None:
    free, european = await add(proxies, "http://a.example:1"), await add(proxies, "http://b.ex:1")
    changed = await proxies.set(european, ProxyChanges(region="eu"))
    assert (changed.region, changed.cost) == ("eu", None)

    async def given(region: str | None) -> set[int]:
        pool, found = ProxyPool(database, vault, LOCAL, region=region), set[int]()
        while (picked := await pool.pick("shop.example", found)) is not None:
            found.add(picked.id)
        return found

    assert await given(None) == {free}
    assert await given("us") == {free}
    assert await given("eu") == {free, european}
    await proxies.set(european, ProxyChanges(region=None))
    assert await given(None) == {free, european}
    with pytest.raises(InvalidInput, match="not the name of a region"):
        await proxies.set(european, ProxyChanges(region="E U"))
    with pytest.raises(NotFound):
        await proxies.set(999, ProxyChanges(region="eu"))


async def test_failing_proxies_are_probed_from_their_region(
    proxies: Proxies, database: Database, vault: Vault
) -> None:
    async with HttpProxy() as server:
        proxy = await add(proxies, f"http://127.0.0.1:{server.port}")
        await proxies.set(proxy, ProxyChanges(region="eu"))
        await execute(
            database, "UPDATE proxies SET is_active = false, next_probe_at = now() - interval '1 s'"
        )
        assert await ProxyProber(database, vault, OPTIONS).run_once() == []
        (result,) = await ProxyProber(database, vault, OPTIONS, region="eu").run_once()
    assert (result.proxy_id, result.ok) == (proxy, True)


async def test_domains_are_tied_listed_and_let_go(database: Database) -> None:
    domains = Domains(database)
    made = await domains.add("shop.example", DomainChanges(region="eu-west-1"))
    await domains.add("other.example")
    assert made.region == "eu-west-1"
    found = await domains.list_domains(region="eu-west-1")
    assert [each.domain_name for each in found.items] == ["shop.example"]
    # what is not named stays
    assert (await domains.set("shop.example", DomainChanges(delay=2.0))).region == "eu-west-1"
    assert (await domains.set("shop.example", DomainChanges(region=None))).region is None
    for wrong in ("", "EU", "a b", "x" * 33, "eu;", "eü"):
        with pytest.raises(InvalidInput, match="not the name of a region"):
            await domains.set("shop.example", DomainChanges(region=wrong))


async def test_prices_are_set_and_taken_back(proxies: Proxies) -> None:
    proxy = await add(proxies, "http://a.example:1", "0.00000001/request")
    assert str((await proxies.get(proxy)).cost) == "0.00000001 USD/request"
    changed = await proxies.set(proxy, ProxyChanges(cost=parse_cost("3/GB", "EUR")))
    assert str(changed.cost) == "3 EUR/GB"
    # adding it again for another password keeps what it costs
    await proxies.add(ProxySpec.parse("http://a.example:1"))
    assert str((await proxies.get(proxy)).cost) == "3 EUR/GB"
    assert (await proxies.set(proxy, ProxyChanges(cost=None))).cost is None
    for missing in (proxy + 1, 0, 2**63):
        with pytest.raises(NotFound):
            await proxies.get(missing)
