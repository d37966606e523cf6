"""Sources, generations and pages as operations show them."""

from __future__ import annotations

from typing import Annotated, Self
from uuid import UUID

from pydantic import Field, model_validator

from forager.documents import diff as differences
from forager.documents import generation as values
from forager.documents import page, section_diff
from forager.documents.generation import Schedule, State, parse_cron, parse_every
from forager.operations.models import (
    CrawlPayload,
    Hexadecimal,
    Interval,
    PlainText,
    RequestModel,
    ResponseModel,
    Time,
    example,
)

_ABOUT_SOURCE = {
    "text_config": "Language of the search index; null: not known yet.",
    "max_shrink": "Maximum drop in pages for publishing, from 0 to 1.",
    "max_failed": "Maximum failure rate for publishing, from 0 to 1.",
    "pages": "Number of pages of the published generation.",
    "user_id": "ID of the owner; null: none.",
    "next_refresh_at": "When the next refresh is due.",
    "kind": "Kind of the jobs that refresh the source.",
    "published_at": "When the published generation was published.",
    "base_url": "First start URL of the crawls.",
}


class Source(
    ResponseModel,
    row=values.Source,
    hidden=("number", "published_generation", "active_status"),
    about=_ABOUT_SOURCE,
):
    """What was crawled as one unit, and what readers see of it."""

    state: State | None = Field(
        description="State of the newest complete generation; null before the first crawl."
    )
    published_number: int | None = Field(description="The generation that readers see.")
    held_back_number: int | None = Field(description="A newer generation that is held back.")
    held_back_note: str | None = Field(description="Why it is held back.")
    earlier_number: int | None = Field(description="The generation that a rollback publishes.")
    generations: int = Field(description="Number of generations that the source ever had.")
    keep: int = Field(
        validation_alias="keep_generations", description="Number of generations to keep."
    )
    every: Interval | None = Field(
        validation_alias="refresh_every", description="Refresh interval."
    )
    cron: str | None = Field(
        validation_alias="refresh_cron", description="Refresh schedule, in UTC."
    )
    active_job: UUID | None = Field(description="The job that crawls it now, or is queued.")
    is_paused: bool = Field(description="Whether that job is paused.")
    activity: str = Field(
        description="What that job does: queued, being crawled or crawl paused; empty without one."
    )
    payload: CrawlPayload = Field(description="Options of its crawls.")


_ABOUT_GENERATION = {
    "base_number": "The generation that this one was built on.",
    "retired_at": "When it was replaced.",
    "added": "Number of new pages.",
    "changed": "Number of changed pages.",
    "removed": "Number of removed pages.",
}


class Generation(
    ResponseModel, row=values.Generation, hidden=("base_id", "id"), about=_ABOUT_GENERATION
):
    """The pages that one job found, and how they differ from those before."""

    note: str | None = Field(
        description="Why it is held back; of a published generation, a warning."
    )
    source: str = Field(description="Name of the source.", validation_alias="source_id")
    carried_over: int = Field(description="Pages that failed temporarily and stay published.")


class SectionChange(
    ResponseModel,
    row=section_diff.SectionChange,
    about={"kind": "How the section differs from the older generation."},
):
    """How a section differs between two generations."""

    diff: str = Field(description="A unified diff.")


class ChangedPage(ResponseModel, row=differences.ChangedPage, thing="page"):
    """A page that differs between two generations."""

    old_url: str | None = Field(description="Its URL in the other source, if that is another one.")
    sections: list[SectionChange] = Field(description="Differences of changed pages, if requested.")


_ABOUT_RENAMED_PAGE = {
    "old_url": "URL in the older generation.",
    "new_url": "URL in the newer generation.",
}


class RenamedPage(ResponseModel, row=differences.RenamedPage, about=_ABOUT_RENAMED_PAGE):
    """A page that has another URL in the newer generation."""


class CarriedPage(ResponseModel, row=page.CarriedPage, thing="page"):
    """A page that failed temporarily, and is listed as it was before."""

    fetched_at: Time = Field(description="When its version was last fetched or confirmed.")
    since: Time = Field(description="Time of the first failure.")
    reason: str = Field(description="Why the page could not be fetched.", examples=["http_500"])
    times: int = Field(description="Refreshes in a row in which it failed.")


_ABOUT_DIFF = {
    "old": "Number of the older generation.",
    "new": "Number of the newer generation.",
    "against": "The source of the older generation; null if it is the same.",
}


class Diff(ResponseModel, row=differences.Diff, about=_ABOUT_DIFF):
    """What changed. A renamed page is not among the removed and the added ones."""

    source: str = Field(description="Name of the source.", validation_alias="source_id")
    added: list[ChangedPage] = Field(description="New pages.")
    removed: list[ChangedPage] = Field(description="Removed pages.")
    changed: list[ChangedPage] = Field(description="Changed pages.")
    renamed: list[RenamedPage] = Field(description="Renamed pages.")
    carried_over: list[CarriedPage] = Field(
        description="Pages of the new generation that could not be fetched."
    )
    truncated: bool = Field(description="There are more differences than these.")


_NOT_SHOWN = ("extractor_version", "generation_id", "generation_number")


class Document(
    ResponseModel,
    row=page.DocumentRow,
    hidden=_NOT_SHOWN,
    about={"path": "Path of the page."},
    thing="page",
):
    """One version of a page of a source."""

    source: str = Field(description="Name of the source.", validation_alias="source_id")
    content_hash: Hexadecimal = Field(description="Hash of the extracted content, in hexadecimal.")
    carried_since: Time | None = Field(
        description="Time since which the page fails; null if it does not."
    )
    carried_reason: str | None = Field(description="Why it fails.", examples=["http_500"])
    carried_times: int | None = Field(description="Refreshes in a row in which it failed.")


class ScheduleOrder(RequestModel):
    """`every` or `cron`."""

    model_config = example(every="1d")

    every: Annotated[PlainText, Field(max_length=50)] | None = Field(
        default=None, description="Refresh interval: 30min, 12h, 1d, 1w."
    )
    cron: Annotated[PlainText, Field(max_length=200)] | None = Field(
        default=None, description="Cron expression of five fields, in UTC: 30 4 * * 1-5"
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.every is None) == (self.cron is None):
            raise ValueError("give either `every` or `cron`")
        return self

    def schedule(self) -> Schedule:
        return parse_cron(self.cron or "") if self.every is None else parse_every(self.every)

    def check(self) -> None:
        self.schedule()


class SourceChanges(RequestModel):
    """What to set; what is left out stays as it is."""

    model_config = example(keep=10, max_shrink=0.5)

    keep: int | None = Field(default=None, ge=1, le=1000, description="Generations to keep.")
    max_shrink: float | None = Field(
        default=None, ge=0, le=1, description="Maximum drop in pages, from 0 to 1."
    )
    max_failed: float | None = Field(
        default=None, ge=0, le=1, description="Maximum failure rate of fetched URLs, from 0 to 1."
    )


class Deleted(ResponseModel):
    """What was deleted; its rows are removed in the background."""

    source: str
