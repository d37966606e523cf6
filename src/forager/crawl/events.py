"""Events about jobs that failed or stand still.

A job that fails leaves a message in the transaction of its failure; a service turns each message
into one event. A stalled job leaves nothing, so the service looks for such jobs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from forager.crawl.store.state import select_stalled, try_lock_stalls
from forager.db.database import Connection, Database
from forager.events import service as events
from forager.events.event import EventKind, NewEvent
from forager.jobs.history import FAILED_JOBS, select_jobs_by_id, select_reasons
from forager.jobs.job import Job
from forager.jobs.queue import Queue
from forager.jobs.summary import JobActivity
from forager.outbox import service as outbox
from forager.outbox.claim import claimed
from forager.outbox.message import Lane
from forager.services.service import Service
from forager.settings import Settings

INTERVAL = 30.0
PER_CLAIM = 100
LEASE = 60.0
# a job without a commit for this long is reported
STALLED_AFTER = 300.0
MAX_STALLED = 1000


class JobReporter:
    """Any number of processes may run one; each failure and each stall is reported once."""

    def __init__(
        self, database: Database, settings: Settings, process_id: UUID | None = None
    ) -> None:
        self._database = database
        self._queue = Queue(database, settings)
        self._process_id = process_id

    def service(self) -> Service:
        """The background service that records events of jobs."""
        return Service(name="job events", every=INTERVAL, step=self.run_once, chunk=PER_CLAIM)

    async def run_once(self) -> int:
        """Record events of jobs that stand still or failed; how many failed."""
        await self.report_stalled()
        return await self.report_failed()

    async def report_failed(self) -> int:
        """Record an event for each job that failed; return their number."""
        async with self._database.transaction() as connection:
            if not await outbox.has_due(connection, FAILED_JOBS):
                return 0
            lane = Lane(FAILED_JOBS, limit=PER_CLAIM)
            messages = await outbox.claim(
                connection, [lane], lease=LEASE, claimed_by=self._process_id
            )
        async with claimed(self._database, messages) as claim, claim.settling() as connection:
            # the reason as it was then: a job that was retried since has another one, or none
            failed = await select_reasons(connection, [each.ref_id for each in messages])
            found = await select_jobs_by_id(connection, [job_id for job_id, _ in failed])
            jobs = {job.id: job for job in found}
            await events.record_events(
                connection,
                [
                    _event(EventKind.CRAWL_FAILED, jobs[job_id], reason=reason)
                    for job_id, reason in failed
                    if job_id in jobs
                ],
            )
        return len(messages)

    async def report_stalled(self) -> int:
        """Record an event for each job that has stalled since its last report; return how many."""
        page = await self._queue.list_jobs(activity=JobActivity.STALLED, limit=MAX_STALLED)
        if not page.items:
            return 0
        recorded = 0
        async with self._database.transaction() as connection:
            if not await try_lock_stalls(connection):
                return 0
            since = await select_stalled(
                connection, [job.id for job in page.items], seconds=STALLED_AFTER
            )
            for job in page.items:
                at = since.get(job.id)
                if at is None or await _is_reported(connection, job, at):
                    continue
                event = _event(EventKind.CRAWL_STALLED, job, since=at.isoformat())
                await events.record_events(connection, [event])
                recorded += 1
        return recorded


async def record_logged_out(job: Job, message: str, connection: Connection) -> None:
    """Record that a crawl was paused because it is logged out; part of that transaction."""
    await events.record_events(connection, [_event(EventKind.CRAWL_STALLED, job, reason=message)])


async def _is_reported(connection: Connection, job: Job, since: datetime) -> bool:
    return await events.occurred_since(
        connection, EventKind.CRAWL_STALLED, job.source_id or str(job.id), since
    )


def _event(kind: EventKind, job: Job, **details: Any) -> NewEvent:
    payload = {
        "source": job.source_id,
        "job": str(job.id),
        "kind": job.kind,
        "progress_percentage": job.progress_percentage,
        "retries": job.retry_count,
        **details,
    }
    # an event without a source is visible to every key
    source_id = job.source_id or str(job.id)
    return NewEvent(kind, None, None, payload, source_id=source_id, user_id=job.user_id)
