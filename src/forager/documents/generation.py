"""Sources and generations, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


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
    """What a user wants crawled as one unit."""

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
