"""Sources: their generations, differences and schedules."""

from __future__ import annotations

from typing import Annotated, Self
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field, model_validator
from starlette.responses import Response, StreamingResponse

from forager.api.idempotency import OnlyOnce
from forager.api.limits import Listed, Paged, Paged20, listed
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
from forager.api.models.crawls import CrawlStarted
from forager.api.services import Operates, Reads, SourceId
from forager.api.streams import download, file_responses
from forager.crawl.admission import lack_for_refresh
from forager.documents import diff as differences
from forager.documents import generation as values
from forager.documents import page, publication, sources
from forager.documents.diff import MAX_CHANGES, diff_generations
from forager.documents.export import PageFormat, export_parts, open_export
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


class CarriedPage(View, row=page.CarriedPage):
    """A page that failed temporarily, and is listed as it was before."""

    fetched_at: Time = Field(description="When its version was last fetched or confirmed.")
    since: Time = Field(description="Time of the first failure.")
    reason: str = Field(examples=["http_500"])
    times: int = Field(description="Refreshes in a row in which it failed.")


class Diff(View, row=differences.Diff):
    """What changed. A renamed page is not among the removed and the added ones."""

    source: str = Field(validation_alias="source_id")
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


router = APIRouter(prefix="/sources", tags=["sources"])

FILES = {
    PageFormat.MARKDOWN: ("application/x-ndjson", "pages.jsonl"),
    PageFormat.LLMS: ("text/plain; charset=utf-8", "llms.txt"),
    PageFormat.LLMS_FULL: ("text/plain; charset=utf-8", "llms-full.txt"),
}


@router.get("")
async def list_sources(here: Reads, paging: Paged) -> Listed[Source]:
    """List sources by name."""
    found = await sources.list_sources(here.database, user_id=here.caller.sees_only, **paging)
    return listed(found, Source.of)


@router.get("/{source_id}")
async def show(source_id: SourceId, here: Reads) -> SourceDetail:
    """Show a source."""
    source = await here.get_source(source_id)
    lack = await lack_for_refresh(here.database, source)
    return SourceDetail.of(source, refresh_put_off=lack.message if lack else None)


@router.patch("/{source_id}")
async def change(source_id: SourceId, changes: SourceChanges, here: Operates) -> Source:
    """Set the number of generations to keep, and the limits of the quality gate."""
    source = await here.get_source(source_id)
    return Source.of(await sources.set_limits(here.database, source.id, **changes.model_dump()))


@router.delete("/{source_id}")
async def delete(source_id: SourceId, here: Operates) -> Deleted:
    """Delete a source with all its generations."""
    source = await here.get_source(source_id)
    await sources.delete_source(here.database, source.id)
    return Deleted(source=source.id)


@router.post("/{source_id}/refresh", status_code=202, response_model=CrawlStarted)
async def refresh(source_id: SourceId, here: Operates, once: OnlyOnce) -> Response:
    """Crawl a source again with the options of its last crawl."""
    return await once.do(lambda here: here.refresh(source_id), CrawlStarted.build, status=202)


@router.put("/{source_id}/schedule")
async def schedule(source_id: SourceId, order: ScheduleOrder, here: Operates) -> Source:
    """Set when a source is refreshed; an empty body turns the schedule off."""
    source = await here.get_source(source_id)
    return Source.of(await sources.set_schedule(here.database, source.id, order.schedule()))


@router.delete("/{source_id}/schedule")
async def unschedule(source_id: SourceId, here: Operates) -> Source:
    """Turn off the schedule of a source."""
    source = await here.get_source(source_id)
    return Source.of(await sources.set_schedule(here.database, source.id, Schedule()))


@router.get("/{source_id}/generations")
async def generations(source_id: SourceId, here: Reads, paging: Paged20) -> Listed[Generation]:
    """List the generations of a source, newest first."""
    source = await here.get_source(source_id)
    found = await sources.list_generations(here.database, source.id, **paging)
    return listed(found, Generation.of)


@router.get("/{source_id}/diff")
async def diff(
    source_id: SourceId,
    here: Reads,
    old: Annotated[
        Number | None, Query(description="The generation that `new` is based on, by default.")
    ] = None,
    new: Annotated[Number | None, Query(description="The published generation by default.")] = None,
    sections: Annotated[bool, Query(description="Include the changed sections as diffs.")] = False,
    limit: Annotated[
        int, Query(ge=1, le=MAX_CHANGES, description="Maximum number of pages.")
    ] = 1000,
) -> Diff:
    """Compare two generations of a source."""
    source = await here.get_source(source_id)
    found = await diff_generations(
        here.database, source.id, old, new, with_sections=sections, limit=limit
    )
    return Diff.model_validate(found)


@router.get(
    "/{source_id}/export",
    response_class=StreamingResponse,
    responses=file_responses(kind for kind, _ in FILES.values()),
)
async def export(
    source_id: SourceId,
    here: Reads,
    format_: Annotated[PageFormat, Query(alias="format")] = PageFormat.MARKDOWN,
    generation: Annotated[
        Number | None, Query(description="The published generation by default.")
    ] = None,
) -> Response:
    """Export the pages of a source: JSON lines with markdown, llms.txt or llms-full.txt."""
    source = await here.get_source(source_id)
    wanted = await open_export(here.database, source.id, generation)
    media_type, name = FILES[format_]
    return await download(export_parts(here.database, wanted, format_), name, media_type)


@router.post("/{source_id}/publish")
async def publish(
    source_id: SourceId, here: Operates, order: PublishOrder | None = None
) -> Generation:
    """Publish a generation."""
    source = await here.get_source(source_id)
    order = order or PublishOrder()
    done = await publication.publish(here.database, source.id, order.generation, force=order.force)
    return Generation.of(done)


@router.post("/{source_id}/rollback")
async def rollback(
    source_id: SourceId, here: Operates, order: RollbackOrder | None = None
) -> Generation:
    """Publish an older generation again."""
    source = await here.get_source(source_id)
    wanted = order or RollbackOrder()
    return Generation.of(await publication.roll_back(here.database, source.id, wanted.generation))
