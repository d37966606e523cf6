"""A job and its history, as values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypedDict
from uuid import UUID

from forager.errors import InvalidInput, NotAllowed
from forager.jobs.lifecycle import Status

# values of a payload that belong to one job, and not to jobs that repeat it
GRANTED = frozenset({"granted_pages", "granted_on", "spent_before"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to enqueue.

    `kind` says which function runs it, and `payload` is what that function gets. Higher `priority`
    runs first. After a failure the job is retried up to `max_retries` times. A source has at most
    one active job: `source_id` names it. The job does not start before `delay` seconds.

        NewJob(kind="report", payload={"day": "2026-01-01"}, priority=5, delay=60)
    """

    kind: str
    payload: dict[str, Any] = field(default_factory=dict)
    priority: int = 0
    max_retries: int = 3
    source_id: str | None = None
    user_id: UUID | None = None
    delay: float = 0.0
    # set by the queue, with the span of the request and the host whose region applies
    id: UUID | None = None
    trace: str | None = None
    host: str | None = None
    own_runner: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One row of `crawl_jobs`."""

    id: UUID
    kind: str
    payload: dict[str, Any]
    priority: int
    status: Status
    worker_id: UUID | None
    lease: int
    progress_percentage: int
    created_at: datetime
    run_after: datetime
    started_at: datetime | None
    completed_at: datetime | None
    last_heartbeat: datetime | None
    retry_count: int
    max_retries: int
    error_message: str | None
    stop_reason: str | None
    source_id: str | None
    user_id: UUID | None
    # only workers of this region claim it; None: all of them
    region: str | None
    # runners that were lost with this job in them, lately
    runner_losses: int
    # whether it runs in its own runner
    own_runner: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", Status(self.status))

    @property
    def shown_status(self) -> str:
        """The state as it is shown: a paused job whose runner still runs is pausing."""
        pausing = self.status is Status.PAUSED and self.worker_id is not None
        return "pausing" if pausing else self.status.value

    @property
    def lasting_payload(self) -> dict[str, Any]:
        """The payload without the values of this one job, for a job that repeats it."""
        return {name: value for name, value in self.payload.items() if name not in GRANTED}


class JobFilters(TypedDict, total=False):
    """Conditions on jobs; those that are missing or None do not apply."""

    statuses: Sequence[Status] | None
    kind: str | None
    source_id: str | None
    source_ids: Sequence[str] | None
    host: str | None
    activity: str | None
    user_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """One move of a job: who, when, from, to, why."""

    id: int
    job_id: UUID
    at: datetime
    move: str
    from_status: Status | None
    to_status: Status
    actor: str
    reason: str | None
    lease: int


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One move, and what the job is called."""

    id: int
    job_id: UUID
    kind: str
    source_id: str | None
    at: datetime
    move: str
    from_status: str | None
    to_status: str
    actor: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class StateCount:
    """The jobs in one state: their number, their pending work, the creation of the oldest."""

    status: Status
    jobs: int
    total_pending: int
    oldest: datetime | None


class Move(StrEnum):
    """Actions of a user on a job."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Moved:
    """The result for one id: the job after the move, or why it was not moved."""

    id: UUID
    job: Job | None = None
    error: InvalidInput | NotAllowed | None = None


async def move_each(ids: Sequence[UUID], move: Callable[[UUID], Awaitable[Job]]) -> list[Moved]:
    """Move them one after the other; ids that are named twice are moved once."""
    return [await _move(job_id, move) for job_id in dict.fromkeys(ids)]


async def _move(job_id: UUID, move: Callable[[UUID], Awaitable[Job]]) -> Moved:
    try:
        return Moved(job_id, await move(job_id))
    except (InvalidInput, NotAllowed) as error:
        return Moved(job_id, error=error)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Progress of a job at its last commit."""

    processed: int
    pending: int
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of a worker to write to a job."""

    job_id: UUID
    number: int
    worker_id: UUID

    @property
    def actor(self) -> str:
        return f"worker {self.worker_id}"
