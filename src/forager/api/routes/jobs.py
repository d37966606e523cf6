"""Jobs: looking at them, and steering them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from forager.api.limits import Limit, Listed, Offset, Paged, cut, listed
from forager.api.models import LARGEST_BIGINT, PlainText
from forager.api.models import jobs as views
from forager.api.problems import problem_of
from forager.api.services import Administers, JobId, Operates, Reads
from forager.api.streams import download, file_responses
from forager.archive.options import archive_options
from forager.crawl.export import Export, export_stream
from forager.crawl.options import ExportFormat
from forager.crawl.settlement import Outcome, UrlSort
from forager.crawl.url_lists import UrlFilter, list_pending, list_settled
from forager.db.cursor import Page
from forager.errors import InvalidInput
from forager.jobs import job as bulk
from forager.jobs.job import Move
from forager.jobs.lifecycle import Status
from forager.jobs.workers import job_report, list_workers
from forager.services.report import list_service_processes

router = APIRouter(tags=["jobs"])

MAX_STATUSES = 20
FILES = {
    ExportFormat.WARC: ("application/gzip", "warc.gz"),
    ExportFormat.JSONL: ("application/x-ndjson", "jsonl"),
    ExportFormat.PARQUET: ("application/vnd.apache.parquet", "parquet"),
    ExportFormat.MARKDOWN: ("application/zip", "zip"),
}

Filter = Annotated[PlainText | None, Query(max_length=500)]
EventCursor = Annotated[
    int, Query(ge=0, le=LARGEST_BIGINT, description="The `next_cursor` of the previous page.")
]


@router.get("/jobs")
async def list_jobs(
    here: Reads,
    paging: Paged,
    status: Annotated[list[Status] | None, Query(max_length=MAX_STATUSES)] = None,
    kind: Filter = None,
    source: Filter = None,
) -> Listed[views.Job]:
    """List jobs, newest first."""
    page = await here.queue.list_jobs(
        statuses=status, kind=kind, source_id=source, user_id=here.caller.sees_only, **paging
    )
    return listed(page, views.Job.of)


@router.get("/jobs/work")
async def work(here: Reads) -> views.PendingWork:
    """Count jobs by state, with their remaining work."""

    async def count() -> views.PendingWork:
        counts = await here.queue.counts(user_id=here.caller.sees_only)
        left = await here.queue.pending_work(user_id=here.caller.sees_only)
        return views.PendingWork(
            counts=counts, pending_work=[views.StateCount.of(row) for row in left]
        )

    found: views.PendingWork = await here.cache.get(("work", here.caller.sees_only), count)
    return found


@router.post("/jobs/bulk")
async def move_many(order: views.BulkOrder, here: Operates) -> views.BulkResult:
    """Pause, resume, cancel or retry several jobs; each has a separate result."""
    moved = await bulk.move_each(
        order.ids, lambda job_id: here.move_job(job_id, order.action, order.reason)
    )
    items = [_moved(each) for each in moved]
    done = sum(item.job is not None for item in items)
    return views.BulkResult(moved=done, failed=len(items) - done, items=items)


@router.post("/jobs/prune")
async def prune(order: views.PruneOrder, here: Administers) -> views.Pruned:
    """Delete finished jobs older than this, with their history; the default is a setting."""
    days = order.older_than_days
    return views.Pruned(
        deleted=await here.queue.prune(older_than=None if days is None else days * 86400)
    )


@router.get("/jobs/{job_id}")
async def show(job_id: JobId, here: Reads) -> views.JobDetail:
    """Show one job in detail."""
    job = await here.find_job(job_id)
    report = await job_report(here.database, here.queue, job.id)
    return views.JobDetail.of(report.job, report)


@router.get("/jobs/{job_id}/pages")
async def pages(
    job_id: JobId,
    here: Reads,
    paging: Paged,
    outcome: Annotated[list[Outcome] | None, Query(max_length=MAX_STATUSES)] = None,
    reason: Filter = None,
    http_status: Annotated[int | None, Query(ge=0, le=999)] = None,
    contains: Filter = None,
    sort: UrlSort | None = None,
    descending: bool = False,
) -> Listed[views.PageOutcome]:
    """List processed URLs of a job with their outcomes.

    Without `sort` the order has no meaning. Up to 100,000 URLs can be sorted. A page of a filtered
    list may have fewer items than `limit` although more follow.
    """
    job = await here.find_job(job_id)
    wanted = UrlFilter(
        outcomes=outcome or tuple(Outcome), reason=reason, http_status=http_status, text=contains
    )
    page = await list_settled(
        here.database, job.id, wanted, sort=sort, descending=descending, **paging
    )
    return listed(page, views.PageOutcome.of)


@router.get("/jobs/{job_id}/pending")
async def pending(job_id: JobId, here: Reads, paging: Paged) -> Listed[views.PendingUrl]:
    """List URLs that a job has yet to fetch, in the order in which it fetches them."""
    job = await here.find_job(job_id)
    page = await list_pending(here.database, job.id, **paging)
    return listed(page, views.PendingUrl.of)


@router.get("/jobs/{job_id}/events")
async def events(
    job_id: JobId, here: Reads, limit: Limit = 100, cursor: EventCursor = 0
) -> Listed[views.JobEvent]:
    """List the history of a job, oldest first."""
    job = await here.find_job(job_id)
    found = await here.queue.events(job.id, after=cursor, limit=limit)
    # a full page may be the last one: only the next event shows it
    more = len(found) == limit and await here.queue.events(job.id, after=found[-1].id, limit=1)
    return listed(Page(found, str(found[-1].id) if more else None), views.JobEvent.of)


@router.get(
    "/jobs/{job_id}/export",
    response_class=StreamingResponse,
    responses=file_responses(kind for kind, _ in FILES.values()),
)
async def export(
    job_id: JobId,
    here: Reads,
    format_: Annotated[ExportFormat, Query(alias="format")] = ExportFormat.JSONL,
    outcome: Annotated[list[Outcome] | None, Query(max_length=MAX_STATUSES)] = None,
    body: Annotated[bool, Query(description="Add the text of each page (jsonl, parquet).")] = False,
) -> Response:
    """Export a job: archived responses (warc), a row per URL, or published pages (markdown)."""
    job = await here.find_job(job_id)
    if body and format_ in (ExportFormat.WARC, ExportFormat.MARKDOWN):
        raise InvalidInput("`body` is for jsonl and parquet")
    if outcome and format_ is ExportFormat.MARKDOWN:
        raise InvalidInput("`outcome` is for warc, jsonl and parquet")
    wanted = Export(format=format_, outcomes=tuple(outcome or Outcome), body=body)
    storage = archive_options(here.settings).open()
    parts = export_stream(here.database, storage, job.id, wanted)
    return await download(parts, *export_file(job.id, format_))


def export_file(job_id: UUID, format_: ExportFormat) -> tuple[str, str]:
    """Name and media type of an export."""
    media_type, suffix = FILES[format_]
    return f"job-{job_id}.{suffix}", media_type


MOVES = {
    Move.PAUSE: "Pause a job. A running job commits its progress first; until then it is pausing.",
    Move.RESUME: "Continue a paused job from its last commit.",
    Move.CANCEL: "Cancel a job permanently; unpublished work is discarded.",
    Move.RETRY: "Retry a failed job from its last commit, with all its retries.",
}


def _add_move(move: Move) -> None:
    async def moved(
        job_id: JobId, here: Operates, order: views.MoveOrder | None = None
    ) -> views.Job:
        job = await here.find_job(job_id)
        reason = order.reason if order else None
        return views.Job.of(await here.move_job(job.id, move, reason))

    path = f"/jobs/{{job_id}}/{move}"
    router.post(path, name=move.value, description=MOVES[move])(moved)


for each in MOVES:
    _add_move(each)


@router.post("/jobs/{job_id}/retry-failed")
async def retry_failed(
    job_id: JobId, here: Operates, order: views.RetryFailedOrder | None = None
) -> views.RetriedUrls:
    """Fetch the failed URLs of a finished crawl again, and publish them with its other pages."""
    job = await here.find_job(job_id)
    done = await here.retry_failed(job.id, order.reasons if order else ())
    return views.RetriedUrls(job=views.Job.of(done.job), urls=done.urls)


@router.get("/workers", tags=["workers"])
async def workers(here: Operates, limit: Limit = 100, cursor: Offset = 0) -> Listed[views.Worker]:
    """List workers that are or recently were active."""
    return listed(
        cut(await list_workers(here.database, here.settings), cursor, limit), views.Worker.of
    )


@router.get("/services", tags=["workers"])
async def services(
    here: Operates, limit: Limit = 100, cursor: Offset = 0
) -> Listed[views.ServiceProcess]:
    """List background services of all processes, with state, last run and last error."""
    found = await list_service_processes(here.database, here.settings)
    return listed(cut(found, cursor, limit), views.ServiceProcess.of)


def _moved(each: bulk.Moved) -> views.Moved:
    return views.Moved(
        id=each.id,
        job=None if each.job is None else views.Job.of(each.job),
        problem=None if each.error is None else problem_of(each.error),
    )
