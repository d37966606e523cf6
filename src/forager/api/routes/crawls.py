"""Starting crawls, and watching them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request
from pydantic import ValidationError
from starlette.responses import Response, StreamingResponse

from forager.api.idempotency import OnlyOnce
from forager.api.limits import Listed, Paged, listed
from forager.api.models import LARGEST_BIGINT, PlainText
from forager.api.models import crawls as views
from forager.api.models.jobs import Job
from forager.api.problems import InvalidFields, field_problems
from forager.api.services import JobId, Operates, Reads
from forager.api.streams import ProgressHub, progress_events
from forager.crawl import templates
from forager.crawl.options import CrawlOptions
from forager.crawl.report import crawl_report
from forager.crawl.service import CRAWL
from forager.crawl.templates import MAX_NAME
from forager.jobs.job import Move
from forager.jobs.lifecycle import FINISHED

router = APIRouter(prefix="/crawls", tags=["crawls"])
# the names of the design documents
aliases = APIRouter(tags=["aliases"])

LastEventId = Annotated[
    int,
    Header(
        alias="Last-Event-ID",
        ge=0,
        le=LARGEST_BIGINT,
        description="ID of the last `move` received; later ones are sent.",
    ),
]


@router.post("", status_code=202, response_model=views.CrawlStarted)
async def start(order: views.CrawlOrder, here: Operates, once: OnlyOnce) -> Response:
    """Start a crawl. A worker runs it.

    If the source is being crawled already, the answer names that job.
    """
    options = _options(order)
    return await once.do(
        lambda here: here.start_crawl(options, source=order.source, priority=order.priority),
        views.CrawlStarted.build,
        status=202,
    )


@router.post("/preview")
async def preview(order: views.CrawlOrder, here: Operates) -> views.CrawlPreview:
    """Return the URLs that a crawl would fetch first, and what robots.txt says about them."""
    return views.CrawlPreview.of(await here.preview(_options(order)))


@router.get("")
async def list_crawls(here: Reads, paging: Paged) -> Listed[Job]:
    """List crawls, newest first."""
    page = await here.queue.list_jobs(kind=CRAWL.name, user_id=here.caller.sees_only, **paging)
    return listed(page, Job.of)


@router.get("/{crawl_id}")
async def progress(crawl_id: JobId, here: Reads) -> views.CrawlProgress:
    """Show the progress of a crawl: state, ledger, pace, time left."""
    job = await here.find_job(crawl_id)
    return views.CrawlProgress.build(await crawl_report(here.database, here.queue, job.id))


@router.delete("/{crawl_id}")
async def cancel(crawl_id: JobId, here: Operates) -> Job:
    """Cancel a crawl; unpublished work is discarded."""
    job = await here.find_job(crawl_id)
    return Job.of(await here.move_job(job.id, Move.CANCEL))


templates_router = APIRouter(prefix="/crawl-templates", tags=["crawl templates"])

TemplateName = Annotated[
    PlainText, Path(min_length=1, max_length=MAX_NAME, description="Name of the template.")
]


@templates_router.get("")
async def list_templates(here: Reads, paging: Paged) -> Listed[views.CrawlTemplate]:
    """List crawl templates by name."""
    page = await templates.list_templates(here.database, here.caller, **paging)
    return listed(page, views.CrawlTemplate.of)


@templates_router.get("/{template}")
async def show_template(template: TemplateName, here: Reads) -> views.CrawlTemplate:
    """Show a crawl template."""
    return views.CrawlTemplate.of(
        await templates.get_template(here.database, here.caller, template)
    )


@templates_router.put("/{template}")
async def save_template(
    template: TemplateName, order: views.TemplateOrder, here: Operates
) -> views.SavedCrawlTemplate:
    """Save a crawl template, or replace one. Secret headers and proxy credentials are left out."""
    given = order.model_dump(exclude_unset=True)
    saved = await templates.save_template(here.database, here.caller, template, given)
    return views.SavedCrawlTemplate.of(saved.template, omitted=saved.omitted)


@templates_router.delete("/{template}")
async def delete_template(template: TemplateName, here: Operates) -> views.CrawlTemplate:
    """Delete a crawl template. Crawls that were started from it stay."""
    return views.CrawlTemplate.of(
        await templates.delete_template(here.database, here.caller, template)
    )


EVENT_STREAM: dict[str, Any] = {
    "response_class": StreamingResponse,
    "responses": {
        200: {
            "description": "Events `move`, `progress` and finally `end`, while the job lasts.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        204: {"description": "The job has ended, and the client has received everything."},
    },
}


@router.get("/{crawl_id}/events", **EVENT_STREAM)
async def events(
    crawl_id: JobId, request: Request, here: Reads, last_event_id: LastEventId = 0
) -> Response:
    """Stream the progress of a crawl as server-sent events."""
    job = await here.find_job(crawl_id)
    ended = job.status in FINISHED and last_event_id > 0
    if ended and not await here.queue.events(job.id, after=last_event_id, limit=1):
        # a browser connects again by itself, and stops only at this answer
        return Response(status_code=204)
    hub: ProgressHub = request.app.state.hub
    hub.check_room()
    return StreamingResponse(
        progress_events(hub, job.id, last_event_id),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@aliases.post("/knowledge-items/crawl", status_code=202, response_model=views.CrawlStarted)
async def crawl_item(order: views.KnowledgeItem, here: Operates, once: OnlyOnce) -> Response:
    """Start a crawl, as `POST /api/v1/crawls` does."""
    return await start(order.as_crawl(), here, once)


aliases.get("/crawl-progress/{crawl_id}")(progress)
aliases.get("/crawl-progress/{crawl_id}/events", **EVENT_STREAM)(events)


def _options(order: views.CrawlOrder) -> CrawlOptions:
    try:
        return order.options()
    except ValidationError as error:
        raise InvalidFields(field_problems(error.errors(), "body")) from None
