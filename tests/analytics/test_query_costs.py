"""The money in what crawling costs, compared with the report of proxies."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from analytics.site_rows import add_job, settle
from forager.analytics.answers import answer
from forager.analytics.sync import sync
from forager.db.database import Database
from forager.fetch.proxies.costs import UsageLog, report_costs
from forager.fetch.proxies.proxy import ProxySpec, parse_cost
from forager.fetch.proxies.service import Proxies, ProxyChanges
from forager.secrets import Vault
from forager.settings import Settings
from support.sql import execute

Rows = dict[tuple[str, str], dict[str, Any]]


async def crawl_cost(settings: Settings) -> Rows:
    found = await answer(settings, "crawl-cost", days=90)
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    return {(row["domain"], row["proxy"]): row for row in rows}


async def age(database: Database) -> None:
    """Rows are a minute old."""
    async with database.connection() as connection:
        for table in ("proxies", "proxy_usage"):
            await connection.execute(
                f"UPDATE {table} SET updated_at = updated_at - interval '1 minute'"
            )


@pytest.fixture
async def prices(database: Database, settings: Settings) -> dict[str, int]:
    """Proxies by what each costs; they have been there for a year."""
    proxies, ids = Proxies(database, Vault(settings)), {}
    for number, cost in enumerate(("0.001/request", "2/GB", "")):
        added = await proxies.add(ProxySpec.parse(f"http://u:p@proxy{number}.example:1"))
        if cost:
            await proxies.set(added.id, ProxyChanges(cost=parse_cost(cost)))
        ids[cost] = added.id
    await execute(database, "UPDATE proxies SET created_at = now() - interval '1 year'")
    return ids


async def test_money_is_that_of_the_bill(
    database: Database, settings: Settings, prices: dict[str, int]
) -> None:
    log = UsageLog(database)
    for domain, requests, size in (("a.example", 30, 50_000_000), ("b.example", 10, 10_000_000)):
        for proxy_id in prices.values():
            for _ in range(requests):
                log.add(proxy_id, domain, size)
    await log.run_once()
    await settle(database, await add_job(database), 1, 5)
    await age(database)
    await sync(database, settings)
    rows = await crawl_cost(settings)
    bill = await report_costs(database, days=90)
    assert len(bill.lines) == 6
    for line in bill.lines:
        row = rows[line.domain, line.proxy.replace("u:***@", "")]
        if line.cost is None:
            assert (row["cost"], row["currency"]) == (None, None)
            continue
        assert Decimal(str(row["cost"])) == line.cost
        assert (row["currency"], row["requests"]) == ("USD", 0)
    # what went directly costs nothing that is known
    direct = rows["docs.example", "direct"]
    assert (direct["cost"], direct["site_pages"]) == (None, 5)


async def test_use_that_grows_and_prices_that_change_are_copied_again(
    database: Database, settings: Settings, prices: dict[str, int]
) -> None:
    proxy = prices["0.001/request"]
    log = UsageLog(database)
    log.add(proxy, "a.example", 1)
    await log.run_once()
    await age(database)
    await sync(database, settings)
    key = ("a.example", "http://proxy0.example:1")
    assert (await crawl_cost(settings))[key]["cost"] == pytest.approx(0.001)
    log.add(proxy, "a.example", 1)
    await log.run_once()
    await Proxies(database, Vault(settings)).set(proxy, ProxyChanges(cost=parse_cost("1/request")))
    async with database.connection() as connection:
        for table in ("proxies", "proxy_usage"):
            await connection.execute(
                f"UPDATE {table} SET updated_at = updated_at - interval '10 seconds'"
            )
    await sync(database, settings)
    assert (await crawl_cost(settings))[key]["cost"] == pytest.approx(2.0)
