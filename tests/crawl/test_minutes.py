"""The counts of crawls over time, stored once a minute."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from forager.crawl.reports.minutes import crawl_minutes, store_minute, throughput
from forager.db.database import Database
from forager.db.ids import new_id
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from support.sql import execute


async def start(database: Database, queue: Queue, *, seconds: float = 5, **how: Any) -> UUID:
    """A crawl at work that has not settled anything."""
    job = (await queue.enqueue(NewJob(kind="selftest", **how))).job
    await execute(
        database,
        "UPDATE crawl_jobs SET status = 'paused', started_at = now() WHERE id = %s",
        job.id,
    )
    await execute(
        database,
        "INSERT INTO crawl_states (job_id, discovered, total_pending, seconds)"
        " VALUES (%s, 100, 100, %s)",
        job.id,
        seconds,
    )
    return job.id


async def settle(database: Database, job_id: UUID, fetched: int, failed: int) -> None:
    """The counts so far, stored as those of one minute later than the last."""
    await execute(
        database,
        """
        UPDATE crawl_states
           SET fetched = %s, failed = %s, total_pending = 100 - %s,
               reasons = jsonb_build_object('failed', jsonb_build_object('timeout', %s::int))
         WHERE job_id = %s
        """,
        fetched,
        failed,
        fetched + failed,
        failed,
        job_id,
    )
    await execute(database, "UPDATE crawl_minutes SET at = at - interval '1 minute'")
    await store_minute(database)


async def test_a_minute_has_what_was_settled_in_it(database: Database, queue: Queue) -> None:
    owner = new_id()
    job = await start(database, queue, user_id=owner)
    await settle(database, job, 10, 0)
    await settle(database, job, 30, 5)
    await settle(database, job, 20, 0)  # failed URLs were taken back
    await store_minute(database)  # this minute is stored already
    found = await crawl_minutes(database, job)
    assert [(each.discovered, each.settled, each.failed) for each in found] == [
        (100, 10, 0), (100, 35, 5), (100, 20, 0),
    ]  # fmt: skip
    rates = await throughput(database, minutes=60, user_id=owner)
    assert [(each.settled, each.failed) for each in rates] == [(10, 0), (25, 5), (0, 0)]
    assert await throughput(database, minutes=60, user_id=new_id()) == []


async def test_the_past_stays_when_its_crawl_is_deleted(database: Database, queue: Queue) -> None:
    job = await start(database, queue)
    await settle(database, job, 40, 0)
    await execute(database, "DELETE FROM crawl_jobs WHERE id = %s", job)
    assert [each.settled for each in await throughput(database, minutes=60)] == [40]
    await execute(database, "UPDATE crawl_minutes SET at = at - interval '3 days'")
    await store_minute(database)
    assert await throughput(database, minutes=10_000) == []


async def test_a_crawl_that_has_been_paused_for_long_is_not_counted_again(
    database: Database, queue: Queue
) -> None:
    job = await start(database, queue)
    await settle(database, job, 40, 0)
    await execute(database, "UPDATE crawl_minutes SET at = at - interval '3 days'")
    await execute(database, "UPDATE crawl_states SET updated_at = now() - interval '3 days'")
    await store_minute(database)
    await store_minute(database)
    assert await crawl_minutes(database, job) == []


async def test_work_before_the_first_sample_is_not_one_minute_of_work(
    database: Database, queue: Queue
) -> None:
    job = await start(database, queue, seconds=3600)
    await settle(database, job, 60, 20)
    await settle(database, job, 70, 21)
    rates = await throughput(database, minutes=60)
    assert [(each.settled, each.failed) for each in rates] == [(0, 0), (11, 1)]
