"""Sources, generations and refresh schedules, as values; the quality gate of a generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from cronsim import CronSim, CronSimError

from forager.amounts import parse_duration
from forager.errors import InvalidInput


class State(StrEnum):
    BUILDING = "building"
    PUBLISHED = "published"
    # complete, but not what readers see: published before, or refused
    RETIRED = "retired"
    # about to be deleted
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The pages that one job found, and how they differ from those before."""

    id: int
    source_id: str
    number: int
    state: State
    job_id: UUID | None
    base_id: int | None
    # the base as people know it; None if it is gone
    base_number: int | None
    pages: int
    added: int
    changed: int
    removed: int
    unchanged: int
    # could not be fetched, and are listed as they were in the base
    carried_over: int
    created_at: datetime
    published_at: datetime | None
    retired_at: datetime | None
    note: str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", State(self.state))

    @property
    def is_complete(self) -> bool:
        return self.state in (State.PUBLISHED, State.RETIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A unit of crawling: a host, or a part of one."""

    id: str
    number: int
    base_url: str
    user_id: UUID | None
    published_generation: int | None
    # number and pages of the published generation
    published_number: int | None
    pages: int
    published_at: datetime | None
    generations: int
    text_config: str | None
    keep_generations: int
    # by what share pages may fall, and what share of the tried URLs may fail
    max_shrink: float
    max_failed: float
    kind: str
    payload: dict[str, Any]
    refresh_every: int | None
    refresh_cron: str | None
    next_refresh_at: datetime | None
    created_at: datetime
    updated_at: datetime
    # the job that is refreshing it now
    active_job: UUID | None
    # that job waits until it is resumed
    is_paused: bool


# Pages that were removed, and lasting errors of the site, are not failures of the crawl. A block or
# an expired login causes 401, 403, 407 and 429, so these are.
GONE = frozenset({"soft_404", "redirect_loop", "too_many_redirects"}) | {
    f"http_{status}" for status in range(400, 500) if status not in (401, 403, 407, 408, 425, 429)
}
MAX_REASONS = 5


@dataclass(frozen=True, slots=True)
class Effort:
    """The URLs that a crawl tried, and its failures by reason."""

    tried: int = 0
    failed: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def at_fault(self) -> int:
        return self.failed - sum(times for reason, times in self.reasons.items() if reason in GONE)

    @property
    def faults(self) -> Mapping[str, int]:
        return {reason: times for reason, times in self.reasons.items() if reason not in GONE}


def objection(pages: int, source: Source, effort: Effort) -> str | None:
    """Why a generation should not be published; None if it may."""
    if not pages:
        return f"it has no pages{_counted(effort.reasons)}"
    # in whole pages: a share computed in floating point would refuse an exact 20 %
    if source.pages - pages > source.max_shrink * source.pages + 1e-9:
        return f"pages fell from {source.pages} to {pages}{_counted(effort.reasons)}"
    if effort.at_fault > source.max_failed * effort.tried + 1e-9:
        return f"{effort.at_fault} of {effort.tried} URLs failed{_counted(effort.faults)}"
    return None


def _counted(reasons: Mapping[str, int]) -> str:
    """The most frequent reasons, in brackets: ` (370 × http_500, 2 × timeout)`."""
    frequent = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{times} × {reason}" for reason, times in frequent[:MAX_REASONS]]
    more = ["…"] if len(frequent) > MAX_REASONS else []
    return f" ({', '.join(named + more)})" if named else ""


SHORTEST = 60
LONGEST = 10 * 366 * 86400


@dataclass(frozen=True, slots=True)
class Schedule:
    """An interval in seconds or a cron expression; neither means never."""

    every: int | None = None
    cron: str | None = None

    def after(self, moment: datetime) -> datetime | None:
        """The next time. Missed times are skipped."""
        if self.every is not None:
            return moment + timedelta(seconds=self.every)
        if self.cron is not None:
            return next(CronSim(self.cron, moment.astimezone(UTC)), None)
        return None


def parse_every(text: str) -> Schedule:
    """Parse an interval such as 1d, 12h or 30min."""
    seconds = int(parse_duration(text).total_seconds())
    if not SHORTEST <= seconds <= LONGEST:
        raise InvalidInput("a refresh interval must be from 1min to 10 years")
    return Schedule(every=seconds)


def parse_cron(text: str) -> Schedule:
    """A schedule in five fields: minute, hour, day of month, month, day of week."""
    expression = " ".join(text.split())
    hint = "Five fields, for example '30 4 * * 1-5'; times are in UTC."
    if expression.count(" ") != 4 or len(expression) > 200:
        raise InvalidInput(f"{text!r} is not a cron expression", hint=hint)
    try:
        first = next(CronSim(expression, datetime.now(UTC)), None)
    except CronSimError as error:
        raise InvalidInput(f"{text!r} is not a cron expression: {error}", hint=hint) from None
    if first is None:
        raise InvalidInput(f"{text!r} never comes", hint=hint)
    return Schedule(cron=expression)
