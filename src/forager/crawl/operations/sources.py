"""Operations on sources that concern their crawls, and belong to the group of the sources."""

from __future__ import annotations

from typing import Self
from uuid import UUID

from pydantic import Field

from forager.crawl.admission import lack_for_refresh, start_refresh
from forager.crawl.operations.job_models import ShownStatus
from forager.documents.operations import Source, SourceId, find_source, how_to_publish, sources
from forager.jobs.queue import Enqueued
from forager.operations.models import ResponseModel
from forager.operations.operation import Context

__all__ = ["sources"]


class SourceDetail(Source):
    """A source, and what keeps it from being refreshed."""

    refresh_put_off: str | None = Field(
        description="Why a scheduled refresh would be delayed now: the exceeded quota of the owner."
    )


class CrawlStarted(ResponseModel, thing="crawl"):
    """The job that runs the crawl."""

    job_id: UUID = Field(description="ID of the job.", validation_alias="id")
    progress_id: UUID = Field(validation_alias="id", description="The same as `job_id`.")
    source: str = Field(description="Name of the source.", validation_alias="source_id")
    status: ShownStatus = Field(description="Status of the crawl.", validation_alias="shown_status")
    created: bool = Field(description="False if the source was being crawled already.")

    @classmethod
    def build(cls, enqueued: Enqueued) -> Self:
        return cls.of(enqueued.job, created=enqueued.created)


@sources.operation("show", "GET /sources/{source_id}", note=how_to_publish)
async def show(context: Context, source_id: SourceId) -> SourceDetail:
    """Show a source."""
    source = await find_source(context, source_id)
    lack = await lack_for_refresh(context.database, source)
    return SourceDetail.of(source, refresh_put_off=lack.message if lack else None)


@sources.operation(
    "refresh",
    "POST /sources/{source_id}/refresh",
    accepted=True,
    done=lambda done: f"job {done.job_id}" + ("" if done.created else " is refreshing it already"),
    button="Refresh now",
)
async def refresh(context: Context, source_id: SourceId) -> CrawlStarted:
    """Crawl a source again with the options of its last crawl."""
    source = await find_source(context, source_id)
    return CrawlStarted.build(await start_refresh(context, source))
