"""A task: one URL that is kept fresh."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from forager.amounts import parse_every as parse_every
from forager.errors import InvalidInput
from forager.tasks.lifecycle import TaskStatus

# higher runs first, as for jobs; the database stores 10 - priority (decision 0029)
PRIORITIES = range(10)
DEFAULT_PRIORITY = 5
CHANNEL = "forager_tasks"
"""Channel that notifies workers of queued tasks and of changed holds."""


class Hold(StrEnum):
    """Paused: nothing new is started. Stopped: work in progress is withdrawn as well."""

    PAUSED = "paused"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Task:
    """A row of `crawl_tasks`, with the name of its domain."""

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
    # in a row, after their last retry
    failed_visits: int
    error_kind: str | None
    error_message: str | None
    crawl_frequency: timedelta | None
    adapted_frequency: timedelta | None
    hold: Hold | None
    worker_id: UUID | None
    parser_version: str | None
    # which visits use a browser; None: the setting of its domain
    render: str | None
    # the static response has no price
    needs_browser: bool
    # when that was decided, and when it is checked without a browser
    browser_since: datetime | None
    browser_until: datetime | None
    # where the URL redirects to permanently
    moved_to: str | None
    found_by: str | None
    created_at: datetime
    updated_at: datetime
    domain_hold: Hold | None = None
    all_hold: Hold | None = None
    domain_alarm: str | None = None

    @property
    def held_by(self) -> str | None:
        """The hold that keeps it from starting, the widest one first."""
        holds = (
            ("all tasks are", self.all_hold),
            ("its domain is", self.domain_hold),
            ("it is", self.hold),
        )
        return next((f"{what} {hold}" for what, hold in holds if hold is not None), None)

    @property
    def shown_status(self) -> str:
        """The status, or the hold on the task itself."""
        return self.status if self.hold is None else self.hold


@dataclass(frozen=True, slots=True)
class TaskSchedule:
    """The settings that decide when a task is visited next; None: not set."""

    id: int
    crawl_frequency: timedelta | None = None
    adapted_frequency: timedelta | None = None
    # of its domain
    domain_frequency: timedelta | None = None
    adaptive: bool | None = None
    min_frequency: timedelta | None = None
    max_frequency: timedelta | None = None


@dataclass(frozen=True, slots=True)
class TasksNow:
    """The state of all tasks; cheap to read, however many there are."""

    any_tasks: bool
    # of all tasks
    hold: str | None
    ticked_at: datetime | None
    now: datetime

    @property
    def no_scheduler(self) -> bool:
        return is_silent(self.ticked_at, self.now)


# the scheduler ticks every second
SILENT_AFTER = timedelta(minutes=1)


def is_silent(ticked_at: datetime | None, now: datetime) -> bool:
    """Whether no scheduler runs, by its last tick."""
    return ticked_at is None or now - ticked_at > SILENT_AFTER


@dataclass(frozen=True, slots=True)
class RecoveredTask:
    """A task that was taken from a dead worker."""

    id: int
    status: str
    retry_count: int
    max_retries: int


def parse_at(text: str) -> datetime:
    """An ISO 8601 time; local without an offset."""
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{text[:40]!r} is not a time", hint="Write it as 2026-11-16T08:30, or with +01:00."
        ) from None
