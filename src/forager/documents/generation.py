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
from forager.errors import InvalidInput, error_text

# the stop reason of a job whose generation was refused; the generation's note says why
NOT_PUBLISHED = "not published"


class State(StrEnum):
    """The publication state of a generation."""

    BUILDING = "building"
    PUBLISHED = "published"
    # complete, but never published: the quality gate or a newer publication stopped it
    HELD_BACK = "held_back"
    # published before
    SUPERSEDED = "superseded"
    # about to be deleted
    ABANDONED = "abandoned"

    @property
    def label(self) -> str:
        """The state as it is shown."""
        return self.value.replace("_", " ")


COMPLETE = (State.PUBLISHED, State.HELD_BACK, State.SUPERSEDED)
# rows of earlier versions begin their note like this
_OLD_PREFIX = "not published: "


def publication_state(stored: str, published_at: datetime | None) -> State:
    """The state of a generation by its row, where held back and superseded are both `retired`."""
    if stored != "retired":
        return State(stored)
    return State.HELD_BACK if published_at is None else State.SUPERSEDED


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
    # why it is held back or is being deleted; of a published one, a warning
    note: str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", publication_state(self.state, self.published_at))
        object.__setattr__(self, "note", reason_of(self.note))

    @property
    def is_complete(self) -> bool:
        """Whether all its pages were written."""
        return self.state in COMPLETE

    @property
    def is_held_back(self) -> bool:
        """Whether the quality gate rejected it."""
        return self.state is State.HELD_BACK

    @property
    def label(self) -> str:
        """The state with its reason: `held back: pages fell from 10 to 2`."""
        return f"{self.state.label}: {self.note}" if self.note else self.state.label


def reason_of(note: str | None) -> str | None:
    """The reason in a stored note."""
    return note and note.removeprefix(_OLD_PREFIX)


ACTIVITIES = {"pending": "queued", "processing": "being crawled", "paused": "crawl paused"}


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
    # the newest complete generation and the reason, if it is held back
    held_back_number: int | None
    held_back_note: str | None
    # the generation that a roll-back would publish
    earlier_number: int | None
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
    active_status: str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "held_back_note", reason_of(self.held_back_note))

    @property
    def is_paused(self) -> bool:
        """Whether its active job waits until it is resumed."""
        return self.active_status == "paused"

    @property
    def activity(self) -> str:
        """What its active job does, in words; empty without one."""
        return ACTIVITIES.get(self.active_status or "", "")

    @property
    def held_back_message(self) -> str | None:
        """The generation that is held back, and why."""
        if self.held_back_number is None:
            return None
        return f"generation {self.held_back_number} is held back: {self.held_back_note}"

    @property
    def state(self) -> State | None:
        """The state of its newest generation; None before the first crawl."""
        if self.held_back_number is not None:
            return State.HELD_BACK
        if self.published_number is not None:
            return State.PUBLISHED
        return State.BUILDING if self.active_status not in (None, "pending") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDeclaration:
    """The options and the schedule of a source's next crawls."""

    id: str
    base_url: str
    kind: str
    payload: dict[str, Any]
    schedule: Schedule


# Pages that were removed, and lasting errors of the site, are not failures of the crawl. A block or
# an expired login causes 401, 403, 407 and 429, so these are.
GONE = frozenset({"soft_404", "redirect_loop", "too_many_redirects"}) | {
    f"http_{status}" for status in range(400, 500) if status not in (401, 403, 407, 408, 425, 429)
}
MAX_REASONS = 5
# readers of a source have nothing before its first generation, so only one that is nearly empty is
# worse for them than none
FIRST_MAX_FAILED = 0.8


@dataclass(frozen=True, slots=True)
class CrawlEffort:
    """The URLs that a crawl tried, and its failures by reason."""

    tried: int = 0
    failed: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def at_fault(self) -> int:
        """Failed URLs, without those that are gone."""
        return self.failed - sum(times for reason, times in self.reasons.items() if reason in GONE)

    @property
    def faults(self) -> Mapping[str, int]:
        return {reason: times for reason, times in self.reasons.items() if reason not in GONE}


def objection(pages: int, source: Source, effort: CrawlEffort) -> str | None:
    """Why a generation should not be published; None if it may."""
    if not pages:
        return f"it has no pages{_counted(effort.reasons)}"
    # in whole pages: a share computed in floating point would refuse an exact 20 %
    if source.pages - pages > source.max_shrink * source.pages + 1e-9:
        return f"pages fell from {source.pages} to {pages}{_counted(effort.reasons)}"
    is_first = source.published_generation is None
    limit = max(source.max_failed, FIRST_MAX_FAILED) if is_first else source.max_failed
    return failure_note(limit, effort)


def failure_note(max_failed: float, effort: CrawlEffort) -> str | None:
    """The failures of a crawl, if they are a larger share of its URLs than allowed."""
    if effort.at_fault <= max_failed * effort.tried + 1e-9:
        return None
    counted = f"{effort.at_fault} of {effort.tried} URLs failed{_counted(effort.faults)}"
    return counted + _gone(effort)


def _gone(effort: CrawlEffort) -> str:
    """The failures that do not count, so that the numbers add up to those of the ledger."""
    gone = {reason: times for reason, times in effort.reasons.items() if reason in GONE}
    return f"; {sum(gone.values())} more do not count{_counted(gone)}" if gone else ""


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
        raise InvalidInput(
            f"{text!r} is not a cron expression: {error_text(error)}", hint=hint
        ) from None
    if first is None:
        raise InvalidInput(f"{text!r} never comes", hint=hint)
    return Schedule(cron=expression)
