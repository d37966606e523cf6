"""The prepared queries over the files of the lake; tests/services runs them on a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.site_rows import add_job, settle
from forager.analytics.answers import MOST_DAYS, QueryResult, answer
from forager.analytics.lake import lake_folder
from forager.analytics.sync import sync
from forager.db.database import Database
from forager.settings import Settings
from support.sql import execute

SHOP = """
    INSERT INTO domains (domain_name, base_url) VALUES ('shop.example', 'https://shop.example');
    INSERT INTO proxies (proxy_url, proxy_port) VALUES ('proxy.example', 8080);
    INSERT INTO products (domain_id, url, url_hash, product_name, brand, content_hash, parser,
                          parser_version, updated_at)
    SELECT d.id, 'https://shop.example/' || n, sha256(n::text::bytea), 'Lamp ' || n,
           CASE WHEN n <= 2 THEN 'Lumen' ELSE 'O''Neill, "&" Söhne' END, '', 'generic', '1',
           now() - interval '1 day'
      FROM domains d, generate_series(1, 3) AS n
     ORDER BY n;
    INSERT INTO price_history (product_id, price, currency, recorded_at)
    SELECT p.id, c.price, c.currency, now() - c.days * interval '1 day'
      FROM products p
      JOIN (VALUES (1, 100, 'EUR', 5), (1, 110, 'EUR', 4), (1, 55, 'EUR', 3), (1, 55, 'EUR', 2),
                   (2, 10, 'EUR', 90), (2, 20, 'EUR', 80), (2, 20, 'USD', 2), (2, NULL, 'USD', 1),
                   (3, 50, NULL, 5), (3, 60, NULL, 1)) AS c (number, price, currency, days)
        ON p.product_name = 'Lamp ' || c.number;
    INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome, proxy_id,
                               duration_ms, size, finished_at)
    SELECT n, d.id, 'download', 1, 1,
           (ARRAY['ok', 'unchanged', 'failed', 'rested'])[n % 4 + 1],
           CASE WHEN n % 2 = 0 THEN p.id END, 100, 1000, now() - interval '1 day'
      FROM domains d, proxies p, generate_series(1, 8) AS n;
    INSERT INTO extractions (task_id, domain_id, url, parser, parser_version, outcome, confidence,
                             created_at)
    SELECT n, d.id, 'https://shop.example/' || n, 'generic', '1',
           CASE WHEN n = 1 THEN 'failed' ELSE 'ok' END, CASE WHEN n > 1 THEN 0.5 END,
           date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '1 day'
      FROM domains d, generate_series(1, 4) AS n;
"""
PRICED = """
    INSERT INTO proxies (proxy_url, proxy_port, proxy_username, cost_amount, cost_unit,
                         cost_currency)
    VALUES ('proxy.example', 8080, 'a', 1, 'request', 'EUR'),
           ('proxy.example', 8080, 'b', 100, 'request', 'JPY'),
           ('costly.example', 1, NULL, 900, 'request', 'EUR');
    INSERT INTO proxy_usage (day, domain_name, proxy_id, requests, bytes)
    SELECT (now() AT TIME ZONE 'UTC')::date, 'shop.example', id, 10, 1000 FROM proxies;
    UPDATE proxies SET updated_at = now() - interval '1 minute';
    UPDATE proxy_usage SET updated_at = now() - interval '1 minute';
