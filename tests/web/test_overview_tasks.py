"""The overview counts tasks beside crawls: how fast, how many wait, since when, and what failed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from forager.db.database import Database
from forager.db.ids import new_id
from forager.events.service import record_events
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from forager.metrics.backlog import backlog_samples, take_sample
from forager.parsers.rates import check_rates
from forager.settings import Settings
from forager.tasks import activity
from forager.tasks.activity import task_activity, tasks_now
from forager.web.overview import Failures, by_kind
from parsers.test_rates import add_pages
from products.rows import insert_domain
from support.sql import execute
from tasks.tasks_at_hand import make_domain, make_task
from web.visitor import Visitor


async def attempt(
    database: Database, task_id: int, stage: str, outcome: str, *, seconds_ago: float
) -> None:
    await execute(
        database,
        """
            INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome,
                                       finished_at)
            SELECT id, domain_id, %s, 1, 1, %s, now() - %s * interval '1 second'
              FROM crawl_tasks WHERE id = %s
            """,
        stage,
        outcome,
        seconds_ago,
        task_id,
    )


async def fail(database: Database, task_id: int, kind: str, *, seconds_ago: float) -> None:
    await execute(
        database,
        """
            INSERT INTO error_logs (crawl_task_id, domain_id, stage, error_type, error_kind,
                                    error_message, message_key, occurred_at)
            SELECT id, domain_id, 'download', 'network', %s, 'no answer', 'no answer',
                   now() - %s * interval '1 second'
              FROM crawl_tasks WHERE id = %s
            """,
        kind,
        seconds_ago,
        task_id,
    )


async def done(database: Database, domain_id: int, **columns: Any) -> int:
    return await make_task(database, domain_id, status="completed", next_crawl_in=86400, **columns)


async def test_without_tasks_there_is_nothing(database: Database) -> None:
    found = await task_activity(database, minutes=5)
    assert not (await tasks_now(database)).any_tasks
    assert found.attempts == found.failed == [0] * 5
    assert (found.total_waiting, found.oldest, found.errors) == (0, None, [])
    assert not found.is_estimated
    assert not found.is_cut


async def test_tasks_that_wait_are_counted_by_state_with_their_age(database: Database) -> None:
    domain_id = await make_domain(database, "shop.example")
    for seconds in (-30, -630):
        await make_task(database, domain_id, scheduled_in=seconds)
    await make_task(database, domain_id, scheduled_in=3600)
    await make_task(database, domain_id, scheduled_in=-5000, hold="paused")
    await make_task(database, domain_id, status="queued", scheduled_in=-90)
    await make_task(database, domain_id, status="downloaded", scheduled_in=-150)
    await done(database, domain_id, scheduled_in=-9000)
    found = await task_activity(database)
    assert {each.state: each.count for each in found.waiting} == {
        "due": 2,
        "queued": 1,
        "downloaded": 1,
    }
    assert found.oldest is not None
    assert 630 <= (datetime.now(UTC) - found.oldest).total_seconds() < 3600


async def test_attempts_are_counted_by_minute_and_what_was_taken_back_is_none(
    database: Database,
) -> None:
    domain_id = await make_domain(database, "shop.example")
    task_id = await done(database, domain_id, scheduled_in=-250)
    for stage, outcome, seconds in (
        ("download", "ok", 190),
        ("parse", "ok", 130),
        ("download", "retry", 130),
        ("download", "missed", 130),
        ("download", "withdrawn", 130),
        ("download", "rested", 130),
        ("download", "ok", 9000),
    ):
        await attempt(database, task_id, stage, outcome, seconds_ago=seconds)
    found = await task_activity(database, minutes=10)
    assert sum(found.attempts) == 4
    assert sum(found.failed) == 2
    assert sum(count > 0 for count in found.attempts) >= 2
    assert not found.is_estimated


async def test_a_full_minute_is_estimated_from_the_numbers_of_its_attempts(
    database: Database,
) -> None:
    domain_id = await make_domain(database, "shop.example")
    task_id = await done(database, domain_id)
    many = 3 * activity.SAMPLE
    await execute(
        database,
        """
            INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome,
                                       finished_at)
            SELECT %s, %s, 'parse', 1, 1, CASE WHEN n %% 2 = 0 THEN 'ok' ELSE 'failed' END,
                   now() - interval '30 seconds' + n * interval '1 millisecond'
              FROM generate_series(1, %s) AS n
            """,
        task_id,
        domain_id,
        many,
    )
    found = await task_activity(database, minutes=10)
    assert found.is_estimated
    assert sum(found.attempts) == many
    assert sum(found.failed) == many / 2


async def test_results_beyond_the_limit_are_reported_as_cut(
    database: Database, monkeypatch: Any
) -> None:
    monkeypatch.setattr(activity, "MOST_WAITING", 3)
    monkeypatch.setattr(activity, "MOST_ERRORS", 2)
    domain_id = await make_domain(database, "shop.example")
    task_id = 0
    for seconds in (-10, -20, 600, 700):
        task_id = await make_task(database, domain_id, scheduled_in=seconds)
    for _ in range(3):
        await fail(database, task_id, "timeout", seconds_ago=10)
    found = await task_activity(database)
    assert found.is_cut
    assert found.errors == [("timeout", 2)]
    assert found.errors_are_cut


def test_kinds_of_errors_are_counted_for_crawls_and_tasks() -> None:
    found = by_kind([("timeout", 2), ("http_404", 5)], [("timeout", 9), ("parse", 1)])
    assert found == [Failures("timeout", 2, 9), Failures("http_404", 5, 0), Failures("parse", 0, 1)]


async def test_the_overview_shows_tasks_even_where_nothing_was_crawled(
    visitor: Visitor, database: Database
) -> None:
    domain_id = await make_domain(database, "shop.example")
    task_id = await make_task(database, domain_id, scheduled_in=-100)
    await attempt(database, task_id, "download", "retry", seconds_ago=5)
    await fail(database, task_id, "dns", seconds_ago=5)
    page = (await visitor.get("/")).text
    assert "task attempts now" in page
    assert "waiting tasks now 1" in page
    assert '<a href="/tasks?due=yes">Tasks</a>' in page
    assert "<td>dns</td>" in page
    assert "no scheduler is running" in page
    day = (await visitor.get("/?range=1440")).text
    assert "Throughput, last 24 hours" in day
    assert "1 d ago" in day
    assert "waiting tasks now 1" in day


async def test_the_backlog_of_the_past_is_what_was_stored_then(
    visitor: Visitor, database: Database, queue: Queue
) -> None:
    jobs = [await queue.enqueue(NewJob(kind="selftest")) for _ in range(3)]
    await make_task(database, await make_domain(database, "shop.example"), scheduled_in=-100)
    await take_sample(database)
    await take_sample(database)
    await execute(database, "UPDATE backlog_samples SET at = at - interval '30 minutes'")
    for each in jobs[:2]:
        await queue.cancel(each.job.id)
    await execute(database, "DELETE FROM crawl_jobs WHERE status = 'cancelled'")
    [sample] = await backlog_samples(database, minutes=60)
    assert (sample.jobs, sample.tasks) == (3, 1)
    page = (await visitor.get("/")).text
    assert "unfinished jobs now 1, at most 3" in page
    shown = re.findall(r"<title data-at=\"([^\"]+)\">[^<]*UTC: unfinished jobs 3, waiting", page)
    assert len(shown) == 1
    assert abs(datetime.fromisoformat(shown[0]) - sample.at) < timedelta(minutes=2)


async def test_the_throughput_of_the_past_is_what_was_stored_then(
    visitor: Visitor, database: Database
) -> None:
    await make_task(database, await make_domain(database, "shop.example"), scheduled_in=3600)
    await execute(
        database,
        """
        INSERT INTO crawl_minutes (job_id, at, discovered, settled, failed, newly_settled,
                                   newly_failed)
        SELECT uuid7(), now() - minutes * interval '1 minute', 900, 300, 6, 300, 6
          FROM unnest(ARRAY[20, 20, 200]) AS minutes
        """,
    )
    page = (await visitor.get("/")).text
    assert "URLs of crawls now 0, at most 600; " in page
    assert "failed now 0, at most 12" in page
    six_hours = (await visitor.get("/?range=360")).text
    assert "URLs of crawls now 0, at most 100; " in six_hours


async def test_samples_are_counted_by_owner_and_deleted_by_age(
    database: Database, queue: Queue
) -> None:
    owner = new_id()
    await queue.enqueue(NewJob(kind="selftest", user_id=owner))
    await queue.enqueue(NewJob(kind="selftest"))
    await take_sample(database)
    assert [each.jobs for each in await backlog_samples(database, minutes=5)] == [2]
    of_owner = await backlog_samples(database, minutes=5, user_id=owner)
    assert [each.jobs for each in of_owner] == [1]
    await execute(database, "UPDATE backlog_samples SET at = at - interval '3 days'")
    await take_sample(database)
    assert len(await backlog_samples(database, minutes=10_000)) == 1


async def test_the_overview_says_that_all_tasks_are_held(
    visitor: Visitor, database: Database
) -> None:
    await make_task(database, await make_domain(database, "shop.example"), scheduled_in=-100)
    await execute(database, "UPDATE task_control SET hold = 'paused'")
    assert "All tasks are paused" in (await visitor.get("/")).text


async def test_the_overview_names_domains_that_are_parsed_worse_than_usual(
    visitor: Visitor, database: Database
) -> None:
    async with database.transaction() as connection:
        shop = await insert_domain(connection)
        await add_pages(connection, shop, good=200, bad=0)
        await add_pages(connection, shop, good=10, bad=90)
        await record_events(connection, await check_rates(connection, [shop], Settings()))
    await make_task(database, shop, scheduled_in=3600)
    assert (
        "shop.example: 10% of the last 100 pages were parsed without errors"
        in (await visitor.get("/")).text
    )


async def test_the_overview_names_alarms_and_bypassed_parsers_while_they_last(
    visitor: Visitor, database: Database
) -> None:
    shop = await make_domain(database, "shop.example")
    await make_task(database, shop, scheduled_in=3600)
    await execute(
        database,
        "INSERT INTO domain_health (domain_id, alarm, alarm_at) VALUES (%s, 'gone', now())",
        shop,
    )
    await execute(
        database,
        """
        INSERT INTO parser_rollouts (parser, active_version, bypassed_until, bypass_reason)
        VALUES ('kiosk', '1', now() + interval '1 hour', 'it hangs'),
               ('corner', '1', now() - interval '1 hour', 'it hung')
        """,
    )
    shown = (await visitor.get("/")).text
    assert "Results of shop.example are withheld (gone)" in shown
    assert "Parser kiosk is bypassed: it hangs" in shown
    assert "corner" not in shown
