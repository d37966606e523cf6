"""Export the pages of a source as a file."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from forager.api.services import ReaderServices, SourceId
from forager.api.streams import download, file_responses
from forager.documents.export import PageFormat, export_parts, open_export
from forager.documents.operations import Number
from forager.documents.reading_operations import Links
from forager.extract.markdown.links import LinkStyle

router = APIRouter(prefix="/sources", tags=["sources"])

FILES = {
    PageFormat.MARKDOWN: ("application/x-ndjson", "pages.jsonl"),
    PageFormat.PARQUET: ("application/vnd.apache.parquet", "pages.parquet"),
    PageFormat.LLMS: ("text/plain; charset=utf-8", "llms.txt"),
    PageFormat.LLMS_FULL: ("text/plain; charset=utf-8", "llms-full.txt"),
}


@router.get(
    "/{source_id}/export",
    response_class=StreamingResponse,
    responses=file_responses(kind for kind, _ in FILES.values()),
)
async def export(
    source_id: SourceId,
    services: ReaderServices,
    format_: Annotated[
        PageFormat, Query(alias="format", description="Format of the file.")
    ] = PageFormat.MARKDOWN,
    generation: Annotated[
        Number | None, Query(description="The published generation by default.")
    ] = None,
    links: Links = LinkStyle.ABSOLUTE,
) -> Response:
    """Export the pages of a source: JSON lines, Parquet, llms.txt or llms-full.txt."""
    source = await services.get_source(source_id)
    wanted = await open_export(services.database, source.id, generation, links)
    media_type, name = FILES[format_]
    return await download(export_parts(services.database, wanted, format_), name, media_type)
