"""Operations on tasks that read: URLs that are kept fresh, and the state of their visits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from forager.errors import InvalidInput
from forager.hints import Hint, action, render
from forager.operations.models import (
    Interval,
    Listed,
    Paging,
    PlainText,
    ResponseModel,
    RowId,
    Time,
    listed,
)
from forager.operations.operation import Columns, Context, Group
from forager.products.product import AttemptRecord
from forager.settings.crawling import RenderMode
from forager.tasks import service, task
from forager.tasks.lifecycle import TaskStatus
from forager.tasks.selection import Selection
from forager.tasks.task import Hold

tasks = Group("tasks", "Tracked pages: due times, outcomes, holds, recrawls.", page="Tasks")

DOMAINS_NAMED = 5
STYLES = dict.fromkeys(("queued", "crawling", "downloaded", "parsing"), "cyan") | {
    "completed": "green", "failed": "red", "paused": "yellow", "stopped": "yellow",
}  # fmt: skip

TaskId = Annotated[RowId, Field(description="ID of the task.")]
TaskName = Annotated[PlainText, Field(description="Task ID or URL.")]
TaskUrl = Annotated[
    PlainText,
    Field(
        min_length=1,
        max_length=8000,
        description="URL, in any spelling.",
        examples=["https://example.org/"],
    ),
]
Statuses = Annotated[
    list[TaskStatus], Field(max_length=20, description="Only tasks in this state.")
]
OfDomain = Annotated[
    PlainText,
    Field(
        max_length=300, description="Only this host, its subdomains, or the domain that covers it."
    ),
]
UrlPattern = Annotated[
    PlainText,
    Field(max_length=2000, description="Only this URL; * in it matches anything: `*/lamps/*`."),
]
Due = Annotated[bool, Field(description="Only due tasks.")]
OnHold = Annotated[
    bool, Field(description="Only tasks on hold, or not, individually or as part of a group.")
]
Failing = Annotated[bool, Field(description="Only tasks that gave up or whose last visit failed.")]


_ABOUT_TASK = {
    "priority": "Higher runs first.",
    "popularity": "Breaks ties between tasks: higher runs first.",
    "scheduled_at": "When the task becomes due.",
    "found_by": "How the URL was found.",
    "browser_since": "When it was decided that the page needs a browser; null: it does not.",
    "browser_until": "When that decision expires: the next visit is made without a browser.",
    "moved_to": "Where the URL redirects to permanently: requested instead of it.",
    "started_at": "When the current or last attempt started.",
}


class Task(ResponseModel, row=task.Task, hidden=("domain_id",), about=_ABOUT_TASK):
    """One URL that is kept fresh; lengths of time are in seconds."""

    shown_status: str = Field(description="The state, or the hold on the task itself.")
    hold: Hold | None = Field(description="The hold on the task itself.")
    domain_hold: Hold | None = Field(description="The hold on its domain.")
    all_hold: Hold | None = Field(description="The hold on all tasks.")
    domain_alarm: str | None = Field(
        description="Why results of its domain are withheld: `gone`, `blocked` or `same_page`."
    )
    held_by: str | None = Field(description="Holds that keep it from running, the widest first.")
    failed_visits: int = Field(description="Visits in a row whose last retry failed.")
    every: Interval | None = Field(
        validation_alias="crawl_frequency", description="Interval set for this task."
    )
    adapted_every: Interval | None = Field(
        validation_alias="adapted_frequency", description="Interval adapted to price changes."
    )
    render: RenderMode | None = Field(description="Which visits use a browser; null: its domain's.")
    needs_browser: bool = Field(description="Whether its static response has no price.")


_ABOUT_TASK_ATTEMPT = {
    "size": "Size in bytes.",
    "outcome": "Result of the attempt, such as `ok`, `unchanged`, `retry` or `failed`.",
    "error_message": "Why the attempt failed; null: it did not.",
}


class TaskAttempt(ResponseModel, row=AttemptRecord, about=_ABOUT_TASK_ATTEMPT, thing="attempt"):
    """One attempt to fetch or to read a page."""

    columns: ClassVar[Columns] = {
        "FINISHED": "finished_at", "STAGE": "stage",
        "OUTCOME": lambda each: each.outcome.replace("_", " "),
        "HTTP>": "http_status", "MS>": "duration_ms",
        "NOTE…": lambda each: each.error_message or each.final_url or "",
    }  # fmt: skip


class TaskDetail(Task):
    """A task, when it comes next, why it does not run now, and its last attempts."""

    effective_every: Interval = Field(
        validation_alias="every", description="The interval in effect."
    )
    next_at: Time | None = Field(description="Null while it runs or waits for a decision.")
    why: str
    attempts: list[TaskAttempt] = Field(description="The latest attempts.")


class Backlog(ResponseModel):
    """A domain's tasks that are due or with the workers."""

    columns: ClassVar[Columns] = {
        "DOMAIN": "domain", "DUE>": "due", "IN PROGRESS>": "under_way", "OLDEST": "oldest_due"
    }  # fmt: skip

    domain: str
    due: int
    under_way: int = Field(description="Tasks in progress.")
    oldest_due: Time | None


