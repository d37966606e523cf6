"""Operations on sources: their pages and generations, and what readers see of them."""

from __future__ import annotations

from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field, model_validator

from forager.documents import diff as differences
from forager.documents import generation as values
from forager.documents import page, publication, reader, section_diff
from forager.documents import sources as service
from forager.documents.generation import Schedule, State, parse_cron, parse_every
from forager.operations.models import (
    LARGEST_INT,
    CrawlPayload,
    Hexadecimal,
    Interval,
    Listed,
    Paging,
    PlainText,
    RequestModel,
    ResponseModel,
    Time,
    example,
    listed,
)
from forager.operations.operation import Columns, Context, Group

sources = Group(
    "sources", "Sources: generations, differences, publishing, refreshing.", page="Sources"
)

STATE_STYLES = {
    State.BUILDING: "cyan", State.PUBLISHED: "green", State.HELD_BACK: "yellow",
    State.SUPERSEDED: "", State.ABANDONED: "dim",
}  # fmt: skip

SourceId = Annotated[
    PlainText,
    Field(
        min_length=1,
        max_length=500,
        description="Name of the source; by default its host.",
        examples=["docs.example.org"],
    ),
]
Number = Annotated[int, Field(ge=1, le=LARGEST_INT)]
PathText = Annotated[PlainText, Field(max_length=8000)]
PathPrefix = Annotated[PathText, Field(description="Only paths with this prefix.")]
OldNumber = Annotated[
    Number,
    Field(
        description="By default the generation that `new` is based on; of the source `against`, "
        "its published generation."
    ),
]
Against = Annotated[
    PlainText,
    Field(
        min_length=1,
        max_length=500,
        description="Compare with this source, or with this version of the source.",
        examples=["3.12"],
    ),
]
OnlyPage = Annotated[
    PathText, Field(description="Only this page, with its sections: its URL or path.")
]
OnlySection = Annotated[
    PlainText,
    Field(
        max_length=2000, description="Only this section of the page: its anchor, heading or name."
    ),
]
NewNumber = Annotated[Number, Field(description="By default the published generation.")]
WithSections = Annotated[bool, Field(description="Include the changed sections as diffs.")]
MaxPages = Annotated[
    int, Field(ge=1, le=differences.MAX_CHANGES, description="Maximum number of pages.")
]
PublishedNumber = Annotated[Number, Field(description="By default the newest generation.")]
Force = Annotated[bool, Field(description="Publish even if the quality gate rejected it.")]
EarlierNumber = Annotated[Number, Field(description="By default the generation published before.")]


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


def _refreshes(source: Any) -> str:
    if source.every:
        return f"every {source.every}"
    return f"cron {source.cron} (UTC)" if source.cron else ""


def how_to_publish(source: Any) -> str:
    """How to publish a generation that is held back; empty if none is."""
    if source.held_back_number is None:
        return ""
    held_back = f"{source.id}: generation {source.held_back_number} is held back: "
    held_back += source.held_back_note or "no reason is known"
    return f"{held_back}. {publication.publish_hint(source.id)}"


SOURCE_COLUMNS: Columns = {
    "SOURCE": "id",
    "STATE": lambda source: source.state and (source.state.label, STATE_STYLES[source.state]),
    "PAGES>": "pages", "GENERATION>": "published_number", "PUBLISHED": "published_at",
    "REFRESH": _refreshes, "NEXT": "next_refresh_at", "NOW": "activity", "NOTE…?": "held_back_note",
}  # fmt: skip
GENERATION_COLUMNS: Columns = {
    "NUMBER>": "number",
    "STATE": lambda each: (each.state.label, STATE_STYLES[each.state]),
    "PAGES>": "pages", "ADDED>": "added", "CHANGED>": "changed", "REMOVED>": "removed",
    "SAME>": "unchanged", "CARRIED>": "carried_over", "CREATED": "created_at",
    "PUBLISHED": "published_at", "NOTE": "note",
}  # fmt: skip
PUBLISHED = "{source}: generation {number} is published (pages: {pages})"


async def find_source(context: Context, source_id: str) -> values.Source:
    """The source or its only version, if the caller sees it."""
    return await service.get_source(context.database, source_id, owner=context.owner)


