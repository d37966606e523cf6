"""Sources: a file of pages, a check of lost content, and sources declared together."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from forager.api.services import AdminServices, OperatorServices, ReaderServices, SourceId
from forager.api.streams import download, file_responses
from forager.crawl.admission import check_addresses
from forager.crawl.declared import (
    MAX_SOURCES,
    SourceAction,
    apply_plan,
    declared_sources,
    plan_sources,
)
from forager.documents.export import PageFormat, export_parts, open_export
from forager.documents.operations.reading import Links
from forager.documents.operations.sources import Number
from forager.extract.markdown.links import LinkStyle
from forager.operations.models import RequestModel, ResponseModel, example
from forager.products.models import CheckReport


class DeclaredSources(RequestModel):
    """Sources as `sources.yaml` declares them, each with a name, a URL and options of a crawl."""

    model_config = example(
        sources=[{"name": "python", "version": "3.13", "url": "https://docs.python.org/3.13/"}]
    )

    sources: list[dict[str, Any]] = Field(
        min_length=1, max_length=MAX_SOURCES, description="The sources, as in `sources.yaml`."
    )
    dry_run: bool = Field(default=False, description="Only plan; change nothing.")


class AppliedSource(ResponseModel):
    """The effect on one source."""

    source: str = Field(description="Name of the source.")
    action: SourceAction = Field(description="What was done, or would be.")
    changes: list[str] = Field(description="Values before and after.")
    job_id: UUID | None = Field(description="The crawl of the source; null: none was needed.")


class AppliedSources(ResponseModel):
    """The effect of a list of sources. Sources that are not in it are left as they are."""

    sources: list[AppliedSource] = Field(description="In the order in which they were given.")


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


@router.post("/apply")
async def apply(order: DeclaredSources, services: AdminServices) -> AppliedSources:
    """Create or update sources that are declared in a list, and crawl those that changed."""
    declared = declared_sources(order.sources)
    for each in declared:
        check_addresses(each.options(), services.caller, services.settings)
    planned = await plan_sources(services.database, services.settings, declared)
    jobs: dict[str, UUID] = {}
    if not order.dry_run:
        done = await apply_plan(
            services.database, services.settings, planned, actor=services.caller.actor
        )
        jobs = {each.source_id: each.job_id for each in done}
    return AppliedSources(
        sources=[
            AppliedSource(
                source=each.declared.source_id,
                action=each.action,
                changes=list(each.changes),
                job_id=jobs.get(each.declared.source_id, each.active_job),
            )
            for each in planned
        ]
    )


@router.post("/{source_id}/check")
async def check(source_id: SourceId, services: OperatorServices) -> CheckReport:
    """Extract the published pages again from the archive, to find content that was lost."""
    source = await services.get_source(source_id)
    return CheckReport.of(await services.check_source(source))
