"""Starting crawls, and watching them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from pydantic import ValidationError
from starlette.responses import Response, StreamingResponse

from forager.api.idempotency import OnlyOnce
from forager.api.models import crawls as views
from forager.api.problems import InvalidFields, field_problems
from forager.api.services import JobId, OperatorServices, ReaderServices
from forager.api.streams import ProgressHub, progress_events
from forager.crawl import admission
from forager.crawl.options import CrawlOptions
from forager.jobs.lifecycle import FINISHED
from forager.operations.models import LARGEST_BIGINT

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
async def start(order: views.CrawlOrder, services: OperatorServices, once: OnlyOnce) -> Response:
    """Start a crawl. A worker runs it.

    If the source is being crawled already, the answer names that job.
    """
    options = _options(order)
    return await once.do(
        lambda services: admission.start_crawl(
            services.context, options, source=order.source, priority=order.priority
        ),
        views.CrawlStarted.build,
        status=202,
    )


@router.post("/preview")
async def preview(order: views.CrawlOrder, services: OperatorServices) -> views.CrawlPreview:
    """Return the URLs that a crawl would fetch first, and what robots.txt says about them."""
    return views.CrawlPreview.of(await admission.preview(services.context, _options(order)))


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
    crawl_id: JobId, request: Request, services: ReaderServices, last_event_id: LastEventId = 0
) -> Response:
    """Stream the progress of a crawl as server-sent events."""
    job = await services.find_job(crawl_id)
    ended = job.status in FINISHED and last_event_id > 0
    if ended and not await services.queue.events(job.id, after=last_event_id, limit=1):
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
async def crawl_item(
    order: views.KnowledgeItem, services: OperatorServices, once: OnlyOnce
) -> Response:
    """Start a crawl, as `POST /api/v1/crawls` does."""
    return await start(order.as_crawl(), services, once)


aliases.get("/crawl-progress/{crawl_id}/events", **EVENT_STREAM)(events)


def _options(order: views.CrawlOrder) -> CrawlOptions:
    try:
        return order.options()
    except ValidationError as error:
        raise InvalidFields(field_problems(error.errors(), "body")) from None
