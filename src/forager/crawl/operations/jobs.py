"""Operations on jobs: their state and history, steering them, and deleting old ones."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, WithJsonSchema

from forager.crawl import admission
from forager.crawl.operations.job_models import (
    STYLES,
    DeletedJobs,
    Job,
    JobDetail,
    JobEvent,
    JobsSummary,
    ListedJob,
    ListedJobs,
    PendingWork,
    PruneOrder,
    RetriedUrls,
    StateCount,
)
from forager.crawl.reports.report import crawl_report, waits_of
from forager.db.cursor import Page
from forager.documents.generation import State
from forager.documents.publication import publish_hint
from forager.documents.sources import generations_of_jobs, versions_of
from forager.jobs import summary
from forager.jobs.job import Move
from forager.jobs.kinds import import_modules
from forager.jobs.lifecycle import FINISHED, Status
from forager.jobs.queue import Queue
from forager.jobs.workers import job_report
from forager.operations.models import LARGEST_BIGINT, Limit, Listed, Paging, PlainText, listed
from forager.operations.operation import Columns, Context, Group, Scope

jobs = Group("jobs", "List, pause, resume, cancel and retry jobs.", page="Jobs")

JobId = Annotated[
    PlainText,
    Field(description="ID of the job, or its beginning as long as that is unique."),
    WithJsonSchema({"type": "string", "format": "uuid"}),
]
EventCursor = Annotated[
    int, Field(ge=0, le=LARGEST_BIGINT, description="The `next_cursor` of the previous page.")
]
Statuses = Annotated[list[Status], Field(max_length=20, description="Only jobs in this state.")]
OfKind = Annotated[PlainText, Field(max_length=500, description="Only jobs of this kind.")]
OfSource = Annotated[PlainText, Field(max_length=500, description="Only jobs of this source.")]
OnHost = Annotated[
    PlainText, Field(max_length=500, description="Only jobs whose first URL is on this host.")
]
Doing = Annotated[summary.JobActivity, Field(description="Only active jobs that are doing this.")]
MoveReason = Annotated[
    PlainText, Field(max_length=500, description="Reason, kept in the history of the job.")
]
FailureReasons = Annotated[
    list[PlainText], Field(max_length=100, description="Only URLs with these reasons.")
]


def _status(found: Any) -> tuple[str, str]:
    """The state; a job that finished without publishing is not green."""
    if found.generation is not None and found.generation.state is State.HELD_BACK:
        return f"{found.status}, {State.HELD_BACK.label}", "yellow"
    return found.status, STYLES[found.status]


def _note(found: Any) -> str:
    retried = ""
    if found.status not in FINISHED and found.retry_count:
        retried = f"retry {found.retry_count} of {found.max_retries}: "
    text = found.error_message or found.stop_reason or ""
    if found.generation is not None and found.generation.note:
        text = found.generation.note
    elif text == "finished":
        text = ""
    return "; ".join(filter(None, (retried + text, found.waiting)))


def _how_to_publish(found: Any) -> str:
    held_back = found.generation is not None and found.generation.state is State.HELD_BACK
    return f"held back: {publish_hint(found.source)}" if held_back else ""


JOB_COLUMNS: Columns = {
    "ID": "id", "STATUS": _status, "KIND": "kind",
    "DONE>": lambda found: f"{found.progress_percentage} %", "CREATED": "created_at",
    # terminals are narrow
    "SOURCE…?": "source", "NOTE…?": _note,
}  # fmt: skip


def queue_of(context: Context) -> Queue:
    """The queue, with all kinds of jobs."""
    import_modules(context.settings.job_modules)
    return Queue(context.database, context.settings)


async def find_job(context: Context, job_id: str) -> UUID:
    """The ID of a job that the caller sees."""
    return await queue_of(context).resolve(job_id, user_id=context.owner)


@jobs.operation(
    "list",
    "GET /jobs",
    columns=JOB_COLUMNS,
    none="No jobs found. `forager crawl URL` creates one, and so does `forager demo`.",
    note=lambda found: found.summary,
)
async def list_jobs(
    context: Context,
    paging: Paging,
    status: Statuses | None = None,
    kind: OfKind | None = None,
    source: OfSource | None = None,
    host: OnHost | None = None,
    activity: Doing | None = None,
) -> ListedJobs:
    """List jobs, newest first, and summarize the active ones."""
    page = await queue_of(context).list_jobs(
        statuses=status,
        kind=kind,
        source_ids=source and await versions_of(context.database, source),
        host=host and host.lower(),
        activity=activity,
        user_id=context.owner,
        **paging,
    )
    built = await generations_of_jobs(context.database, [job.id for job in page.items])
    waits = await waits_of(context.database, page.items)
    items = [
        ListedJob.of(job, generation=built.get(job.id), waiting=waits.get(job.id))
        for job in page.items
    ]
    active = await _summary(context)
    return ListedJobs(items=items, next_cursor=page.next_cursor, summary=active.message)


async def _summary(context: Context) -> summary.JobsSummary:
    async def summarize() -> summary.JobsSummary:
        return await summary.summarize_jobs(context.database, user_id=context.owner)

    found: summary.JobsSummary = await context.cached(("jobs", context.owner), summarize)
    return found


@jobs.operation("work", "GET /jobs/work", cached=True)
async def work(context: Context) -> PendingWork:
    """Count jobs by state and activity, with their remaining work and pace."""
    queue, owner = queue_of(context), context.owner
    return PendingWork(
        counts=await queue.counts(user_id=owner),
        pending_work=[StateCount.of(row) for row in await queue.pending_work(user_id=owner)],
        summary=JobsSummary.of(await _summary(context)),
    )


@jobs.operation("show", "GET /jobs/{job_id}", note=_how_to_publish)
async def show(context: Context, job_id: JobId) -> JobDetail:
    """Show one job in detail."""
    job, queue = await find_job(context, job_id), queue_of(context)
    report = await job_report(context.database, queue, job)
    crawl = await crawl_report(context.database, queue, job)
    waiting = crawl.wait.message if crawl.wait else None
    ledger = crawl.ledger.summary() if crawl.ledger.discovered else None
    return JobDetail.of(report.job, report, crawl, waiting=waiting, ledger=ledger)


async def _move(context: Context, job_id: str, move: Move, reason: str | None) -> Job:
    job = await find_job(context, job_id)
    return Job.of(await admission.move_job(context, job, move, reason))


MOVED = "{id} is {status}"


@jobs.operation("pause", "POST /jobs/{job_id}/pause", many=True, done=MOVED, button="Pause")
async def pause(context: Context, job_id: JobId, reason: MoveReason | None = None) -> Job:
    """Pause a job. A running job commits its progress first; until then it is pausing."""
    return await _move(context, job_id, Move.PAUSE, reason)


@jobs.operation("resume", "POST /jobs/{job_id}/resume", many=True, done=MOVED, button="Resume")
async def resume(context: Context, job_id: JobId, reason: MoveReason | None = None) -> Job:
    """Continue a paused job from its last commit."""
    return await _move(context, job_id, Move.RESUME, reason)


@jobs.operation(
    "cancel",
    "POST /jobs/{job_id}/cancel",
    many=True,
    confirm=lambda given: len(given["job_id"]) > 1,
    done=MOVED,
    button="Cancel job",
)
async def cancel(context: Context, job_id: JobId, reason: MoveReason | None = None) -> Job:
    """Cancel a job permanently; unpublished work is discarded."""
    return await _move(context, job_id, Move.CANCEL, reason)


@jobs.operation("retry", "POST /jobs/{job_id}/retry", many=True, done=MOVED, button="Retry")
async def retry(context: Context, job_id: JobId, reason: MoveReason | None = None) -> Job:
    """Retry a failed job from its last commit, with all its retries."""
    return await _move(context, job_id, Move.RETRY, reason)


@jobs.operation(
    "retry-failed",
    "POST /jobs/{job_id}/retry-failed",
    done=lambda done: f"{done.job.id} is {done.job.status}; URLs: {done.urls}",
    button="Retry these",
)
async def retry_failed(
    context: Context, job_id: JobId, reasons: FailureReasons | None = None
) -> RetriedUrls:
    """Fetch the failed URLs of a finished crawl again, and publish them with its other pages."""
    job = await find_job(context, job_id)
    return RetriedUrls.of(await admission.retry_failed(context, job, reasons or ()))


@jobs.operation(
    "events",
    "GET /jobs/{job_id}/events",
    columns=JobEvent.columns,
    none="No events after this one.",
)
async def events(
    context: Context, job_id: JobId, limit: Limit = 100, cursor: EventCursor = 0
) -> Listed[JobEvent]:
    """List the history of a job, oldest first."""
    job, queue = await find_job(context, job_id), queue_of(context)
    found = await queue.events(job, after=cursor, limit=limit)
    # a full page may be the last one: only the next event shows it
    more = len(found) == limit and await queue.events(job, after=found[-1].id, limit=1)
    return listed(Page(found, str(found[-1].id) if more else None), JobEvent.of)


@jobs.operation(
    "prune", "POST /jobs/prune", scope=Scope.ADMIN, confirm=True, done="jobs deleted: {deleted}"
)
async def prune(context: Context, order: PruneOrder) -> DeletedJobs:
    """Delete finished jobs older than this, with their history; the default is a setting."""
    days = order.older_than_days
    older_than = None if days is None else days * 86400
    return DeletedJobs(deleted=await queue_of(context).prune(older_than=older_than))


jobs.by_hand("pause", "POST /jobs/bulk")
