"""Sources: what readers see of them, and how that changes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response, StreamingResponse

from forager.api.idempotency import OnlyOnce
from forager.api.limits import Cursor, Limit, Listed, listed
from forager.api.models import PlainText
from forager.api.models import sources as views
from forager.api.models.crawls import CrawlStarted
from forager.api.services import Here, Operator, Reader, Services
from forager.api.streams import download, file_responses
from forager.crawl.admission import lack_for_refresh, start_refresh
from forager.documents import publication, sources
from forager.documents.diff import MAX_CHANGES, diff_generations
from forager.documents.export import PageFormat, export_parts, open_export
from forager.documents.generation import Schedule
from forager.jobs.queue import Enqueued

router = APIRouter(prefix="/sources", tags=["sources"])

FILES = {
    PageFormat.MARKDOWN: ("application/x-ndjson", "pages.jsonl"),
    PageFormat.LLMS: ("text/plain; charset=utf-8", "llms.txt"),
    PageFormat.LLMS_FULL: ("text/plain; charset=utf-8", "llms-full.txt"),
}

SourceId = Annotated[PlainText, Path(min_length=1, max_length=500, examples=["docs.example.org"])]


@router.get("")
async def list_sources(
    here: Here, caller: Reader, limit: Limit = 50, cursor: Cursor = None
) -> Listed[views.Source]:
    """List sources by name."""
    page = await sources.list_sources(
        here.database, user_id=caller.sees_only, cursor=cursor, limit=limit
    )
    return listed(page, views.Source.of)


@router.get("/{source_id}")
async def show(source_id: SourceId, here: Here, caller: Reader) -> views.SourceDetail:
    """Show a source."""
    source = await here.source_of(caller, source_id)
    lack = await lack_for_refresh(here.database, source)
    return views.SourceDetail.of(source, refresh_put_off=lack.message if lack else None)


@router.patch("/{source_id}")
async def change(
    source_id: SourceId, changes: views.SourceChanges, here: Here, caller: Operator
) -> views.Source:
    """Set the number of generations to keep, and the limits of the quality gate."""
    await here.source_of(caller, source_id)
    return views.Source.of(
        await sources.set_limits(here.database, source_id, **changes.model_dump())
    )


@router.delete("/{source_id}")
async def delete(source_id: SourceId, here: Here, caller: Operator) -> views.Deleted:
    """Delete a source with all its generations."""
    await here.source_of(caller, source_id)
    await sources.delete_source(here.database, source_id)
    return views.Deleted(source=source_id)


@router.post("/{source_id}/refresh", status_code=202, response_model=CrawlStarted)
async def refresh(source_id: SourceId, caller: Operator, once: OnlyOnce) -> Response:
    """Crawl a source again with the options of its last crawl."""

    async def start(here: Services) -> Enqueued:
        source = await here.source_of(caller, source_id)
        return await start_refresh(here.database, here.settings, caller, source)

    return await once.do(start, CrawlStarted.build, status=202)


@router.put("/{source_id}/schedule")
async def schedule(
    source_id: SourceId, order: views.ScheduleOrder, here: Here, caller: Operator
) -> views.Source:
    """Set when a source is refreshed; an empty body turns the schedule off."""
    await here.source_of(caller, source_id)
    return views.Source.of(await sources.set_schedule(here.database, source_id, order.schedule()))


@router.delete("/{source_id}/schedule")
async def unschedule(source_id: SourceId, here: Here, caller: Operator) -> views.Source:
    """Turn off the schedule of a source."""
    await here.source_of(caller, source_id)
    return views.Source.of(await sources.set_schedule(here.database, source_id, Schedule()))


@router.get("/{source_id}/generations")
async def generations(
    source_id: SourceId, here: Here, caller: Reader, limit: Limit = 20, cursor: Cursor = None
) -> Listed[views.Generation]:
    """List the generations of a source, newest first."""
    await here.source_of(caller, source_id)
    page = await sources.list_generations(here.database, source_id, cursor=cursor, limit=limit)
    return listed(page, views.Generation.of)


@router.get("/{source_id}/diff")
async def diff(
    source_id: SourceId,
    here: Here,
    caller: Reader,
    old: Annotated[
        views.Number | None, Query(description="The generation that `new` is based on, by default.")
    ] = None,
    new: Annotated[
        views.Number | None, Query(description="The published generation by default.")
    ] = None,
    sections: Annotated[bool, Query(description="Include the changed sections as diffs.")] = False,
    limit: Annotated[
        int, Query(ge=1, le=MAX_CHANGES, description="Maximum number of pages.")
    ] = 1000,
) -> views.Diff:
    """Compare two generations of a source."""
    await here.source_of(caller, source_id)
    found = await diff_generations(
        here.database, source_id, old, new, with_sections=sections, limit=limit
    )
    return views.Diff.model_validate(found)


@router.get(
    "/{source_id}/export",
    response_class=StreamingResponse,
    responses=file_responses(kind for kind, _ in FILES.values()),
)
async def export(
    source_id: SourceId,
    here: Here,
    caller: Reader,
    format_: Annotated[PageFormat, Query(alias="format")] = PageFormat.MARKDOWN,
    generation: Annotated[
        views.Number | None, Query(description="The published generation by default.")
    ] = None,
) -> Response:
    """Export the pages of a source: JSON lines with markdown, llms.txt or llms-full.txt."""
    await here.source_of(caller, source_id)
    wanted = await open_export(here.database, source_id, generation)
    media_type, name = FILES[format_]
    return await download(export_parts(here.database, wanted, format_), name, media_type)


@router.post("/{source_id}/publish")
async def publish(
    source_id: SourceId, here: Here, caller: Operator, order: views.PublishOrder | None = None
) -> views.Generation:
    """Publish a generation."""
    await here.source_of(caller, source_id)
    order = order or views.PublishOrder()
    done = await publication.publish(here.database, source_id, order.generation, force=order.force)
    return views.Generation.of(done)


@router.post("/{source_id}/rollback")
async def rollback(
    source_id: SourceId, here: Here, caller: Operator, order: views.RollbackOrder | None = None
) -> views.Generation:
    """Publish an older generation again."""
    await here.source_of(caller, source_id)
    wanted = order or views.RollbackOrder()
    return views.Generation.of(
        await publication.roll_back(here.database, source_id, wanted.generation)
    )
