"""Success rates, and the alert when they fall."""

from __future__ import annotations

import pytest

from forager.checks import Level
from forager.db.database import Connection, Database
from forager.db.retention import delete_rows
from forager.errors import InvalidInput
from forager.events.event import EventKind, NewEvent
from forager.events.service import record_events
from forager.metrics.gauges import Gauges
from forager.parsers.checks import check_rates as check_success_rates
from forager.parsers.rates import (
    ParseCount,
    check_rates,
    count_parses,
    degraded_domains,
    list_rates,
    parser_rates,
)
from forager.parsers.store.rates import OLD_RATES
from forager.settings import Settings
from products.rows import insert_domain

SETTINGS = Settings()


async def add_pages(
    connection: Connection,
    domain_id: int,
    good: int,
    bad: int,
    *,
    version: str = "1",
    role: str = "active",
) -> None:
    """Pages as the writer leaves them: an extraction each, and today's count."""
    await connection.execute(
        """
        INSERT INTO extractions (task_id, domain_id, url, parser, parser_version, role, outcome)
        SELECT n, %(domain)s, 'https://shop.example/' || n, 'kiosk', %(version)s, %(role)s,
               CASE WHEN n <= %(good)s THEN 'ok' ELSE 'incomplete' END
          FROM generate_series(1, %(good)s + %(bad)s) AS n
        """,
        {"domain": domain_id, "version": version, "role": role, "good": good, "bad": bad},
    )
    count = ParseCount(domain_id, "kiosk", version, role, good + bad, good)
    await count_parses(connection, [count])


async def age_rates(connection: Connection, days: int) -> None:
    await connection.execute("UPDATE parse_rates SET day = day - %s", (days,))
    await connection.execute(
        "UPDATE extractions SET created_at = created_at - make_interval(days => %s)", (days,)
    )


async def test_counts_of_one_batch_and_of_many_add_up(database: Database) -> None:
    async with database.transaction() as connection:
        one = await insert_domain(connection, "one.example")
        two = await insert_domain(connection, "two.example")
        await count_parses(connection, [])
        await count_parses(
            connection,
            [
                ParseCount(two, "generic", "1", "active", 1, 1),
                ParseCount(one, "kiosk", "1", "active", 1, 0),
                ParseCount(one, "kiosk", "1", "active", 1, 1),
            ],
        )
        await count_parses(connection, [ParseCount(one, "kiosk", "1", "active", 5, 5)])
    page = await list_rates(database)
    assert [(r.domain, r.parser, r.week_pages, r.week_good) for r in page.items] == [
        ("one.example", "kiosk", 7, 6),
        ("two.example", "generic", 1, 1),
    ]


async def test_an_alert_when_the_last_hundred_fall_below_four_fifths(database: Database) -> None:
    async with database.transaction() as connection:
        shop = await insert_domain(connection)
        await add_pages(connection, shop, good=190, bad=10)
        await age_rates(connection, 3)
        assert await check_rates(connection, [shop], SETTINGS) == []
        await add_pages(connection, shop, good=75, bad=25)
        [event] = await check_rates(connection, [shop, shop], SETTINGS)
    assert event.kind is EventKind.PARSER_DEGRADED
    assert event.domain_id == shop
    assert event.payload == {
        "domain": "shop.example",
        "recent_pages": 100,
        "recent_rate": 0.75,
        "week_pages": 200,
        "week_rate": 0.95,
    }


async def test_no_alert_for_a_domain_that_was_never_better(database: Database) -> None:
    async with database.transaction() as connection:
        shop = await insert_domain(connection)
        await add_pages(connection, shop, good=50, bad=50)
        await add_pages(connection, shop, good=45, bad=55)
        assert await check_rates(connection, [shop], SETTINGS) == []


@pytest.mark.parametrize(("before", "after"), [(19, 100), (200, 99)])
async def test_no_alert_from_too_few_pages(database: Database, before: int, after: int) -> None:
    async with database.transaction() as connection:
        shop = await insert_domain(connection)
        if before == 19:
            await add_pages(connection, shop, good=before, bad=0)
        await add_pages(connection, shop, good=0, bad=after)
        assert await check_rates(connection, [shop], SETTINGS) == []


async def test_what_is_only_tried_raises_no_alert(database: Database) -> None:
    async with database.transaction() as connection:
        shop = await insert_domain(connection)
        await add_pages(connection, shop, good=200, bad=0)
        await add_pages(connection, shop, good=0, bad=100, version="2", role="canary")
        assert await check_rates(connection, [shop], SETTINGS) == []


async def test_what_is_older_than_a_week_does_not_count(database: Database) -> None:
    async with database.transaction() as connection:
        shop = await insert_domain(connection)
        await add_pages(connection, shop, good=200, bad=0)
        await age_rates(connection, 7)
        await add_pages(connection, shop, good=10, bad=90)
        assert await check_rates(connection, [shop], SETTINGS) == []


