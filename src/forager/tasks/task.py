"""A task: one URL kept fresh. Its states, the one table of legal moves, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

PRIORITIES = range(1, 11)
DEFAULT_PRIORITY = 5
CHANNEL = "forager_tasks"
"""Where workers are told that something was queued, or that a hold was put or lifted."""


class TaskStatus(StrEnum):
    PENDING = "pending"
    QUEUED = "queued"
    CRAWLING = "crawling"
    DOWNLOADED = "downloaded"
    PARSING = "parsing"
    COMPLETED = "completed"
    FAILED = "failed"


class Hold(StrEnum):
    """Paused: nothing new begins. Stopped: what is under way is withdrawn as well."""

    PAUSED = "paused"
    STOPPED = "stopped"


_S = TaskStatus

# From each state to those that may follow. Back to pending: a retry, a host that rests, a stop, or
# a person who wants it now; back by one stage: its worker died, or its parsing was stopped.
MOVES: dict[TaskStatus, frozenset[TaskStatus]] = {
    _S.PENDING: frozenset({_S.PENDING, _S.QUEUED}),
    _S.QUEUED: frozenset({_S.CRAWLING, _S.PENDING}),
    # a page that did not change needs no parsing
    _S.CRAWLING: frozenset({_S.DOWNLOADED, _S.COMPLETED, _S.FAILED, _S.PENDING, _S.QUEUED}),
    _S.DOWNLOADED: frozenset({_S.PARSING}),
    _S.PARSING: frozenset({_S.COMPLETED, _S.FAILED, _S.PENDING, _S.DOWNLOADED}),
    _S.COMPLETED: frozenset({_S.PENDING}),
    _S.FAILED: frozenset({_S.PENDING}),
}

RECRAWLABLE = frozenset({_S.PENDING, _S.COMPLETED, _S.FAILED})
UNDER_WAY = frozenset({_S.QUEUED, _S.CRAWLING, _S.DOWNLOADED, _S.PARSING})
# where a stop leaves what it finds under way
WITHDRAWN_TO = {
    _S.QUEUED: _S.PENDING,
    _S.CRAWLING: _S.PENDING,
    _S.PARSING: _S.DOWNLOADED,
}


def may_follow(before: TaskStatus, after: TaskStatus) -> bool:
    return after in MOVES[before]


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
    error_kind: str | None
    error_message: str | None
    crawl_frequency: timedelta | None
    adapted_frequency: timedelta | None
    hold: Hold | None
    worker_id: UUID | None
    parser_version: str | None
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
