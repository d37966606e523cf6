"""What people see of a robots.txt that is kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from forager.db.database import Database
from forager.fetch.robots.cache import CachedRobots
from forager.fetch.robots.gate import MAX_SHOWN, RobotsReport, robots_report
from forager.fetch.robots.store import upsert_robots

ORIGIN = "https://shop.example"


async def report(database: Database, body: bytes, status: int = 200) -> RobotsReport:
    now = datetime.now(UTC)
    kept = CachedRobots(body, now, now + timedelta(hours=1), status)
    async with database.transaction() as connection:
        await upsert_robots(connection, ORIGIN, kept)
    found = await robots_report(database, f"{ORIGIN}/p/1", "Forager/1.0")
    assert found is not None
    return found


async def test_a_file_that_was_never_asked_for_is_not_there(database: Database) -> None:
    assert await robots_report(database, f"{ORIGIN}/", "Forager/1.0") is None


async def test_it_says_the_delay_that_counts_for_us(database: Database) -> None:
    found = await report(database, b"User-agent: forager\nCrawl-delay: 3\nDisallow: /x\n")
    assert (found.origin, found.crawl_delay, found.is_waited_for) == (ORIGIN, 3.0, False)
    assert "Disallow: /x" in found.text


@pytest.mark.parametrize(("size", "is_cut"), [(10, False), (MAX_SHOWN + 1, True)])
async def test_a_long_one_is_cut(database: Database, size: int, is_cut: bool) -> None:
    found = await report(database, b"#" * size)
    assert (found.is_cut, len(found.text)) == (is_cut, min(size, MAX_SHOWN))


async def test_a_host_that_cannot_say_its_rules_is_waited_for(database: Database) -> None:
    assert (await report(database, b"", 503)).is_waited_for
