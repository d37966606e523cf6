"""Tasks: submitting them, looking at them, steering them; and the scheduler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from forager.access.caller import Scope
from forager.api.actions import as_call
from forager.api.idempotency import OnlyOnce
from forager.api.limits import DomainOrEmpty, Listed, Paged, RowId, Url, listed
from forager.api.models import PlainText
from forager.api.models import tasks as views
from forager.api.problems import FieldProblem, InvalidFields
from forager.api.services import Operates, Reads, Services
from forager.api.streams import response_file
from forager.errors import InvalidInput
from forager.extract.text import storable
from forager.hints import Hint, action, render
from forager.tasks.archived_page import visited_page
from forager.tasks.holds import Held, Holds
from forager.tasks.lifecycle import TaskStatus
from forager.tasks.selection import Selection
from forager.tasks.tracking_request import BadLine, TrackRequest

router = APIRouter(tags=["tasks"])

Hold = Callable[[Holds, Selection], Awaitable[Held]]


@router.post("/tasks", status_code=201, response_model=views.TrackResult)
async def track(order: views.TrackOrder, here: Operates, once: OnlyOnce) -> Response:
    """Track up to 10,000 URLs. Given options also apply to URLs that are tracked already.

    Items that cannot be tracked are named with the reason, and the others are tracked; if none
    can be, nothing is done.
    """
    if order.allow_private:
        here.caller.require(Scope.ADMIN, "allow_private")
    requests, terms = order.requests(), order.terms()

    async def add(here: Services) -> views.TrackResult:
        refused: list[BadLine] = []
        tracked = await here.tasks.track_requests(
            requests,
            terms=terms,
            allow_private=order.allow_private,
            found_by="api",
            on_bad=refused.append,
        )
        refused.sort(key=lambda bad: bad.line)
        if not tracked.kept:
            raise InvalidFields([_field(bad) for bad in refused])
        tasks = await _tasks_of(here, requests)
        items = [views.RefusedItem.build(bad) for bad in refused]
        return views.TrackResult.of(tracked, tasks=tasks, refused=items)

    return await once.do(add, views.TrackResult.of, status=201)


async def _tasks_of(
    here: Services, requests: list[TrackRequest | BadLine]
) -> list[views.TrackedTask]:
    kept = [request for request in requests if isinstance(request, TrackRequest)]
    ids = await here.tasks.ids_of([request.url for request in kept])
    return [
        views.TrackedTask(item=request.line, id=task_id, url=storable(request.url))
        for request, task_id in zip(kept, ids, strict=True)
        if task_id is not None
    ]


def _field(bad: BadLine) -> FieldProblem:
    return FieldProblem(field=f"body.items.{bad.line}", message=render(bad.reason, as_call))


@router.get("/tasks")
async def list_tasks(
    here: Reads,
    paging: Paged,
    status: Annotated[list[TaskStatus] | None, Query(max_length=20)] = None,
    domain: DomainOrEmpty = None,
    url: Annotated[
        PlainText | None,
        Query(max_length=2000, description="Only URLs that contain this; * matches anything."),
    ] = None,
    due: Annotated[bool, Query(description="Only due tasks.")] = False,
    held: Annotated[
        bool | None,
        Query(description="Only tasks on hold, or not, individually or as part of a group."),
    ] = None,
) -> Listed[views.Task]:
    """List tasks, newest first."""
    chosen = Selection(statuses=tuple(status or ()), domain=domain, url=url, due=due, held=held)
    return listed(await here.tasks.list_tasks(chosen, **paging), views.Task.of)


@router.get("/tasks/stats")
async def stats(here: Reads) -> views.TaskStats:
    """Count tasks by state, and list domains with waiting work."""
    return views.TaskStats.of(await here.task_stats())


@router.get("/scheduler", tags=["scheduler"])
async def scheduler(here: Reads) -> views.SchedulerState:
    """Show whether due tasks are dispatched to the workers."""
    return views.SchedulerState.of(
        await here.task_stats(), interval=here.settings.scheduler_interval
    )


@router.get("/tasks/by-url")
async def show_by_url(url: Url, here: Reads) -> views.TaskDetail:
    """Show a task by its URL."""
    if url.isdecimal():
        raise InvalidInput("this is not a URL", hint=Hint("By its id: {}", action("tasks show")))
    return await _detail(here, url)


@router.get("/tasks/{task_id}")
async def show(task_id: RowId, here: Reads) -> views.TaskDetail:
    """Show a task: its next visit, why it is not running now, and its last attempts."""
    return await _detail(here, str(task_id))


Visit = Annotated[
    int, Query(ge=1, description="Number of the visit; 1 is the newest stored response.")
]


@router.get(
    "/tasks/{task_id}/page",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
async def read_page(task_id: RowId, here: Operates, visit: Visit = 1) -> Response:
    """Download the stored response of a visit; 1 is the newest."""
    await _detail(here, str(task_id))
    saved = await visited_page(here.database, here.settings, task_id, visit=visit)
    return response_file(saved.body, f"task-{task_id}-visit-{visit}.html")


@router.post("/tasks/recrawl")
async def recrawl_many(choice: views.TaskChoice, here: Operates) -> views.RecrawlResult:
    """Crawl tasks now, before the others of the same domain and priority."""
    chosen = choice.selection()
    unknown = await here.tasks.unknown(chosen)
    return views.RecrawlResult.of(await here.tasks.recrawl(chosen), not_found=unknown)


def _add_hold(name: str, hold: Hold, of_many: str, of_one: str) -> None:
    async def hold_many(choice: views.TaskChoice, here: Operates) -> views.HoldResult:
        chosen = choice.selection()
        unknown = await here.tasks.unknown(chosen)
        return views.HoldResult.of(await hold(here.holds, chosen), not_found=unknown)

    async def hold_one(task_id: RowId, here: Operates) -> views.TaskDetail:
        await hold(here.holds, _only(task_id))
        return await _detail(here, str(task_id))

    router.post(f"/tasks/{name}", name=f"{name}_many", description=of_many)(hold_many)
    router.post(f"/tasks/{{task_id}}/{name}", name=f"{name}_one", description=of_one)(hold_one)


_add_hold(
    "pause",
    Holds.pause,
    "Pause all tasks, the tasks of a domain, or selected tasks. In-progress work is finished.",
    "Pause a task. In-progress work is finished.",
)
_add_hold(
    "stop",
    Holds.stop,
    "Pause, and cancel in-progress work.",
    "Pause a task, and cancel it if it is in progress.",
)
_add_hold(
    "resume",
    Holds.resume,
    "End a hold on all tasks, on a domain, or on selected tasks; other holds stay.",
    "End the hold on a task; holds on its domain or on all tasks stay.",
)


@router.patch("/tasks")
async def set_many(order: views.ChosenTerms, here: Operates) -> views.ChangedTasks:
    """Change the priority or the interval of tasks."""
    chosen, changes = order.selection(), order.changes()
    unknown = await here.tasks.unknown(chosen)
    changed = await here.tasks.set_terms(chosen, **changes)
    return views.ChangedTasks(changed=changed, not_found=unknown)


@router.post("/tasks/remove")
async def remove_many(choice: views.TaskChoice, here: Operates) -> views.RemovedTasks:
    """Stop tracking. Products, their history and the archive are kept."""
    chosen = choice.selection()
    unknown = await here.tasks.unknown(chosen)
    return views.RemovedTasks(removed=await here.tasks.remove(chosen), not_found=unknown)


@router.patch("/tasks/{task_id}")
async def set_one(task_id: RowId, order: views.TaskTerms, here: Operates) -> views.TaskDetail:
    """Change the priority or the interval of a task; an interval counts from the last visit."""
    await here.tasks.set_terms(_only(task_id), **order.changes())
    return await _detail(here, str(task_id))


@router.delete("/tasks/{task_id}")
async def remove_one(task_id: RowId, here: Operates) -> views.RemovedTasks:
    """Stop tracking a URL. Its product, history and archived pages are kept."""
    return views.RemovedTasks(removed=await here.tasks.remove(_only(task_id)))


@router.post("/tasks/{task_id}/recrawl")
async def recrawl_one(task_id: RowId, here: Operates) -> views.TaskDetail:
    """Recrawl a task now; one in progress continues."""
    await here.tasks.recrawl(_only(task_id))
    return await _detail(here, str(task_id))


async def _detail(here: Services, which: str) -> views.TaskDetail:
    report = await here.tasks.report(which)
    return views.TaskDetail.of(report, report.task)


def _only(task_id: int) -> Selection:
    return Selection(ids=(task_id,))
