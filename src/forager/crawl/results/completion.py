"""Wait until many crawls have ended, and report the result of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from forager.crawl.reports.report import CrawlReport, crawl_reports
from forager.crawl.settlement import Outcome
from forager.db.database import Database
from forager.db.outages import retry_until_available
from forager.jobs.lifecycle import Status
from forager.jobs.queue import count_active
from forager.jobs.summary import JobsSummary, summarize_jobs
from forager.logs import get_logger

log = get_logger("crawl")

INTERVAL = 1.0


class CrawlResult(StrEnum):
    """How a crawl ended, for the exit code of commands that wait for it."""

    PUBLISHED = "published"
    # complete, but rejected by the quality gate
    HELD_BACK = "held back"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    # the job was deleted
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class EndedCrawl:
    """The result of one crawl; `pages` are those of its generation."""

    source_id: str | None
    job_id: UUID
    result: CrawlResult
    pages: int = 0
    failed_urls: int = 0
    reason: str | None = None


async def wait_for_crawls(
    database: Database, job_ids: Sequence[UUID], show: Callable[[int, JobsSummary], None]
) -> None:
    """Return when all have ended or are paused; `show` gets the number of ended ones."""

    async def look() -> int:
        active = await database.run(count_active, job_ids)
        show(len(job_ids) - active, await summarize_jobs(database, job_ids=job_ids))
        return active

    while True:
        if not await retry_until_available(look, log):
            return
        await asyncio.sleep(INTERVAL)


async def crawl_results(database: Database, jobs: Sequence[tuple[str, UUID]]) -> list[EndedCrawl]:
    """The results of crawls that have ended, in the order of the given sources and jobs."""
    reports = await crawl_reports(database, [job_id for _, job_id in jobs])
    return [_result(source_id, job_id, reports.get(job_id)) for source_id, job_id in jobs]


def _result(source_id: str, job_id: UUID, report: CrawlReport | None) -> EndedCrawl:
    if report is None:
        return EndedCrawl(source_id, job_id, CrawlResult.GONE)
    generation = report.generation
    return EndedCrawl(
        source_id,
        job_id,
        _kind(report),
        pages=generation.pages if generation is not None and generation.is_complete else 0,
        failed_urls=report.ledger.settled[Outcome.FAILED],
        reason=report.reason,
    )


def _kind(report: CrawlReport) -> CrawlResult:
    if report.job.status is Status.COMPLETED:
        return CrawlResult.HELD_BACK if report.is_held_back else CrawlResult.PUBLISHED
    return CrawlResult(report.job.status.value)
