"""A thousand active jobs: filtered by host and activity, and summarized."""

from __future__ import annotations

from uuid import UUID

import pytest

from forager.db.database import Database
from forager.db.ids import new_id
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from forager.jobs.summary import JobActivity, JobsSummary, summarize_jobs
from support.sql import execute

WAIT = "rate-limited by site.example (one request every 1 s)"


@pytest.fixture
async def fleet(database: Database, queue: Queue) -> list[UUID]:
    """1,000 crawls: 700 at work, 200 wait for a host, 50 for robots.txt, 3 stalled, 47 pending."""
    jobs = await queue.enqueue_many(
        [
            NewJob(
                kind="crawl",
                source_id=f"site-{number}",
                payload={"urls": [f"https://site-{number}.example/"]},
            )
            for number in range(1000)
        ]
    )
    ids = [job.id for job in jobs]
    await execute(
        database,
        """
        UPDATE crawl_jobs
           SET status = 'processing', worker_id = %s, last_heartbeat = now()
         WHERE id = ANY(%s)
        """,
        new_id(),
        ids[:953],
    )
    await execute(database, "UPDATE job_events SET at = at - interval '1 hour'")
    await execute(
        database,
        """
        INSERT INTO crawl_states
            (job_id, discovered, fetched, total_pending, pace, reported_at, waits_for, updated_at)
        SELECT id, 120, 20, 100, CASE WHEN number <= 700 THEN 0.1 ELSE 0 END, now(),
               CASE WHEN number BETWEEN 701 AND 900 THEN %s
                    WHEN number BETWEEN 901 AND 950 THEN 'waiting for site.example/robots.txt' END,
               now() - CASE WHEN number > 950 THEN interval '10 minutes' ELSE interval '0' END
          FROM unnest(%s::uuid[]) WITH ORDINALITY AS numbered (id, number)
        """,
        WAIT,
        ids[:953],
    )
    return ids


async def listed(queue: Queue, activity: JobActivity) -> set[UUID]:
    found: set[UUID] = set()
    cursor = None
    while True:
        page = await queue.list_jobs(activity=activity, cursor=cursor, limit=300)
        found |= {job.id for job in page.items}
        cursor = page.next_cursor
        if cursor is None:
            return found


async def test_a_fleet_is_summarized(database: Database, fleet: list[UUID]) -> None:
    summary = await summarize_jobs(database)
    assert summary.message == (
        "700 running, 200 waiting for their host, 50 waiting for robots.txt,"
        " 47 waiting for a worker, 3 stalled, 70 pages/s, done in about 22 min"
    )
    assert (
        await summarize_jobs(database, job_ids=fleet[-10:])
    ).message == "10 waiting for a worker"
    assert (await summarize_jobs(database, user_id=new_id())).message == ""


async def test_jobs_are_filtered_by_activity(queue: Queue, fleet: list[UUID]) -> None:
    assert await listed(queue, JobActivity.RUNNING) == set(fleet[:700])
    assert await listed(queue, JobActivity.HOST) == set(fleet[700:900])
    assert await listed(queue, JobActivity.ROBOTS) == set(fleet[900:950])
    assert await listed(queue, JobActivity.STALLED) == set(fleet[950:953])
    assert await listed(queue, JobActivity.WORKER) == set(fleet[953:])
    assert await listed(queue, JobActivity.SCHEDULED) == set()


async def test_jobs_are_filtered_by_host(queue: Queue, fleet: list[UUID]) -> None:
    [found] = (await queue.list_jobs(host="site-17.example")).items
    assert found.id == fleet[17]
    assert (await queue.list_jobs(host="example")).items == []


async def test_a_job_whose_worker_is_silent_is_stalled(
    database: Database, queue: Queue, fleet: list[UUID]
) -> None:
    await execute(
        database,
        "UPDATE crawl_jobs SET last_heartbeat = now() - interval '2 minutes' WHERE id = %s",
        fleet[0],
    )
    assert fleet[0] in await listed(queue, JobActivity.STALLED)


async def test_a_crawl_that_was_just_claimed_is_not_stalled(
    database: Database, queue: Queue, fleet: list[UUID]
) -> None:
    await execute(database, "UPDATE job_events SET at = now() WHERE job_id = %s", fleet[951])
    assert fleet[951] in await listed(queue, JobActivity.RUNNING)


async def test_pending_jobs_wait_for_a_worker_their_host_or_their_time(
    database: Database, queue: Queue, fleet: list[UUID]
) -> None:
    later = "UPDATE crawl_jobs SET run_after = now() + interval '1 hour' WHERE id = ANY(%s)"
    await execute(database, later, fleet[-3:])
    deferred = "INSERT INTO crawl_states (job_id, waits_for) VALUES (%s, %s)"
    await execute(database, deferred, fleet[-1], WAIT)
    assert fleet[-1] in await listed(queue, JobActivity.HOST)
    assert await listed(queue, JobActivity.SCHEDULED) == set(fleet[-3:-1])


@pytest.mark.parametrize("limit", ["30", '"many"', "null", "1e300"])
async def test_a_limit_of_pages_shortens_the_time_left(
    database: Database, fleet: list[UUID], limit: str
) -> None:
    """A payload that was inserted may hold anything."""
    await execute(
        database,
        "UPDATE crawl_jobs SET payload = payload || jsonb_build_object('max_pages', %s::jsonb)",
        limit,
    )
    summary = await summarize_jobs(database, job_ids=fleet[:700])
    assert summary.seconds_left == pytest.approx(100 if limit == "30" else 1000)


def test_a_summary_has_words_only_for_what_there_is() -> None:
    none = dict.fromkeys(JobActivity, 0)
    assert JobsSummary(none, 0.0, None).message == ""
    some = JobsSummary({**none, JobActivity.RUNNING: 1234}, 3.25, None)
    assert some.message == "1,234 running, 3.2 pages/s"