_ABOUT_TASK_STATS = {
    "counts": "Numbers of tasks by status.",
    "ticked_at": "When the scheduler last ran.",
}


class TaskStats(ResponseModel, row=service.TaskStats, about=_ABOUT_TASK_STATS):
    """Tasks by state, and the work that waits."""

    all_hold: Hold | None
    backlog: list[Backlog] = Field(description="The domains with the most work waiting.")


class SchedulerState(ResponseModel, row=service.TaskStats, hidden=("counts", "backlog")):
    """Whether tasks are handed to the workers, and what holds them back."""

    ticked_at: Time | None = Field(description="Last run of a scheduler; null: never.")
    interval: float = Field(description="Time between two runs.")
    all_hold: Hold | None


def _note(found: Any) -> str:
    # the status shows only holds on the task itself
    hold = found.held_by if found.all_hold or found.domain_hold else None
    alarm = f"alarm of its domain: {found.domain_alarm}" if found.domain_alarm else None
    return "; ".join(filter(None, (hold, alarm, found.error_message)))


TASK_COLUMNS: Columns = {
    "ID>": "id",
    "STATUS": lambda found: (found.shown_status, STYLES.get(found.shown_status, "")),
    "PRIORITY>": "priority",
    "NEXT": lambda found: {"completed": found.next_crawl_at, "pending": found.scheduled_at}.get(
        found.status
    ),
    "URL…": "url",
    "NOTE…": _note,
}


def _holds(found: Listed[Any]) -> str:
    """The holds on listed tasks, and the commands that end them."""
    domains = {each.domain: each.domain_hold for each in found.items if each.domain_hold}
    named = [
        f"Those of {domain} are {hold}: `forager tasks resume --domain {domain}`"
        for domain, hold in list(domains.items())[:DOMAINS_NAMED]
    ]
    return "\n".join([*_hold_on_all(found.items), *named])


def _hold_on_all(found: Sequence[Any]) -> list[str]:
    hold = next((each.all_hold for each in found if each.all_hold), None)
    return [f"All tasks are {hold}: `forager tasks resume --all` resumes them."] if hold else []


def tasks_of(context: Context) -> service.Tasks:
    return service.Tasks(context.database, context.settings)


async def report(context: Context, name: str) -> TaskDetail:
    found = await tasks_of(context).report(name)
    return TaskDetail.of(found, found.task, why=render(found.why, context.show))


async def _stats(context: Context) -> service.TaskStats:
    counted = await context.cached("task stats", tasks_of(context).stats)
    return await tasks_of(context).stats_now(counted)


@tasks.operation(
    "list",
    "GET /tasks",
    columns=TASK_COLUMNS,
    note=_holds,
    flags={"on_hold": "--on-hold/--not-on-hold"},
    none="There are no such tasks. `forager products track URL` creates one.",
)
async def list_tasks(
    context: Context,
    paging: Paging,
    status: Statuses | None = None,
    domain: OfDomain | None = None,
    url: UrlPattern | None = None,
    due: Due = False,
    on_hold: OnHold | None = None,
    failing: Failing = False,
) -> Listed[Task]:
    """List tasks, newest first."""
    chosen = Selection(
        statuses=tuple(status or ()),
        domain=domain,
        url=url,
        due=due,
        on_hold=on_hold,
        failing=failing,
    )
    return listed(await tasks_of(context).list_tasks(chosen, **paging), Task.of)


@tasks.operation("stats", "GET /tasks/stats")
async def stats(context: Context) -> TaskStats:
    """Count tasks by state, and list domains with waiting work."""
    return TaskStats.of(await _stats(context))


@tasks.operation("stats", "GET /scheduler", command=False, tag="scheduler")
async def scheduler(context: Context) -> SchedulerState:
    """Show whether due tasks are dispatched to the workers."""
    interval = context.settings.scheduler_interval
    return SchedulerState.of(await _stats(context), interval=interval)


@tasks.operation("show", "GET /tasks/by-url", command=False)
async def show_by_url(context: Context, url: TaskUrl) -> TaskDetail:
    """Show a task by its URL."""
    if url.isdecimal():
        raise InvalidInput("this is not a URL", hint=Hint("By its id: {}", action("tasks show")))
    return await report(context, url)


@tasks.operation("show", "GET /tasks/{task_id}", command=False)
async def show(context: Context, task_id: TaskId) -> TaskDetail:
    """Show a task: its next visit, why it is not running now, and its last attempts."""
    return await report(context, str(task_id))


@tasks.operation("show", "GET /tasks/{task_id}", endpoint=False)
async def show_named(context: Context, task_id: TaskName) -> TaskDetail:
    """Show a task: its next visit, why it is not running now, and its last attempts."""
    return await report(context, task_id)
