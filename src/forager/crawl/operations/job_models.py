"""Jobs as operations show them: their state, their ledger and their history."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar
from uuid import UUID

from pydantic import Field

from forager.documents.generation import State
from forager.jobs import job as rows
from forager.jobs import summary
from forager.jobs.lifecycle import Status
from forager.operations.models import CrawlPayload, Listed, RequestModel, ResponseModel, example
from forager.operations.operation import Columns

STYLES = {
    "pending": "", "processing": "cyan", "completed": "green", "failed": "red",
    "cancelled": "dim", "paused": "yellow", "pausing": "yellow",
}  # fmt: skip


class ShownStatus(StrEnum):
    """The state of a job; a paused one whose runner is still there is pausing."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    PAUSING = "pausing"


_ABOUT_JOB_EVENT = {
    "move": "The change, such as `pause`.",
    "from_status": "State before the change; null for a new job.",
    "to_status": "State after the change.",
    "actor": "Who or what made the change.",
    "reason": "Why the status changed.",
    "at": "When the status changed.",
}


class JobEvent(ResponseModel, row=rows.JobEvent, about=_ABOUT_JOB_EVENT, thing="event"):
    """One move of a job: who, when, from, to, why."""

    columns: ClassVar[Columns] = {
        "TIME": "at", "EVENT": "move",
        "STATUS": lambda event: (event.to_status, STYLES[event.to_status]),
        "LEASE>": "lease", "ACTOR": "actor", "REASON~": "reason",
    }  # fmt: skip


_ABOUT_JOB = {
    "priority": "Higher runs first.",
    "run_after": "The job does not run before this time.",
    "last_heartbeat": "Last heartbeat of its runner.",
    "runner_losses": "Runners that died with this job in them.",
    "own_runner": "Whether it runs in its own process.",
    "started_at": "When it was claimed first.",
    "kind": "What runs the job: `crawl`, or the name of another job kind.",
}


class Job(ResponseModel, row=rows.Job, about=_ABOUT_JOB):
    """A job as it stands. Secrets in its payload are stars."""

    status: ShownStatus = Field(description="Status of the job.", validation_alias="shown_status")
    payload: CrawlPayload = Field(description="Options of the job.")
    source: str | None = Field(description="Name of the source.", validation_alias="source_id")
    user_id: UUID | None = Field(description="Owner; null for jobs created on the server.")
    progress_percentage: int = Field(
        description="Share of the known work that is done, in percent.", ge=0, le=100
    )
    region: str | None = Field(description="Only workers in this region run it; null: all workers.")


class GenerationChanges(ResponseModel, thing="generation"):
    """The generation that a crawl builds, compared with the one before."""

    number: int
    state: State
    pages: int
    added: int = Field(description="Number of new pages.")
    changed: int = Field(description="Number of changed pages.")
    removed: int = Field(description="Known when the crawl is complete.")
    unchanged: int
    carried_over: int = Field(description="Pages that failed temporarily and stay published.")
    note: str | None = Field(
        description="Why it is held back; of a published generation, a warning."
    )


class Ledger(ResponseModel):
    """discovered = fetched + unchanged + duplicate + failed + excluded + pending, always."""

    discovered: int = Field(description="URLs known to the crawl.")
    fetched: int = Field(description="Pages fetched.")
    unchanged: int
    duplicate: int = Field(description="URLs with the content of another URL.")
    failed: int = Field(description="URLs that failed.")
    excluded: int = Field(description="URLs that the rules exclude.")
    pending: int = Field(description="URLs yet to be fetched.")
    carried_over: int = Field(description="Failed pages whose last good version stays published.")
    failed_by_reason: dict[str, int] = Field(description="Failed URLs by reason.")
    carried_over_by_reason: dict[str, int] = Field(
        description="Carried-over pages by reason of failure."
    )
    excluded_by_reason: dict[str, int] = Field(description="Excluded URLs by reason.")
    duplicate_by_reason: dict[str, int] = Field(description="Duplicates by reason.")
    out_of_scope_links: dict[str, int] = Field(description="Links out of scope by reason.")
    rendered_by_reason: dict[str, int] = Field(
        description="Pages that were rendered in a browser, by reason."
    )
    remarks: dict[str, int] = Field(description="Remarks by kind.")
    sitemaps: dict[str, int] = Field(description="Sitemaps by outcome.")


class ListedJob(Job):
    """A job, whether its pages are published, and what it waits for."""

    generation: GenerationChanges | None = Field(
        description="Null before the job starts, and for jobs that keep no documents."
    )
    waiting: str | None = Field(
        description="What an active crawl waits for, for example "
        "`rate-limited by example.com (Retry-After), next request in 4 s`."
    )


class ListedJobs(Listed[ListedJob]):
    """Jobs, newest first, and what the active ones are doing."""

    summary: str = Field(description="Activities of all active jobs; empty if no job is active.")


class JobDetail(ListedJob):
    """A job with how far it is, and its latest history."""

    total_processed: int = Field(description="Units of work done; for a crawl, URLs.")
    total_pending: int
    pages_per_second: float = Field(description="Pace of a crawl.")
    eta_seconds: float | None = Field(
        validation_alias="seconds_left", description="Null unless it runs and makes progress."
    )
    ledger: Ledger | None = Field(
        description="Account of all URLs of a crawl; null for other jobs, and before it starts."
    )
    checkpoint: dict[str, Any] | None = Field(description="Data that its kind has saved.")
    last_events: list[JobEvent] = Field(description="Latest events, oldest first.")


_ABOUT_STATE_COUNT = {
    "status": "The status that the jobs have.",
    "jobs": "Number of jobs.",
    "oldest": "When the oldest of these jobs was created.",
}


class StateCount(ResponseModel, row=rows.StateCount, about=_ABOUT_STATE_COUNT):
    """How many jobs are in one state, and the work they still have."""


class JobsSummary(ResponseModel, row=summary.JobsSummary):
    """What the active jobs are doing, and how fast."""

    activities: dict[summary.JobActivity, int] = Field(description="Active jobs by activity.")
    pages_per_second: float = Field(description="Pace of all running crawls together.")
    seconds_left: float | None = Field(
        description="Time until the known URLs are fetched at the present pace; null: unknown."
    )
    message: str = Field(description="The summary as text; empty if no job is active.")


class PendingWork(ResponseModel):
    """The work that is left, over all jobs."""

    counts: dict[Status, int] = Field(description="Jobs by state.")
    pending_work: list[StateCount] = Field(description="Remaining work by state.")
    summary: JobsSummary = Field(description="What the active jobs are doing.")


class RetriedUrls(ResponseModel):
    """The job, and how many URLs it fetches again."""

    job: Job = Field(description="The job that fetches the URLs again.")
    urls: int = Field(description="Number of failed URLs that are fetched again.")


class PruneOrder(RequestModel):
    """The age of jobs to delete."""

    model_config = example(older_than_days=30)

    older_than_days: float | None = Field(
        default=None,
        ge=0,
        le=36500,
        allow_inf_nan=False,
        description="Minimum age in days; default: the setting.",
    )


class DeletedJobs(ResponseModel):
    """How many jobs were deleted."""

    deleted: int = Field(description="Number of deleted jobs.")