"""


@pytest.fixture
async def folder(database: Database, settings: Settings) -> Path:
    """A lake with a shop in it."""
    await run_all(database, SHOP)
    await sync(database, settings)
    return lake_folder(settings)


async def run_all(database: Database, statements: str) -> None:
    async with database.connection() as connection:
        for statement in statements.split(";\n"):
            if statement.strip():
                await connection.execute(statement.encode())


def by_first(found: QueryResult) -> dict[str, dict[str, object]]:
    return {str(row[0]): dict(zip(found.columns, row, strict=True)) for row in found.rows}


@pytest.mark.usefixtures("folder")
async def test_price_changes_by_brand(settings: Settings) -> None:
    found = by_first(await answer(settings, "price-changes", days=30))
    assert found.keys() == {"Lumen", 'O\'Neill, "&" Söhne'}
    # same prices, other currencies, and prices that are not known are no changes
    lumen = found["Lumen"]
    assert (lumen["changes"], lumen["products"], lumen["rises"], lumen["falls"]) == (2, 1, 1, 1)
    assert (lumen["largest_fall_percent"], lumen["largest_rise_percent"]) == (-50, 10)
    assert found['O\'Neill, "&" Söhne']["median_percent"] == 20
    longer = by_first(await answer(settings, "price-changes", days=365))
    assert longer["Lumen"]["changes"] == 3


@pytest.mark.usefixtures("folder")
async def test_crawl_cost_by_domain_and_proxy(settings: Settings) -> None:
    found = await answer(settings, "crawl-cost")
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    listed = [(row["domain"], row["proxy"], row["requests"], row["failures"]) for row in rows]
    assert listed == [
        ("shop.example", "http://proxy.example:8080", 4, 2),
        ("shop.example", "direct", 2, 0),
    ]
    assert rows[0]["bytes"] == 4000


async def test_pages_of_site_crawls_cost_as_well(database: Database, settings: Settings) -> None:
    """Every second page was asked for twice."""
    job = await add_job(database)
    await settle(database, job, 1, 10)
    await settle(database, await add_job(database, proxy="pool"), 1, 2)
    await execute(
        database,
        "UPDATE crawl_visited SET outcome = 'failed'"
        " WHERE job_id = %s AND url = 'https://docs.example/2'",
        job,
    )
    await sync(database, settings)
    found = await answer(settings, "crawl-cost")
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert [row["proxy"] for row in rows] == ["direct", "pool"]
    one = rows[0]
    assert (one["domain"], one["requests"], one["failures"]) == ("docs.example", 15, 6)
    assert (one["site_pages"], one["tasks"], one["bytes"]) == (10, 0, 10_000)
    assert (one["seconds"], one["mean_ms"]) == (5, 500)


async def test_each_currency_has_its_row(database: Database, settings: Settings) -> None:
    """Three more proxies, two of them of one address that are paid in two currencies."""
    await run_all(database, SHOP + PRICED)
    await sync(database, settings)
    found = await answer(settings, "crawl-cost")
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    # the dearest first, although no page came through it
    listed = [(row["proxy"], row["cost"], row["currency"], row["requests"]) for row in rows]
    assert listed == [
        ("http://costly.example:1", 9000, "EUR", 0),
        ("http://proxy.example:8080", 1000, "JPY", 0),
        ("http://proxy.example:8080", 10, "EUR", 4),
        ("direct", None, None, 2),
    ]


async def test_the_longest_time_has_answers(database: Database, settings: Settings) -> None:
    await settle(database, await add_job(database), 1, 2)
    await sync(database, settings)
    assert (await answer(settings, "crawl-cost", days=MOST_DAYS)).rows


@pytest.mark.usefixtures("folder")
async def test_parser_quality_day_by_day(settings: Settings) -> None:
    found = await answer(settings, "parser-quality")
    [row] = [dict(zip(found.columns, each, strict=True)) for each in found.rows]
    assert (row["parser"], row["pages"], row["ok"], row["failed"]) == ("generic", 4, 3, 1)
    assert (row["ok_percent"], row["mean_confidence"]) == (75, 0.5)


@pytest.mark.usefixtures("folder")
async def test_a_cut_answer_says_so(settings: Settings) -> None:
    found = await answer(settings, "crawl-cost", limit=1)
    assert (len(found.rows), found.is_cut) == (1, True)


async def test_the_newest_version_of_a_product_counts(
    folder: Path, database: Database, settings: Settings
) -> None:
    await execute(
        database, "UPDATE products SET brand = 'New', updated_at = now() - interval '1 second'"
    )
    await sync(database, settings)
    assert by_first(await answer(settings, "price-changes")).keys() == {"New"}


async def test_an_empty_lake_is_answered_too(database: Database, settings: Settings) -> None:
    await sync(database, settings)
    for name in ("price-changes", "crawl-cost", "parser-quality"):
        found = await answer(settings, name)
        assert found.rows == ()
        assert found.columns
