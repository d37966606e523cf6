"""Tasks: submitting them, their stored pages, and the scheduler."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from forager.access.caller import Scope
from forager.api.actions import as_call
from forager.api.idempotency import OnlyOnce
from forager.api.limits import RowId
from forager.api.models import tasks as views
from forager.api.problems import InvalidFields, RequestFieldProblem
from forager.api.services import OperatorServices, Services
from forager.api.streams import response_file
from forager.extract.text import storable
from forager.hints import render
from forager.tasks.archived_page import visited_page
from forager.tasks.tracking_request import BadLine, TrackRequest

router = APIRouter(tags=["tasks"])


@router.post("/tasks", status_code=201, response_model=views.TrackResult)
async def track(order: views.TrackOrder, services: OperatorServices, once: OnlyOnce) -> Response:
    """Track up to 10,000 URLs. Given options also apply to URLs that are tracked already.

    Items that cannot be tracked are named with the reason, and the others are tracked; if none
    can be, nothing is done.
    """
    if order.allow_private:
        services.caller.require(Scope.ADMIN, "allow_private")
    requests, terms = order.requests(), order.terms()

    async def add(services: Services) -> views.TrackResult:
        refused: list[BadLine] = []
        tracked = await services.tasks.track_requests(
            requests,
            terms=terms,
            allow_private=order.allow_private,
            found_by="api",
            on_bad=refused.append,
        )
        refused.sort(key=lambda bad: bad.line)
        if not tracked.kept:
            raise InvalidFields([_field(bad) for bad in refused])
        tasks = await _tasks_of(services, requests)
        items = [views.RefusedItem.build(bad) for bad in refused]
        return views.TrackResult.of(tracked, tasks=tasks, refused=items)

    return await once.do(add, views.TrackResult.of, status=201)


async def _tasks_of(
    services: Services, requests: list[TrackRequest | BadLine]
) -> list[views.TrackedTask]:
    kept = [request for request in requests if isinstance(request, TrackRequest)]
    ids = await services.tasks.ids_of([request.url for request in kept])
    return [
        views.TrackedTask(item=request.line, id=task_id, url=storable(request.url))
        for request, task_id in zip(kept, ids, strict=True)
        if task_id is not None
    ]


def _field(bad: BadLine) -> RequestFieldProblem:
    return RequestFieldProblem(field=f"body.items.{bad.line}", message=render(bad.reason, as_call))


TaskId = Annotated[RowId, Path(description="ID of the task.")]
Visit = Annotated[
    int, Query(ge=1, description="Number of the visit; 1 is the newest stored response.")
]


@router.get(
    "/tasks/{task_id}/page",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
async def read_page(task_id: TaskId, services: OperatorServices, visit: Visit = 1) -> Response:
    """Download the stored response of a visit; 1 is the newest."""
    await services.tasks.get(str(task_id))
    saved = await visited_page(services.database, services.settings, task_id, visit=visit)
    return response_file(saved.body, f"task-{task_id}-visit-{visit}.html")
