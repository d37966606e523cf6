"""Operations on sources: their pages and generations, and what readers see of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from forager.documents import diff as differences
from forager.documents import generation as values
from forager.documents import publication, reader
from forager.documents import sources as service
from forager.documents.generation import Schedule, State
from forager.documents.operations.models import (
    Deleted,
    Diff,
    Document,
    Generation,
    ScheduleOrder,
    Source,
    SourceChanges,
)
from forager.operations.models import LARGEST_INT, Listed, Paging, PlainText, listed
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
        description="By default the generation that `new` is based on; with `against`, the "
        "published generation of that source."
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
