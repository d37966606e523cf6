"""What a crawl has done so far, as people and programs want to read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from forager.crawl import store
from forager.crawl.ledger import Ledger
from forager.crawl.state import ledger_from
from forager.db.database import Database
from forager.jobs.job import Job
from forager.jobs.queue import Queue


@dataclass(frozen=True, slots=True)
class CrawlReport:
    """A job and its ledger at one moment."""

    job: Job
    ledger: Ledger
    seconds: float
    depth: int

    @property
    def pages_per_second(self) -> float:
        return self.ledger.pages / self.seconds if self.seconds > 0 else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "job_id": str(self.job.id),
            "source_id": self.job.source_id,
            "status": self.job.shown_status,
            "stop_reason": self.job.stop_reason,
            "error_message": self.job.error_message,
            "progress_percentage": self.job.progress_percentage,
            "seconds": round(self.seconds, 3),
            "pages_per_second": round(self.pages_per_second, 2),
            "pages": self.ledger.pages,
            "bytes": self.ledger.bytes_fetched,
            "depth": self.depth,
            "ledger": self.ledger.summary(),
        }


async def crawl_report(database: Database, queue: Queue, job_id: UUID) -> CrawlReport:
    """The report of a crawl, whatever its state; all zeros before its first commit."""
    job = await queue.get(job_id)
    async with database.connection() as connection:
        row = await store.select_state(connection, job_id)
    if row is None:
        return CrawlReport(job, Ledger(), 0.0, 0)
    return CrawlReport(job, ledger_from(row), row["seconds"], row["current_depth"])
