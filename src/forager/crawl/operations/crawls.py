"""Operations on jobs that are crawls, under the names that other crawlers use."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from forager.crawl import admission
from forager.crawl.operations.job_models import GenerationChanges, Job, Ledger, ShownStatus
from forager.crawl.operations.job_urls import jobs
from forager.crawl.operations.jobs import JobId, find_job, queue_of
from forager.crawl.reports.report import CrawlReport, crawl_report
from forager.crawl.service import CRAWL
from forager.jobs.job import Move
from forager.operations.models import Listed, Paging, ResponseModel, listed
from forager.operations.operation import Context, Group

__all__ = ["jobs"]

# the names of the design documents, which have no version in their path
aliases = Group("aliases", "Other names of endpoints.")


class CrawlProgress(ResponseModel, thing="crawl"):
    """How far a crawl is, by its last commit."""

    job_id: UUID
    progress_id: UUID = Field(description="The same as `job_id`.")
    source: str | None = Field(description="Name of the source.", validation_alias="source_id")
    status: ShownStatus = Field(description="Status of the crawl.")
    progress_percentage: int = Field(
        description="Share of the known work that is done, in percent.", ge=0, le=100
    )
    stop_reason: str | None
    error_message: str | None
    pages: int = Field(description="Number of pages fetched so far.")
    bytes: int = Field(description="Number of bytes fetched so far.")
    depth: int = Field(description="Largest number of links from a start URL so far.")
    seconds: float = Field(description="Time spent running, over all runs.")
    pages_per_second: float = Field(
        description="Over the last half minute while it runs, and on average afterwards."
    )
    eta_seconds: float | None = Field(
        description="At the pace of the last half minute; null unless it runs and makes progress."
    )
    waiting: str | None = Field(
        description="What the crawl waits for, for example "
        "`rate-limited by example.com (Retry-After), next request in 4 s`."
    )
    ledger: Ledger = Field(description="Account of all URLs.")
    generation: GenerationChanges | None = Field(
        description="Null before the crawl starts, and for crawls that keep no documents."
    )

    @classmethod
    def build(cls, report: CrawlReport) -> CrawlProgress:
        left = report.seconds_left
        return cls.model_validate(
            {
                **report.as_json(),
                "progress_id": report.job.id,
                "eta_seconds": None if left is None else round(left, 1),
            }
        )


@jobs.operation("list", "GET /crawls", command=False, tag="crawls")
async def list_crawls(context: Context, paging: Paging) -> Listed[Job]:
    """List crawls, newest first."""
    found = await queue_of(context).list_jobs(kind=CRAWL.name, user_id=context.owner, **paging)
    return listed(found, Job.of)


@aliases.operation("progress", "GET /crawl-progress/{crawl_id}")
@jobs.operation("show", "GET /crawls/{crawl_id}", command=False, tag="crawls")
async def progress(context: Context, crawl_id: JobId) -> CrawlProgress:
    """Show the progress of a crawl: state, ledger, pace, time left."""
    job = await find_job(context, crawl_id)
    return CrawlProgress.build(await crawl_report(context.database, queue_of(context), job))


@jobs.operation("cancel", "DELETE /crawls/{crawl_id}", command=False, tag="crawls")
async def cancel(context: Context, crawl_id: JobId) -> Job:
    """Cancel a crawl; unpublished work is discarded."""
    job = await find_job(context, crawl_id)
    return Job.of(await admission.move_job(context, job, Move.CANCEL))


jobs.by_hand("show", "GET /crawls/{crawl_id}/events")
