"""Backtests: two versions over the archive, in processes that may break."""

from __future__ import annotations

import pytest

from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.parsers.backtest import Example, backtest
from forager.settings import Settings
from forager.tasks.archived_page import archived_page, visited_page
from parsers.archived_kiosk import Kiosk, item
from products.rows import insert_domain
from support.sql import execute

pytestmark = pytest.mark.usefixtures("kiosk")


async def test_every_field_is_compared(database: Database, settings: Settings) -> None:
    shop = Kiosk(database, settings)
    await shop.archive([(1, item(1, was="£9")), (2, item(2)), (3, item(3))])
    seen: list[int] = []
    report = await backtest(
        database, settings, "kiosk", version="2", against="1", progress=seen.append
    )
    assert (report.pages, report.unreadable, report.truncated) == (3, 0, False)
    assert seen[-1] == 3
    price = report.fields["price"]
    assert (price.equal, price.changed, price.gained, price.lost) == (2, 1, 0, 0)
    assert price.examples == [Example("http://kiosk.example/item/1", "changed", "1.50", "9")]
    assert (report.fields["sku"].lost, report.fields["sku"].equal) == (3, 0)
    assert {example.kind for example in report.fields["sku"].examples} == {"lost"}
    assert report.fields["name"].equal == 3
    assert (report.new.version, report.old.version) == ("2", "1")
    assert report.old.rate == report.new.rate == 1.0
    assert report.old.seconds > 0
    assert report.new.milliseconds is not None


async def test_nothing_is_written(database: Database, settings: Settings) -> None:
    shop = Kiosk(database, settings)
    await shop.archive([(1, item(1))])
    await backtest(database, settings, "kiosk", version="2", against="1")
    async with database.connection() as connection:
        for table in (b"products", b"extractions", b"parse_rates", b"price_history"):
            cursor = await connection.execute(b"SELECT count(*) FROM " + table)
            assert await cursor.fetchone() == (0,)


async def test_a_version_that_hangs_or_breaks_costs_its_own_pages(
    database: Database, settings: Settings
) -> None:
    shop = Kiosk(database, settings)
    await shop.archive([(1, item(1)), (2, item(2, more="<p class='slow'>wait</p>")), (3, item(3))])
    hurried = settings.model_copy(update={"extraction_time_limit": 1.0})
    report = await backtest(database, hurried, "kiosk", against="1")
    assert report.new.version == "10"
    assert report.old.outcomes == {"ok": 3}
    # a field that breaks counts against the version as well
    assert report.new.outcomes == {"suspect": 2, "failed": 1}
    # rates that differ are never called the same result
    assert report.outcomes_differ == 3
    assert report.fields["name"].lost >= 1
    assert report.new.rate == 0
    messages = [error.message for error in report.new.errors]
    assert any("takes longer than 1 s" in message for message in messages)
    assert any(message == "brand: KeyError: 'maker'" for message in messages)
    assert report.fields["price"].equal == 2


async def test_a_first_version_against_the_generic_extraction(
    database: Database, settings: Settings
) -> None:
    await Kiosk(database, settings).archive([(1, item(1)), (2, item(2))])
    report = await backtest(database, settings, "kiosk", version="1", against="generic")
    assert (report.old.version, report.new.version, report.pages) == ("generic", "1", 2)
    assert report.fields["sku"].gained == 2
    assert report.fields["name"].equal == 2


async def test_only_pages_that_the_parser_reads_and_as_many_as_asked_for(
    database: Database, settings: Settings
) -> None:
    await Kiosk(database, settings).archive([(n, item(n)) for n in range(1, 6)])
    other = Kiosk(database, settings, "other.example")
    other.task_ids.append(0)  # a separate lease: segments are never shared
    await other.archive([(1, item(1))])
    report = await backtest(database, settings, "kiosk", version="2", against="1", limit=4)
    assert (report.pages, report.truncated) == (4, True)
    report = await backtest(
        database, settings, "kiosk", version="2", against="1", domain="other.example"
    )
    assert (report.pages, report.truncated) == (0, False)
    with pytest.raises(NotFound, match="no domain"):
        await backtest(database, settings, "kiosk", against="1", domain="nowhere.example")


async def test_pages_that_left_the_archive_are_counted(
    database: Database, settings: Settings
) -> None:
    shop = Kiosk(database, settings)
    await shop.archive([(1, item(1)), (2, item(2))])
    await execute(
        database,
        "UPDATE crawl_tasks SET segment = replace(segment, '-0000', '-0009') WHERE id = %s",
        shop.task_ids[0],
    )
    report = await backtest(database, settings, "kiosk", version="2", against="1")
    assert (report.pages, report.unreadable) == (1, 1)


async def test_history_reads_each_archived_page_once(
    database: Database, settings: Settings
) -> None:
    shop = Kiosk(database, settings)
    await shop.archive([(1, item(1)), (2, item(2, was="£8"))])
    first, second = shop.task_ids
    async with database.transaction() as connection:
        domain_id = await insert_domain(connection, shop.host)
        # two visits of the first task, the older one read twice; nothing of the second
        for source in (second, second, first):
            await connection.execute(
                """
                INSERT INTO extractions (task_id, domain_id, url, parser, parser_version, outcome,
                                         segment, segment_offset, segment_length)
                SELECT %s, %s, %s, 'kiosk', '1', 'ok', segment, segment_offset, segment_length
                  FROM crawl_tasks WHERE id = %s
                """,
                (first, domain_id, shop.url(1), source),
            )
    report = await backtest(database, settings, "kiosk", version="2", against="1", history=True)
    assert (report.pages, report.fields["price"].changed) == (2, 1)


async def test_a_version_is_not_compared_with_itself(
    database: Database, settings: Settings
) -> None:
    with pytest.raises(InvalidInput, match="both are 10"):
        await backtest(database, settings, "kiosk", against="10")


async def test_the_page_of_a_task_is_found_by_its_url(
    database: Database, settings: Settings
) -> None:
    await Kiosk(database, settings).archive([(1, item(1))])
    found = await archived_page(database, settings, "http://KIOSK.example/item/1#top")
    assert found is not None
    assert (found.body, found.content_type) == (item(1), "text/html; charset=utf-8")
    assert await archived_page(database, settings, "http://kiosk.example/item/2") is None


async def test_the_response_of_each_visit_is_kept(database: Database, settings: Settings) -> None:
    shop = Kiosk(database, settings)
    await shop.archive([(1, item(1)), (2, item(2))])
    first, second = shop.task_ids
    async with database.transaction() as connection:
        domain_id = await insert_domain(connection, shop.host)
        for stored in (first, second):
            await connection.execute(
                """
                INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome,
                                           segment, segment_offset, segment_length)
                SELECT %s, %s, 'download', 1, 1, 'ok', segment, segment_offset, segment_length
                  FROM crawl_tasks WHERE id = %s
                """,
                (first, domain_id, stored),
            )
    bodies = [(await visited_page(database, settings, first, visit=n)).body for n in (1, 2)]
    assert bodies == [item(2), item(1)]
    with pytest.raises(NotFound, match="no stored response 3"):
        await visited_page(database, settings, first, visit=3)
