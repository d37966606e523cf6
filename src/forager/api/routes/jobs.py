"""Steer several jobs at once, and export a job as a file."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from forager.api.problems import Problem, problem_of
from forager.api.services import JobId, OperatorServices, ReaderServices
from forager.api.streams import download, file_responses
from forager.archive.options import archive_options
from forager.crawl.admission import move_job
from forager.crawl.operations.job_models import Job
from forager.crawl.results.export import CrawlExport, CrawlExportFormat, export_stream
from forager.crawl.settlement import Outcome
from forager.errors import InvalidInput
from forager.jobs import job as bulk
from forager.jobs.job import Move
from forager.operations.models import Reason, RequestModel, ResponseModel, example

router = APIRouter(tags=["jobs"])

FILES = {
    CrawlExportFormat.WARC: ("application/gzip", "warc.gz"),
    CrawlExportFormat.JSONL: ("application/x-ndjson", "jsonl"),
    CrawlExportFormat.PARQUET: ("application/vnd.apache.parquet", "parquet"),
    CrawlExportFormat.MARKDOWN: ("application/zip", "zip"),
}


class BulkOrder(RequestModel):
    """What to do with several jobs."""

    model_config = example(action="pause", ids=["0199a5c2-8a00-7000-8000-000000000000"])

    action: Move = Field(description="What to do with the jobs.")
    ids: list[UUID] = Field(min_length=1, max_length=1000, description="IDs of the jobs.")
    reason: Reason | None = None


class MovedJob(ResponseModel, thing="job"):
    """The result for one job: its current state, or why it was not changed."""

    id: UUID
    job: Job | None = Field(description="The job; null if it was not changed.")
    problem: Problem | None = Field(description="Why the job was not changed; null if it was.")


class BulkResult(ResponseModel):
    """The results for all jobs."""

    moved: int = Field(description="Number of jobs changed.")
    failed: int = Field(description="Number of jobs that were not changed.")
    items: list[MovedJob] = Field(description="In the order of the given IDs.")


@router.post("/jobs/bulk")
async def move_many(order: BulkOrder, services: OperatorServices) -> BulkResult:
    """Pause, resume, cancel or retry several jobs; each has a separate result."""
    moved = await bulk.move_each(
        order.ids, lambda job_id: move_job(services.context, job_id, order.action, order.reason)
    )
    items = [_moved(each) for each in moved]
    done = sum(item.job is not None for item in items)
    return BulkResult(moved=done, failed=len(items) - done, items=items)


@router.get(
    "/jobs/{job_id}/export",
    response_class=StreamingResponse,
    responses=file_responses(kind for kind, _ in FILES.values()),
)
async def export(
    job_id: JobId,
    services: ReaderServices,
    format_: Annotated[
        CrawlExportFormat, Query(alias="format", description="Format of the file.")
    ] = CrawlExportFormat.JSONL,
    outcome: Annotated[
        list[Outcome] | None, Query(max_length=20, description="Only URLs with this outcome.")
    ] = None,
    body: Annotated[bool, Query(description="Add the text of each page (jsonl, parquet).")] = False,
) -> Response:
    """Export a job: archived responses (warc), a row per URL, or published pages (markdown)."""
    job = await services.find_job(job_id)
    if body and format_ in (CrawlExportFormat.WARC, CrawlExportFormat.MARKDOWN):
        raise InvalidInput("`body` is for jsonl and parquet")
    if outcome and format_ is CrawlExportFormat.MARKDOWN:
        raise InvalidInput("`outcome` is for warc, jsonl and parquet")
    wanted = CrawlExport(format=format_, outcomes=tuple(outcome or Outcome), body=body)
    storage = archive_options(services.settings).open()
    parts = export_stream(services.database, storage, job.id, wanted)
    return await download(parts, *export_file(job.id, format_))


def export_file(job_id: UUID, format_: CrawlExportFormat) -> tuple[str, str]:
    """Name and media type of an export."""
    media_type, suffix = FILES[format_]
    return f"job-{job_id}.{suffix}", media_type


def _moved(each: bulk.Moved) -> MovedJob:
    return MovedJob(
        id=each.id,
        job=None if each.job is None else Job.of(each.job),
        problem=None if each.error is None else problem_of(each.error),
    )
