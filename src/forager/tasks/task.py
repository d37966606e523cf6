"""A task: one URL that is kept fresh."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from forager.amounts import parse_duration
from forager.errors import InvalidInput
from forager.fetch.domains.service import LONGEST_INTERVAL, SHORTEST_INTERVAL
from forager.tasks.lifecycle import TaskStatus

# higher runs first, as for jobs; the store keeps 10 - priority (decision 0029)
PRIORITIES = range(10)
DEFAULT_PRIORITY = 5
CHANNEL = "forager_tasks"
"""Channel that notifies workers of queued tasks and of changed holds."""


class Hold(StrEnum):
    """Paused: nothing new begins. Stopped: what is under way is withdrawn as well."""

    PAUSED = "paused"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Task:
    """One row of `crawl_tasks`, with the name of its domain."""

    id: int
    domain_id: int
    domain: str
    url: str
    status: TaskStatus
    priority: int
    popularity: float
    scheduled_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    next_crawl_at: datetime | None
    retry_count: int
    max_retries: int
    # visits in a row whose last retry failed
    failed_visits: int
    error_kind: str | None
    error_message: str | None
    crawl_frequency: timedelta | None
    adapted_frequency: timedelta | None
    hold: Hold | None
    worker_id: UUID | None
    parser_version: str | None
    # which visits use a browser; None: as its domain says
    render: str | None
    # the last visits have shown that the static response has no price
    needs_browser: bool
    found_by: str | None
    created_at: datetime
    updated_at: datetime
    domain_hold: Hold | None = None
    all_hold: Hold | None = None

    @property
    def held_by(self) -> str | None:
        """What keeps it from beginning, the widest hold first."""
        holds = (
            ("all tasks are", self.all_hold),
            ("its domain is", self.domain_hold),
            ("it is", self.hold),
        )
        return next((f"{what} {hold}" for what, hold in holds if hold is not None), None)

    @property
    def shown_status(self) -> str:
        """The state as people see it: a hold on the task itself comes before it."""
        return self.status if self.hold is None else self.hold


@dataclass(frozen=True, slots=True)
class RecoveredTask:
    id: int
    status: str
    retry_count: int
    max_retries: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One row of `task_attempts`, as far as people want to know."""

    stage: str
    attempt: int
    outcome: str
    error_kind: str | None
    error_message: str | None
    http_status: int | None
    final_url: str | None
    proxy_id: int | None
    worker_id: UUID | None
    started_at: datetime | None
    finished_at: datetime
    duration_ms: int | None
    size: int | None


def parse_every(text: str) -> timedelta:
    return checked(parse_duration(text))


def parse_at(text: str) -> datetime:
    """A time as ISO 8601; without an offset it is local."""
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{text[:40]!r} is not a time", hint="Write it as 2026-11-16T08:30, or with +01:00."
        ) from None


def checked(every: timedelta) -> timedelta:
    if not SHORTEST_INTERVAL <= every <= LONGEST_INTERVAL:
        raise InvalidInput("an interval must be from 1s to 10 years")
    return every
