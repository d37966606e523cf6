"""Everything there is to know about one job, gathered for `forager jobs show`."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from forager.cli.options import MAX_LIST

if TYPE_CHECKING:
    from forager.db.database import Database
    from forager.jobs.job import Job, JobEvent
    from forager.jobs.queue import Queue

LAST_EVENTS = 10


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job, how far it is, and its latest history."""

    job: Job
    total_processed: int
    total_pending: int
    checkpoint: dict[str, Any] | None
    last_events: list[JobEvent]


async def report_on(database: Database, queue: Queue, text: str) -> JobReport:
    """The report on the job that `text` names."""
    from forager.jobs import store

    job_id = await queue.resolve(text)
    async with database.connection() as connection:
        saved = await store.select_checkpoint(connection, job_id)
    processed, pending, checkpoint = saved or (0, 0, None)
    events = await last_events(queue, job_id)
    return JobReport(await queue.get(job_id), processed, pending, checkpoint, events)


async def last_events(queue: Queue, job_id: UUID, count: int = LAST_EVENTS) -> list[JobEvent]:
    latest: deque[JobEvent] = deque(maxlen=count)
    while page := await queue.events(job_id, after=latest[-1].id if latest else 0, limit=MAX_LIST):
        latest.extend(page)
    return list(latest)