@sources.operation(
    "list",
    "GET /sources",
    columns=SOURCE_COLUMNS,
    none="There are no sources. `forager crawl URL` creates one.",
    note=lambda found: "\n".join(filter(None, map(how_to_publish, found.items))),
)
async def list_sources(context: Context, paging: Paging) -> Listed[Source]:
    """List sources by name, with their published generation."""
    found = await service.list_sources(context.database, user_id=context.owner, **paging)
    return listed(found, Source.of)


@sources.operation("set", "PATCH /sources/{source_id}", resets=())
async def change(context: Context, source_id: SourceId, changes: SourceChanges) -> Source:
    """Set the number of generations to keep, and the limits of the quality gate."""
    source = await find_source(context, source_id)
    return Source.of(await service.set_limits(context.database, source.id, **dict(changes)))


@sources.operation("delete", "DELETE /sources/{source_id}", confirm=True, done="deleted {source}")
async def delete(context: Context, source_id: SourceId) -> Deleted:
    """Delete a source with all its generations. Jobs and archived responses stay."""
    await find_source(context, source_id)
    # by its full name: nothing is deleted that the caller has not named
    await service.delete_source(context.database, source_id)
    return Deleted(source=source_id)


@sources.operation("schedule", "PUT /sources/{source_id}/schedule")
async def schedule(context: Context, source_id: SourceId, order: ScheduleOrder) -> Source:
    """Set when a source is refreshed."""
    source = await find_source(context, source_id)
    return Source.of(await service.set_schedule(context.database, source.id, order.schedule()))


@sources.operation("unschedule", "DELETE /sources/{source_id}/schedule")
async def unschedule(context: Context, source_id: SourceId) -> Source:
    """Turn off the schedule of a source."""
    source = await find_source(context, source_id)
    return Source.of(await service.set_schedule(context.database, source.id, Schedule()))


@sources.operation(
    "pages",
    "GET /documents",
    tag="documents",
    arguments=("source",),
    limit=100,
    columns={"URL": "url", "TITLE": "title", "FETCHED": "fetched_at"},
)
async def documents(
    context: Context, source: SourceId, paging: Paging, path: PathPrefix = ""
) -> Listed[Document]:
    """List the published pages of a source by path; a cursor stays in its generation."""
    named = await find_source(context, source)
    found = await reader.list_documents(context.database, named.id, path=path, **paging)
    return listed(found, Document.of)


@sources.operation(
    "generations", "GET /sources/{source_id}/generations", limit=20, columns=GENERATION_COLUMNS
)
async def generations(context: Context, source_id: SourceId, paging: Paging) -> Listed[Generation]:
    """List the generations of a source, newest first."""
    source = await find_source(context, source_id)
    found = await service.list_generations(context.database, source.id, **paging)
    return listed(found, Generation.of)


@sources.operation("diff", "GET /sources/{source_id}/diff", arguments=("old", "new"))
async def diff(
    context: Context,
    source_id: SourceId,
    old: OldNumber | None = None,
    new: NewNumber | None = None,
    against: Against | None = None,
    page: OnlyPage | None = None,
    section: OnlySection | None = None,
    sections: WithSections = False,
    limit: MaxPages = 1000,
) -> Diff:
    """Compare two generations or versions: pages added (A), removed (D), changed (C), renamed (R).

    Pages of two sources are matched by their URLs without the beginning that differs.
    """
    source = await find_source(context, source_id)
    if against is not None:
        other = await service.get_other_source(
            context.database, source, against, owner=context.owner
        )
        against = other.id
    found = await differences.diff_generations(
        context.database,
        source.id,
        old,
        new,
        against=against,
        page=page,
        section=section,
        with_sections=sections,
        limit=limit,
    )
    return Diff.of(found)


@sources.operation(
    "publish",
    "POST /sources/{source_id}/publish",
    arguments=("generation",),
    done=PUBLISHED,
    button="Publish",
)
async def publish(
    context: Context,
    source_id: SourceId,
    generation: PublishedNumber | None = None,
    force: Force = False,
) -> Generation:
    """Publish a generation."""
    source = await find_source(context, source_id)
    done = await publication.publish(context.database, source.id, generation, force=force)
    return Generation.of(done)


@sources.operation(
    "rollback",
    "POST /sources/{source_id}/rollback",
    arguments=("generation",),
    done=PUBLISHED,
    button="Roll back",
)
async def rollback(
    context: Context, source_id: SourceId, generation: EarlierNumber | None = None
) -> Generation:
    """Publish an older generation again."""
    source = await find_source(context, source_id)
    return Generation.of(await publication.roll_back(context.database, source.id, generation))
