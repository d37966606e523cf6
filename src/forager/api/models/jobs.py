"""Jobs, their history, and the workers that run them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from forager.api.models import Order, PlainText, Reason, Time, View, example
from forager.api.problems import Problem
from forager.crawl.settlement import Outcome
from forager.jobs import job as rows
from forager.jobs.job import Move
from forager.jobs.lifecycle import Status
from forager.jobs.workers import JobReport


class ShownStatus(StrEnum):
    """The state of a job; a paused one whose runner is still there is pausing."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    PAUSING = "pausing"


class Job(View):
    """A job as it stands. Secrets in its payload are stars."""

    id: UUID
    kind: str
    status: ShownStatus
    source: str | None = Field(validation_alias="source_id")
    user_id: UUID | None = Field(description="Its owner; null for jobs made at the server.")
    priority: int
    progress_percentage: int = Field(ge=0, le=100)
    retry_count: int
    max_retries: int
    error_message: str | None
    stop_reason: str | None
    worker_id: UUID | None
    region: str | None = Field(description="Only workers of this region run it; null: all.")
    lease: int
    created_at: Time
    run_after: Time
    started_at: Time | None
    completed_at: Time | None
    last_heartbeat: Time | None
    payload: dict[str, Any]

    @classmethod
    def of(cls, job: rows.Job) -> Job:
        return cls.model_validate(_values(job))


class JobEvent(View):
    """One move of a job: who, when, from, to, why."""

    id: int
    job_id: UUID
    at: Time
    move: str
    from_status: Status | None
    to_status: Status
    actor: str
    reason: str | None
    lease: int


class JobDetail(Job):
    """A job with how far it is, and its latest history."""

    total_processed: int
    total_pending: int
    last_events: list[JobEvent]

    @classmethod
    def of_report(cls, report: JobReport) -> JobDetail:
        return cls.model_validate(
            {
                **_values(report.job),
                "total_processed": report.total_processed,
                "total_pending": report.total_pending,
                "last_events": report.last_events,
            }
        )


class PageOutcome(View):
    """The outcome of one URL of a job."""

    url: str
    outcome: Outcome
    reason: str | None
    detail: str | None
    duplicate_of: str | None
    http_status: int | None
    depth: int
    parent_url: str | None
    via: str
    content_type: str | None
    title: str | None
    size: int | None
    settled_at: Time


class PendingUrl(View):
    """A URL that a job has yet to fetch."""

    url: str
    depth: int
    via: str
    attempts: int
    not_before: Time | None = Field(description="When it is retried; null: it was not tried yet.")
    parent_url: str | None


class StateCount(View):
    """How many jobs are in one state, and the work they still have."""

    status: Status
    jobs: int
    total_pending: int
    oldest: Time | None


class PendingWork(View):
    counts: dict[Status, int] = Field(description="Jobs by state.")
    pending_work: list[StateCount] = Field(description="What is left to do, by state.")


class MoveOrder(Order):
    model_config = example(reason="the site is being moved")

    reason: Reason | None = Field(default=None, description="Why; kept in the job's history.")


class RetryFailedOrder(Order):
    model_config = example(reasons=["http_500"])

    reasons: list[PlainText] = Field(
        default_factory=list,
        max_length=100,
        description="Only URLs with these reasons.",
    )


class RetriedUrls(View):
    job: Job
    urls: int = Field(description="Number of failed URLs that are fetched again.")


class BulkOrder(Order):
    model_config = example(action="pause", ids=["0199a5c2-8a00-7000-8000-000000000000"])

    action: Move
    ids: list[UUID] = Field(min_length=1, max_length=1000)
    reason: Reason | None = None


class Moved(View):
    """The result for one job: its current state, or why it was not changed."""

    id: UUID
    job: Job | None
    problem: Problem | None


class BulkResult(View):
    moved: int
    failed: int
    items: list[Moved] = Field(description="In the order of the ids.")


class PruneOrder(Order):
    model_config = example(older_than_days=30)

    older_than_days: float | None = Field(default=None, ge=0, le=36500, allow_inf_nan=False)


class Pruned(View):
    deleted: int


class Worker(View):
    """A worker process that is, or lately was, there."""

    id: UUID
    host: str
    pid: int
    version: str
    capacity: int
    started_at: Time
    last_seen: Time
    state: str
    role: str
    region: str | None = Field(description="It also does what is tied to this region.")
    renders: bool = Field(description="Whether it renders the pages of tasks in a browser.")
    note: str | None


class BackgroundService(View):
    """`failures` counts failed runs in a row; `skipped` names items of the last run that failed."""

    name: str
    every: float = Field(description="Seconds between two runs.")
    state: Literal["waiting", "running", "backing_off", "stuck"]
    failures: int
    is_failing: bool
    last_run: Time | None
    last_success: Time | None
    next_run: Time | None
    last_error: str | None
    last_error_at: Time | None
    skipped: list[str]


class ServiceProcess(View):
    """A process that runs background services; `is_gone`: it has not reported for too long."""

    id: UUID
    command: str
    host: str
    pid: int
    started_at: Time
    last_seen: Time
    is_gone: bool
    services: list[BackgroundService]


def _values(job: rows.Job) -> dict[str, Any]:
    values = {name: getattr(job, name) for name in job.__slots__}
    values["status"] = job.shown_status
    # the sealed secrets of a crawl are of no use to anybody but its runner
    values["payload"] = {k: v for k, v in job.payload.items() if k != "sealed"}
    return values
