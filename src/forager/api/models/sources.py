"""Sources: their generations, differences and schedules."""

from __future__ import annotations

from typing import Annotated, Self
from uuid import UUID

from pydantic import Field, model_validator

from forager.api.models import (
    LARGEST_INT,
    CrawlPayload,
    Interval,
    Order,
    PlainText,
    Time,
    View,
    example,
)
from forager.documents import diff as differences
from forager.documents import generation as values
from forager.documents.generation import Schedule, parse_cron, parse_every

Number = Annotated[int, Field(ge=1, le=LARGEST_INT)]


class Source(View, row=values.Source, hidden=("number", "published_generation")):
    """What was crawled as one unit, and what readers see of it."""

    published_number: int | None = Field(description="The generation that readers see.")
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
    active_job: UUID | None = Field(description="The job that is crawling it now.")
    is_paused: bool = Field(description="Whether that job is paused.")
    payload: CrawlPayload


class SourceDetail(Source):
    """A source, and what keeps it from being refreshed."""

    refresh_put_off: str | None = Field(
        description="Why a scheduled refresh would be delayed now: the exceeded quota of the owner."
    )


class Generation(View, row=values.Generation, hidden=("base_id", "id")):
    """The pages that one job found, and how they differ from those before."""

    source: str = Field(validation_alias="source_id")
    carried_over: int = Field(description="Pages that failed temporarily and stay published.")


class SectionChange(View, row=differences.SectionChange):
    diff: str = Field(description="A unified diff.")


class ChangedPage(View, row=differences.ChangedPage):
    sections: list[SectionChange] = Field(description="Differences of changed pages, if requested.")


class RenamedPage(View, row=differences.RenamedPage):
    pass


class CarriedPage(View):
    """A page that failed temporarily, and is listed as it was before."""

    url: str
    title: str | None
    fetched_at: Time = Field(description="When its version was last fetched or confirmed.")
    since: Time = Field(description="Time of the first failure.")
    reason: str = Field(examples=["http_500"])
    times: int = Field(description="Refreshes in a row in which it failed.")


class Diff(View):
    """What changed. A renamed page is not among the removed and the added ones."""

    source: str = Field(validation_alias="source_id")
    old: int
    new: int
    added: list[ChangedPage]
    removed: list[ChangedPage]
    changed: list[ChangedPage]
    renamed: list[RenamedPage]
    carried_over: list[CarriedPage] = Field(
        description="Pages of the new generation that could not be fetched."
    )
    truncated: bool = Field(description="There are more differences than these.")


class PublishOrder(Order):
    model_config = example(generation=2, force=False)

    generation: Number | None = Field(default=None, description="The newest generation by default.")
    force: bool = Field(default=False, description="Publish even if the quality gate rejected it.")


class RollbackOrder(Order):
    model_config = example(generation=1)

    generation: Number | None = Field(
        default=None, description="The generation published before, by default."
    )


class ScheduleOrder(Order):
    """`every` or `cron`."""

    model_config = example(every="1d")

    every: Annotated[PlainText, Field(max_length=50)] | None = Field(
        default=None, description="30min, 12h, 1d, 1w"
    )
    cron: Annotated[PlainText, Field(max_length=200)] | None = Field(
        default=None, description="Five fields, in UTC: 30 4 * * 1-5"
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.every is not None and self.cron is not None:
            raise ValueError("give `every` or `cron`, not both")
        return self

    def schedule(self) -> Schedule:
        if self.every is not None:
            return parse_every(self.every)
        return Schedule() if self.cron is None else parse_cron(self.cron)


class SourceChanges(Order):
    """What to set; what is left out stays as it is."""

    model_config = example(keep=10, max_shrink=0.5)

    keep: int | None = Field(default=None, ge=1, le=1000, description="Generations to keep.")
    max_shrink: float | None = Field(
        default=None, ge=0, le=1, description="Maximum drop in pages, from 0 to 1."
    )
    max_failed: float | None = Field(
        default=None, ge=0, le=1, description="Maximum failure rate of fetched URLs, from 0 to 1."
    )


class Deleted(View):
    """What was deleted; its rows are removed in the background."""

    source: str
