"""Jobs, their history, and the workers that run them."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal
from uuid import UUID

from pydantic import Field

from forager.api.models import CrawlPayload, Order, PlainText, Reason, Time, View, example
from forager.api.problems import Problem
from forager.crawl import settlement
from forager.crawl.settlement import Outcome, SettledUrl
from forager.jobs import job as rows
from forager.jobs import workers
from forager.jobs.job import Move
from forager.jobs.lifecycle import Status
from forager.services import status
from forager.services.status import ServiceStatus


class ShownStatus(StrEnum):
    """The state of a job; a paused one whose runner is still there is pausing."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    PAUSING = "pausing"


class Job(View, row=rows.Job):
    """A job as it stands. Secrets in its payload are stars."""

    status: ShownStatus = Field(validation_alias="shown_status")
    payload: CrawlPayload
    source: str | None = Field(validation_alias="source_id")
    user_id: UUID | None = Field(description="Owner; null for jobs created on the server.")
    progress_percentage: int = Field(ge=0, le=100)
    region: str | None = Field(description="Only workers in this region run it; null: all workers.")


class JobEvent(View, row=rows.JobEvent):
    """One move of a job: who, when, from, to, why."""


class JobDetail(Job):
    """A job with how far it is, and its latest history."""

    total_processed: int
    total_pending: int
    last_events: list[JobEvent]


_NOT_SHOWN = ("content_hash", "segment", "segment_length", "segment_offset", "url_hash")


class PageOutcome(View, row=SettledUrl, hidden=_NOT_SHOWN):
    """The outcome of one URL of a job."""

    outcome: Outcome


class PendingUrl(View, row=settlement.PendingUrl, hidden=("seq",)):
    """A URL that a job has yet to fetch."""

    not_before: Time | None = Field(description="Time of the next retry; null: not tried yet.")


class StateCount(View, row=rows.StateCount):
    """How many jobs are in one state, and the work they still have."""


class PendingWork(View):
    counts: dict[Status, int] = Field(description="Jobs by state.")
    pending_work: list[StateCount] = Field(description="Remaining work by state.")


class MoveOrder(Order):
    model_config = example(reason="the site is being moved")

    reason: Reason | None = Field(
        default=None, description="Reason, kept in the history of the job."
    )


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
    items: list[Moved] = Field(description="In the order of the given IDs.")


class PruneOrder(Order):
    model_config = example(older_than_days=30)

    older_than_days: float | None = Field(default=None, ge=0, le=36500, allow_inf_nan=False)


class Pruned(View):
    deleted: int


class Worker(View, row=workers.Worker):
    """A worker process that is, or lately was, there."""

    region: str | None = Field(description="Region whose work it also runs.")
    renders: bool = Field(description="Whether it renders the pages of tasks in a browser.")


class BackgroundService(View, row=ServiceStatus, hidden=("is_fault",)):
    """`failures` counts failed runs in a row; `skipped` names items of the last run that failed."""

    every: float = Field(description="Seconds between two runs.")
    state: Literal["waiting", "running", "backing_off", "stuck"]
    is_failing: bool


class ServiceProcess(View, row=status.ServiceProcess, hidden=("process",)):
    """A process that runs background services; `is_gone`: it has not reported for too long."""

    services: list[BackgroundService]
