"""Schedules in words and in time, and refreshes that go through the queue."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from built_site import SOURCE, Crawls
from forager.access.quota import Quota
from forager.access.quotas import set_quota
from forager.crawl.admission import start_due_refresh
from forager.db.database import Database
from forager.db.ids import new_id
from forager.documents import sources
from forager.documents.generation import Schedule, parse_cron, parse_every
from forager.documents.sources import Refresher
from forager.errors import InvalidInput, NotFound
from forager.services.service import SKIPPED
from forager.settings import Settings
from support.sql import execute

FRIDAY = datetime(2026, 3, 6, 12, 30, 10, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1d", 86400), ("12h", 43200), ("90 min", 5400), ("60s", 60), ("2w", 1209600)],
)
def test_lengths_of_time(text: str, seconds: int) -> None:
    assert parse_every(text) == Schedule(every=seconds)
    assert parse_every(text).after(FRIDAY) == FRIDAY + timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "1", "d", "59s", "0d", "-1d", "9999999w", "1d 2h", "\u0661d"])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_every(text)


@pytest.mark.parametrize(
    ("text", "following"),
    [
        ("30 4 * * *", datetime(2026, 3, 7, 4, 30, tzinfo=UTC)),
        ("0  0 * * mon", datetime(2026, 3, 9, tzinfo=UTC)),
        ("*/15 * * * *", datetime(2026, 3, 6, 12, 45, tzinfo=UTC)),
        ("0 0 29 2 *", datetime(2028, 2, 29, tzinfo=UTC)),
    ],
)
def test_cron_expressions(text: str, following: datetime) -> None:
    assert parse_cron(text).after(FRIDAY) == following


@pytest.mark.parametrize("text", ["", "1d", "* * * *", "60 * * * *", "0 0 30 2 *", "* * * * * *"])
def test_what_is_no_cron_expression(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_cron(text)


def test_no_schedule_never_comes() -> None:
    assert Schedule().after(FRIDAY) is None


async def run_due_refreshes(database: Database, settings: Settings) -> int:
    return await Refresher(database, settings, start_due_refresh).run_once()


async def due_now(database: Database) -> None:
    await execute(
        database, "UPDATE sources SET next_refresh_at = now() - interval '3 days' RETURNING 1"
    )


async def test_a_due_source_is_crawled_again_as_it_was(
    crawls: Crawls, database: Database, settings: Settings
) -> None:
    crawls.payload = {"steps": 7}
    await crawls.crawl({"a": "one"})
    source = await sources.set_schedule(database, SOURCE, parse_every("1d"))
    assert source.next_refresh_at is not None
    assert await run_due_refreshes(database, settings) == 0
    await due_now(database)
    assert await run_due_refreshes(database, settings) == 1
    source = await sources.get_source(database, SOURCE)
    assert source.active_job is not None
    job = await crawls.queue.get(source.active_job)
    assert (job.source_id, job.payload["steps"]) == (SOURCE, 7)
    [made] = await crawls.queue.events(job.id)
    assert made.actor == "schedule"
    # what was missed is not made up for
    assert source.next_refresh_at is not None
    assert source.next_refresh_at > datetime.now(UTC) + timedelta(hours=23)
    assert await run_due_refreshes(database, settings) == 0


async def test_many_refreshers_start_one_job(
    crawls: Crawls, database: Database, settings: Settings
) -> None:
    await crawls.crawl({"a": "one"})
    await sources.set_schedule(database, SOURCE, parse_cron("0 0 1 1 *"))
    await due_now(database)
    started = await asyncio.gather(*(run_due_refreshes(database, settings) for _ in range(4)))
    assert sum(started) == 1


async def test_a_crawl_that_is_under_way_is_the_refresh(
    crawls: Crawls, database: Database, settings: Settings
) -> None:
    await crawls.crawl({"a": "one"})
    running = await crawls.start()
    await sources.set_schedule(database, SOURCE, parse_every("1h"))
    await due_now(database)
    assert await run_due_refreshes(database, settings) == 0
    asked = await sources.refresh(database, crawls.queue, SOURCE)
    assert (asked.created, asked.job.id) == (False, running.context.job.id)


async def test_a_source_that_cannot_be_refreshed_does_not_hold_up_the_others(
    crawls: Crawls, database: Database, settings: Settings
) -> None:
    await crawls.crawl({"a": "one"})
    crawls.source = "another"
    await crawls.crawl({"a": "one"})
    for name in (SOURCE, "another"):
        await sources.set_schedule(database, name, parse_every("1h"))
    await due_now(database)
    await execute(
        database, "UPDATE sources SET payload = '{\"odd\": 1}' WHERE id = 'another' RETURNING 1"
    )
    assert await run_due_refreshes(database, settings) == 1
    assert await run_due_refreshes(database, settings) == 0


async def test_a_refresh_over_quota_is_put_off_and_not_lost(
    crawls: Crawls, database: Database, settings: Settings
) -> None:
    await crawls.crawl({"a": "one"})
    owner = new_id()
    await execute(database, "UPDATE sources SET user_id = %s RETURNING 1", owner)
    await sources.set_schedule(database, SOURCE, parse_every("7d"))
    await set_quota(database, owner, Quota(active_jobs=0))
    await due_now(database)
    assert await run_due_refreshes(database, settings) == 0
    source = await sources.get_source(database, SOURCE)
    assert source.active_job is None
    # sooner than the next time of the schedule
    assert source.next_refresh_at is not None
    assert source.next_refresh_at < datetime.now(UTC) + timedelta(hours=1)
    await set_quota(database, owner, Quota(active_jobs=1))
    await due_now(database)
    assert await run_due_refreshes(database, settings) == 1
    source = await sources.get_source(database, SOURCE)
    assert source.next_refresh_at is not None
    assert source.next_refresh_at > datetime.now(UTC) + timedelta(days=6)


async def test_a_schedule_can_be_ended(
    crawls: Crawls, database: Database, settings: Settings
) -> None:
    await crawls.crawl({"a": "one"})
    await sources.set_schedule(database, SOURCE, parse_every("1h"))
    source = await sources.set_schedule(database, SOURCE, Schedule())
    assert (source.refresh_every, source.next_refresh_at) == (None, None)
    with pytest.raises(NotFound):
        await sources.set_schedule(database, "elsewhere", Schedule())


# --- a bad row ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cron", ["0 0 30 2 *", "not a cron expression", "* * * * 99"])
async def test_a_source_with_a_bad_schedule_does_not_stop_the_others(
    crawls: Crawls, database: Database, settings: Settings, cron: str
) -> None:
    await crawls.crawl({"a": "one"})
    await sources.set_schedule(database, SOURCE, parse_every("1d"))
    await execute(
        database,
        "INSERT INTO sources (id, base_url, kind, payload, refresh_cron)"
        f" SELECT 'bad', base_url, kind, payload, '{cron}' FROM sources RETURNING 1",
    )
    await due_now(database)
    skipped: list[str] = []
    SKIPPED.set(skipped)
    assert await run_due_refreshes(database, settings) >= 1
    source = await sources.get_source(database, SOURCE)
    assert source.active_job is not None
    if cron != "0 0 30 2 *":
        assert len(skipped) == 1
        assert skipped[0].startswith("source bad: CronSimError")
        bad = await sources.get_source(database, "bad")
        assert bad.next_refresh_at is not None, "it is tried again later"
        assert bad.next_refresh_at > datetime.now(UTC)
