"""A job that fails or stalls is an event, once."""

from __future__ import annotations

from forager.crawl.events import JobReporter
from forager.db.database import Database
from forager.db.ids import new_id
from forager.events.event import EventKind
from forager.events.service import list_events
from forager.jobs.job import Lease, NewJob
from forager.jobs.queue import Queue
from forager.settings import Settings
from support.sql import execute


async def claimed(queue: Queue, name: str) -> Lease:
    await queue.enqueue(NewJob(kind="selftest", source_id=name))
    worker = new_id()
    [job] = await queue.claim(worker, kinds=["selftest"])
    return Lease(job.id, job.lease, worker)


async def test_a_failed_job_is_an_event_and_a_retried_one_is_another(
    database: Database, queue: Queue, settings: Settings
) -> None:
    lease = await claimed(queue, "a.example")
    reporter = JobReporter(database, settings)
    assert await reporter.report_failed() == 0
    await queue.fail(lease, "no route", permanent=True)
    await queue.retry(lease.job_id)
    assert await reporter.report_failed() == 1
    assert await reporter.report_failed() == 0
    [event] = (await list_events(database, kind=EventKind.CRAWL_FAILED)).items
    assert event.source_id == "a.example"
    assert (event.payload["reason"], event.payload["job"]) == ("no route", str(lease.job_id))
    worker = new_id()
    [job] = await queue.claim(worker, kinds=["selftest"])
    await queue.fail(Lease(job.id, job.lease, worker), "again", permanent=True)
    assert await reporter.report_failed() == 1


async def test_a_job_that_is_retried_by_itself_is_no_event(
    database: Database, queue: Queue, settings: Settings
) -> None:
    await queue.fail(await claimed(queue, "a.example"), "no route")
    assert await JobReporter(database, settings).report_failed() == 0


async def test_a_stalled_crawl_is_an_event_once_per_stall(
    database: Database, queue: Queue, settings: Settings
) -> None:
    lease = await claimed(queue, "a.example")
    reporter = JobReporter(database, settings)
    await execute(
        database, "INSERT INTO crawl_states (job_id, discovered) VALUES (%s, 0)", lease.job_id
    )
    await stall(database, minutes=2)
    assert await reporter.report_stalled() == 0
    await stall(database, minutes=20)
    assert await reporter.report_stalled() == 1
    assert await reporter.report_stalled() == 0
    [event] = (await list_events(database, kind=EventKind.CRAWL_STALLED)).items
    assert event.payload["job"] == str(lease.job_id)
    # it went on, and stalls again
    await execute(database, "UPDATE catalog_events SET occurred_at = now() - interval '1 hour'")
    assert await reporter.report_stalled() == 1


async def stall(database: Database, *, minutes: int) -> None:
    """Let the last commit and the last move be some minutes ago."""
    for statement in (
        "UPDATE crawl_states SET updated_at = now() - %s * interval '1 minute'",
        "UPDATE job_events SET at = now() - %s * interval '1 minute'",
    ):
        await execute(database, statement, minutes)
