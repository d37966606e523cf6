"""Operations on sources that concern their crawls, and belong to the group of the sources."""

from __future__ import annotations

from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field

from forager.crawl.admission import lack_for_refresh, move_job, replace_headers, start_refresh
from forager.crawl.operations.job_models import ShownStatus
from forager.crawl.options import MAX_HEADERS
from forager.crawl.visit.logins import LOGGED_OUT
from forager.documents.operations.models import Source
from forager.documents.operations.sources import SourceId, find_source, how_to_publish, sources
from forager.jobs.job import Move
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Enqueued, Queue
from forager.jobs.workers import job_report
from forager.operations.models import RequestModel, ResponseModel, example
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


class Login(RequestModel):
    """Headers that log a crawl in, such as a cookie or a bearer token."""

    model_config = example(headers={"Cookie": "session=…"})

    headers: dict[str, Annotated[str, Field(max_length=8000)]] = Field(
        min_length=1,
        max_length=MAX_HEADERS,
        description="Request headers. They are added to those of the source, or replace them, and"
        " are stored encrypted.",
    )


class LoggedIn(ResponseModel):
    """The source, and its crawl that uses the headers when it runs next."""

    source: str = Field(description="Name of the source.")
    job_id: UUID | None = Field(description="The active crawl of the source; null: none.")
    resumed: bool = Field(description="Whether that crawl was paused, and continues.")


def _logged_in(done: Any) -> str:
    if done.job_id is None:
        return f"{done.source}: the next crawl uses the headers"
    return f"job {done.job_id} " + ("continues" if done.resumed else "uses them when it runs next")


sources.by_hand("apply", "POST /sources/apply")
sources.by_hand("check", "POST /sources/{source_id}/check")


async def _was_logged_out(context: Context, job_id: UUID) -> bool:
    """Whether the last pause of a job is that of a crawl that found itself logged out."""
    report = await job_report(context.database, Queue(context.database, context.settings), job_id)
    pauses = [event.reason or "" for event in report.last_events if event.move == Move.PAUSE]
    return bool(pauses) and pauses[-1].startswith(LOGGED_OUT)


@sources.operation("login", "POST /sources/{source_id}/login", done=_logged_in)
async def login(context: Context, source_id: SourceId, order: Login) -> LoggedIn:
    """Replace the headers that log a source in, and resume its crawl that was logged out.

    A crawl that a person has paused stays paused.
    """
    source = await find_source(context, source_id)
    job = await replace_headers(context, source, order.headers)
    resumed = (
        job is not None and job.status is Status.PAUSED and await _was_logged_out(context, job.id)
    )
    if job is not None and resumed:
        await move_job(context, job.id, Move.RESUME, "logged in")
    return LoggedIn(source=source.id, job_id=None if job is None else job.id, resumed=resumed)


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
