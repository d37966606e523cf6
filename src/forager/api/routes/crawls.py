"""Starting crawls, and watching them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Request
from pydantic import ValidationError
from starlette.responses import Response, StreamingResponse

from forager.api.idempotency import OnlyOnce
from forager.api.models.crawls import CrawlOrder, CrawlProgress, CrawlStarted
from forager.api.models.values import LARGEST_BIGINT
from forager.api.problems import InvalidFields, field_problems
from forager.api.services import Here, Operator, Reader, Services, only_own
from forager.api.streams import ProgressHub, progress_events
from forager.crawl.admission import start_crawl
from forager.crawl.options import CrawlOptions
from forager.crawl.report import crawl_report
from forager.jobs.lifecycle import FINISHED

router = APIRouter(tags=["crawls"])

LastEventId = Annotated[
    int,
    Header(
        alias="Last-Event-ID",
        ge=0,
        le=LARGEST_BIGINT,
        description="The id of the last `move` that is known; only later ones are sent.",
    ),
]


@router.post("/knowledge-items/crawl", status_code=202, response_model=CrawlStarted)
async def crawl(order: CrawlOrder, caller: Operator, once: OnlyOnce) -> Response:
    """Ask for a crawl. A worker runs it; the answer has the id to follow it by.

    A source that is being crawled already answers with that job.
    """
    options = _options(order)

    async def start(here: Services) -> CrawlStarted:
        asked = await start_crawl(
            here.database,
            here.settings,
            caller,
            options,
            source=order.source,
            priority=order.priority,
        )
        return CrawlStarted.of(asked)

    return await once.do(start, status=202)


@router.get("/crawl-progress/{progress_id}")
async def progress(progress_id: UUID, here: Here, caller: Reader) -> CrawlProgress:
    """How far a crawl is: state, percentage, ledger, pace, time left, why it stopped."""
    report = await crawl_report(here.database, here.queue, progress_id)
    only_own(caller, report.job)
    return CrawlProgress.of(report)


@router.get(
    "/crawl-progress/{progress_id}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Events `move`, `progress` and at last `end`, as long as the job lasts.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        204: {"description": "The job has ended, and everything about it is known already."},
    },
)
async def events(
    progress_id: UUID,
    request: Request,
    here: Here,
    caller: Reader,
    last_event_id: LastEventId = 0,
) -> Response:
    """Follow a crawl as it happens, by server-sent events."""
    job = await here.job_of(caller, progress_id)
    ended = job.status in FINISHED and last_event_id > 0
    if ended and not await here.queue.events(progress_id, after=last_event_id, limit=1):
        # a browser connects again by itself, and stops only at this answer
        return Response(status_code=204)
    hub: ProgressHub = request.app.state.hub
    hub.check_room()
    return StreamingResponse(
        progress_events(hub, progress_id, last_event_id),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _options(order: CrawlOrder) -> CrawlOptions:
    try:
        return order.options()
    except ValidationError as error:
        raise InvalidFields(field_problems(error.errors(), "body")) from None
