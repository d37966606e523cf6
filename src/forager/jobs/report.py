"""Everything there is to know about one job, and who works on jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from forager.db.database import Database
from forager.jobs import store, workers
from forager.jobs.job import Job, JobEvent
from forager.jobs.queue import Queue
from forager.jobs.workers import Worker

LAST_EVENTS = 10


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job, how far it is, and its latest history."""

    job: Job
    total_processed: int
    total_pending: int
    checkpoint: dict[str, Any] | None
    last_events: list[JobEvent]


async def job_report(database: Database, queue: Queue, job_id: UUID) -> JobReport:
    job = await queue.get(job_id)
    async with database.connection() as connection:
        saved = await store.select_checkpoint(connection, job_id)
        events = await store.select_last_events(connection, job_id, LAST_EVENTS)
    processed, pending, checkpoint = saved or (0, 0, None)
    return JobReport(job, processed, pending, checkpoint, events)


async def list_workers(database: Database) -> list[Worker]:
    """Workers that are, or lately were, there."""
    async with database.connection() as connection:
        return await workers.select_workers(connection)
