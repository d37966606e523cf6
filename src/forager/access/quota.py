"""How much an owner may use; None means no limit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of an owner; None: no limit."""

    active_jobs: int | None = None
    pages_per_job: int | None = None
    pages_per_day: int | None = None
    requests_per_minute: int | None = None

    @property
    def limits_jobs(self) -> bool:
        """Whether anything must be counted before a job is accepted."""
        return self.active_jobs is not None or self.pages_per_day is not None

    @property
    def limits_pages_or_jobs(self) -> bool:
        return self.limits_jobs or self.pages_per_job is not None


NO_QUOTA = Quota()


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """What an owner has in use, and when the day that is counted ends (in UTC)."""

    active_jobs: int
    pages_today: int
    seconds_left_today: float


@dataclass(frozen=True, slots=True)
class PageSpending:
    """What a job has fetched: in all, and of that what counts today."""

    pages: int
    pages_today: int
    today: date


@dataclass(frozen=True, slots=True)
class PageGrant:
    """How far a job may go, the day that this counts for, and the pages that do not count."""

    pages: int
    day: date
    spent_before: int