async def test_one_alert_for_a_domain_and_hour(database: Database) -> None:
    async with database.transaction() as connection:
        shop = await insert_domain(connection)
        await add_pages(connection, shop, good=200, bad=0)
        await add_pages(connection, shop, good=10, bad=90)
        events = await check_rates(connection, [shop], SETTINGS)
        assert len(events) == 1
        await record_events(connection, events)
        assert await check_rates(connection, [shop], SETTINGS) == []
        other = NewEvent(EventKind.AUDIT, None, shop, {})
        await record_events(connection, [other])
        await connection.execute(
            "UPDATE catalog_events SET occurred_at = now() - interval '61 minutes'"
        )
        assert len(await check_rates(connection, [shop], SETTINGS)) == 1


async def test_thresholds_are_settings(database: Database) -> None:
    strict = Settings(parser_alert_pages=10, parser_alert_share=1.0, parser_alert_interval=60)
    async with database.transaction() as connection:
        shop = await insert_domain(connection)
        await add_pages(connection, shop, good=30, bad=0)
        await add_pages(connection, shop, good=0, bad=1)
        await add_pages(connection, shop, good=9, bad=0)
        assert await check_rates(connection, [shop], SETTINGS) == []
        events = await check_rates(connection, [shop], strict)
        assert [event.payload["recent_rate"] for event in events] == [0.9]
        await record_events(connection, events)
        await connection.execute(
            "UPDATE catalog_events SET occurred_at = now() - interval '61 seconds'"
        )
        assert len(await check_rates(connection, [shop], strict)) == 1


async def test_a_domain_is_degraded_until_its_pages_are_parsed_well_again(
    database: Database,
) -> None:
    async with database.transaction() as connection:
        shop = await insert_domain(connection)
        await add_pages(connection, shop, good=200, bad=0)
        await add_pages(connection, shop, good=10, bad=90)
        await record_events(connection, await check_rates(connection, [shop], SETTINGS))
    [rate] = await degraded_domains(database, SETTINGS)
    assert (rate.domain, rate.recent_good, rate.earlier_pages) == ("shop.example", 10, 200)
    check = await check_success_rates(database, SETTINGS)
    assert check.level is Level.WARN
    assert "shop.example (10% of the last 100 pages, usually 100%)" in check.examples[0]
    gauges = await Gauges(database, SETTINGS).values()
    assert gauges["forager_parser_degraded_domains", (), ""] == 1
    async with database.transaction() as connection:
        await add_pages(connection, shop, good=100, bad=0)
    assert await degraded_domains(database, SETTINGS) == []
    assert (await check_success_rates(database, SETTINGS)).level is Level.OK


async def test_two_workers_give_one_alert(database: Database) -> None:
    async with database.transaction() as connection:
        shop = await insert_domain(connection)
        await add_pages(connection, shop, good=200, bad=0)
        await add_pages(connection, shop, good=10, bad=90)
    async with database.transaction() as first, database.transaction() as second:
        assert len(await check_rates(first, [shop], SETTINGS)) == 1
        assert await check_rates(second, [shop], SETTINGS) == []


async def test_rates_by_domain_and_version_and_in_pages(database: Database) -> None:
    async with database.transaction() as connection:
        shop = await insert_domain(connection)
        other = await insert_domain(connection, "other.example")
        await add_pages(connection, shop, good=120, bad=30)
        await add_pages(connection, shop, good=40, bad=0, version="2")
        await add_pages(connection, other, good=3, bad=1)
    page = await list_rates(database, domain="Shop.example")
    assert [
        (r.version, r.recent_pages, r.recent_good, r.week_pages, r.week_good) for r in page.items
    ] == [("1", 60, 30, 150, 120), ("2", 40, 40, 40, 40)]
    first = await list_rates(database, limit=2)
    assert [r.domain for r in first.items] == ["other.example", "shop.example"]
    rest = await list_rates(database, cursor=first.next_cursor, limit=2)
    assert [(r.domain, r.version) for r in rest.items] == [("shop.example", "2")]
    assert rest.next_cursor is None
    overall = await parser_rates(database, [("kiosk", "1"), ("kiosk", "9")])
    assert (overall["kiosk", "1"].week_pages, overall["kiosk", "1"].week_good) == (154, 123)
    assert overall["kiosk", "9"].week_pages == 0
    with pytest.raises(InvalidInput, match="not one that a list gave"):
        await list_rates(database, cursor="nonsense")


async def test_old_days_are_forgotten(database: Database) -> None:
    async with database.transaction() as connection:
        shop = await insert_domain(connection)
        await add_pages(connection, shop, good=1, bad=0)
        await age_rates(connection, 90)
        await add_pages(connection, shop, good=1, bad=0)
        assert await delete_rows(connection, OLD_RATES, days=90, limit=10) == 0
        assert await delete_rows(connection, OLD_RATES, days=89, limit=10) == 1
