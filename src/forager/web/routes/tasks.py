"""Tasks: pages that are visited regularly, their state, and the form that tracks more pages."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from forager.access.caller import Scope
from forager.api.limits import RowId
from forager.api.streams import response_file
from forager.errors import InvalidInput, NotFound
from forager.products.lookup import find_product
from forager.tasks.archived_page import visited_response
from forager.tasks.holds import Holds, describe_holds
from forager.tasks.lifecycle import TaskStatus
from forager.tasks.selection import Selection
from forager.tasks.service import Recrawled, TaskStats
from forager.tasks.task import DEFAULT_PRIORITY, PRIORITIES, SILENT_AFTER
from forager.tasks.tracking import Tracked
from forager.web.formats import counted
from forager.web.forms import Form, Submitted
from forager.web.page import Done, WebPage, action, attempt, cached, new_router, page
from forager.web.responses import shown_response
from forager.web.visit import OperatorVisit, ReaderVisit, WebVisit

router = new_router()

HOLDS = {
    "pause": (Holds.pause, "paused"),
    "stop": (Holds.stop, "stopped"),
    "resume": (Holds.resume, "resumed"),
}


@page(router, "/tasks")
async def list_tasks(visit: ReaderVisit) -> WebPage:
    chosen = chosen_by(visit.asked)
    found, problem = await attempt(lambda: visit.tasks.list_tasks(chosen, **visit.paging))
    stats = await visit.task_stats()
    counts = stats.counts
    if not problem and chosen != Selection(statuses=chosen.statuses):
        counts = (await cached(visit, lambda: visit.tasks.counts(chosen))).answer
    return WebPage(
        "tasks.html",
        counts=counts,
        tab_url=lambda state: visit.with_query(status=state),
        tasks=found,
        problem=problem,
        stats=stats,
        total=sum(counts[each] for each in chosen.statuses or counts),
        chosen=chosen,
        is_silent=_is_silent(stats),
    )


@action(router, "/tasks/move")
async def move(visit: OperatorVisit, form: Submitted) -> Done:
    """Move the selected tasks, those of the filters, those of a domain, or all."""
    text = await _move(visit, form.text("move"), _selection(form))
    return Done(text, to="/tasks")


@page(router, "/tasks/{task_id}")
async def show(visit: ReaderVisit, task_id: RowId) -> WebPage:
    report = await visit.tasks.report(str(task_id))
    product_id = None
    with suppress(NotFound):
        product_id = await visit.database.run(find_product, report.task.url)
    return WebPage(
        "task.html", report=report, task=report.task, product_id=product_id, priorities=PRIORITIES
    )


VisitNumber = Annotated[int, Query(ge=1, le=100_000)]


@page(router, "/tasks/{task_id}/page")
async def stored_page(visit: OperatorVisit, task_id: RowId, number: VisitNumber = 1) -> WebPage:
    report = await visit.tasks.report(str(task_id))
    stored = await visited_response(visit.database, visit.settings, task_id, visit=number)
    return WebPage("task_page.html", task=report.task, number=number, stored=shown_response(stored))


@router.get("/tasks/{task_id}/page/file", response_model=None)
async def stored_file(visit: OperatorVisit, task_id: RowId, number: VisitNumber = 1) -> Response:
    stored = await visited_response(visit.database, visit.settings, task_id, visit=number)
    return response_file(stored.body, f"task-{task_id}-visit-{number}.html")


@action(router, "/tasks/{task_id}/move")
async def move_one(visit: OperatorVisit, form: Submitted, task_id: RowId) -> Done:
    text = await _move(visit, form.text("move"), only(task_id))
    gone = form.text("move") == "remove"
    return Done(text, to="/tasks" if gone else f"/tasks/{task_id}", leaves=gone)


@action(router, "/tasks/{task_id}/terms")
async def set_terms(visit: OperatorVisit, form: Submitted, task_id: RowId) -> Done:
    every = form.interval("every")
    await visit.tasks.set_terms(
        only(task_id),
        priority=form.number("priority", least=0, most=9),
        every=every,
        default_every=every is None,
    )
    return Done("Task saved.", to=f"/tasks/{task_id}")


async def _move(visit: WebVisit, name: str, chosen: Selection) -> str:
    match name:
        case "recrawl":
            return _recrawled(await visit.tasks.recrawl(chosen))
        case "pause" | "stop" | "resume":
            hold, state = HOLDS[name]
            return f"{state.capitalize()}. {describe_holds(await hold(visit.holds, chosen))}"
        case "remove" if not chosen.is_everything:
            removed = await visit.tasks.remove(chosen)
            return f"{counted(removed, 'page')} no longer tracked."
        case _:
            raise InvalidInput("tasks can be recrawled, paused, stopped, resumed and removed")


def _selection(form: Form) -> Selection:
    """An empty selection must not select everything."""
    chosen = chosen_by(form)
    match form.text("which"):
        case "all":
            return Selection()
        case "fitting" if not chosen.is_everything:
            return chosen
        case "domain" if chosen.domain:
            return Selection(domain=chosen.domain)
        case "ticked" if ids := form.ids("id"):
            return Selection(ids=tuple(ids))
        case _:
            raise InvalidInput("no task is selected", hint="Select at least one task.")


def _recrawled(done: Recrawled) -> str:
    parts = [f"{counted(done.due, 'task')} due now"]
    if done.on_hold:
        parts.append(f"{done.on_hold} of them on hold, and waiting until they are resumed")
    if done.under_way:
        parts.append(f"{done.under_way} already in progress")
    return f"{', '.join(parts)}."


def _is_silent(stats: TaskStats) -> bool:
    """Tasks are due, and no scheduler dispatches them."""
    if not stats.counts[TaskStatus.PENDING]:
        return False
    return stats.ticked_at is None or datetime.now(UTC) - stats.ticked_at > SILENT_AFTER


def chosen_by(form: Form) -> Selection:
    """The tasks that match the filters of the list."""
    return Selection(
        statuses=tuple(status for status in TaskStatus if status in form.texts("status")),
        domain=form.optional("domain"),
        url=form.optional("url"),
        due=form.checked("due"),
        on_hold=True if form.checked("on_hold") else None,
        failing=form.checked("failing"),
    )


def only(task_id: int) -> Selection:
    return Selection(ids=(task_id,))


MAX_URLS = 10_000


@page(router, "/track")
async def track_form(visit: OperatorVisit) -> WebPage:
    return WebPage(
        "track.html",
        url=visit.asked.text("url"),
        priorities=PRIORITIES,
        default_priority=DEFAULT_PRIORITY,
        default_every=visit.settings.recrawl_every,
        most=MAX_URLS,
    )


@action(router, "/track")
async def track(visit: OperatorVisit, form: Submitted) -> Done:
    urls = form.lines("urls")
    if not 1 <= len(urls) <= MAX_URLS:
        raise InvalidInput(
            f"give from 1 to {MAX_URLS:,} URLs, one per line",
            hint="Use `forager products track --from FILE` for more.",
        )
    tracked = await _tracked(visit, form, urls)
    if not tracked.kept:
        raise InvalidInput(f"nothing is tracked: {_refused(tracked)}")
    to = await _place(visit, urls)
    return Done(_tracked_text(tracked), to=to, leaves=True, failed=bool(tracked.bad))


async def _tracked(visit: WebVisit, form: Form, urls: list[str]) -> Tracked:
    if form.checked("allow_private"):
        visit.caller.require(Scope.ADMIN, "allow_private")
    return await visit.tasks.track(
        urls,
        every=form.interval("every"),
        priority=form.number("priority", least=0, most=9),
        allow_private=form.checked("allow_private"),
    )


async def _place(visit: WebVisit, urls: list[str]) -> str:
    """The page of the task if there is one, else the list."""
    if len(urls) == 1:
        [task_id] = await visit.tasks.ids_of(urls)
        if task_id is not None:
            return f"/tasks/{task_id}"
    return "/tasks"


def _tracked_text(tracked: Tracked) -> str:
    text = f"Tracking {counted(tracked.added, 'new page')}"
    if tracked.known:
        text += f"; {tracked.known:,} {'was' if tracked.known == 1 else 'were'} already tracked"
    return f"{text}. {_refused(tracked)}".strip()


def _refused(tracked: Tracked) -> str:
    if not tracked.bad:
        return ""
    first = tracked.first_bad[0]
    return f"{counted(tracked.bad, 'line')} rejected; first: {first.text}: {first.reason}"
