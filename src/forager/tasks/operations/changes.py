"""Operations that change tasks: holds, recrawls, terms, removal; of a selection or of one task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from pydantic import Field

from forager.amounts import counted
from forager.errors import InvalidInput
from forager.hints import Hint, Option
from forager.operations.models import (
    MAX_BULK,
    Every,
    PlainText,
    RequestModel,
    ResponseModel,
    RowId,
    example,
    interval_of,
)
from forager.operations.operation import Context
from forager.settings.crawling import RenderMode, parse_render
from forager.tasks import holds
from forager.tasks.holds import Holds
from forager.tasks.operations.tasks import Statuses, TaskDetail, TaskId, report, tasks, tasks_of
from forager.tasks.selection import Selection

__all__ = ["tasks"]

Priority = Annotated[
    int,
    Field(
        ge=0,
        le=9,
        description="Higher runs first. The column of the table counts the other way: 1 is first.",
    ),
]
Popularity = Annotated[
    float, Field(allow_inf_nan=False, description="Breaks ties between tasks: higher runs first.")
]
Render = Annotated[
    RenderMode,
    Field(description="Render the page in a browser: if it has no price (auto), always, or never."),
]
Retries = Annotated[int, Field(ge=0, le=1000, description="Retries of a visit.")]
NotFoundIds = Annotated[list[int], Field(description="IDs that belong to no task.")]


class TaskChoice(RequestModel):
    """Which tasks are meant: all of what is named must fit. All tasks only if that is said."""

    model_config = example(domain="shop.example.org")

    ids: list[RowId] = Field(default_factory=list, max_length=MAX_BULK, description="IDs of tasks.")
    status: Statuses = Field(default_factory=list)
    domain: Annotated[PlainText, Field(min_length=1, max_length=300)] | None = Field(
        default=None,
        description="Tasks of this host and its subdomains; without settings for this host, also"
        " those of the domain that covers it, except where tasks are removed.",
    )
    url: Annotated[PlainText, Field(min_length=1, max_length=2000)] | None = Field(
        default=None, description="Only this URL; * in it matches anything: `*/lamps/*`."
    )
    all: bool = Field(default=False, description="All tasks; cannot be combined with a selection.")

    def check(self) -> None:
        self.selection()

    def selection(self) -> Selection:
        chosen = Selection(tuple(self.ids), tuple(self.status), self.domain, self.url)
        if chosen.is_everything != self.all:
            names = (Option(name) for name in ("domain", "status", "url", "all"))
            raise InvalidInput(
                "all tasks and a selection cannot be combined"
                if self.all
                else "no tasks were selected",
                hint=Hint("Give IDs, {}, {} or {}; or {}.", *names),
            )
        return chosen


class TaskTerms(RequestModel):
    """What to set; `every` or `render` null: as the domain says. What is left out stays."""

    model_config = example(priority=8, every="12h")

    priority: Priority | None = None
    every: Every | None = Field(
        default=None, description="Recrawl interval: 30m, 6h, 1d, 1w; by default the domain's."
    )
    popularity: Popularity | None = None
    max_retries: Retries | None = None
    render: Render | None = None

    def changes(self) -> dict[str, Any]:
        """The arguments of `Tasks.set_terms`."""
        given = {n: v for n, v in self.given().items() if n in TaskTerms.model_fields}
        if not {"every", "render"} & given.keys() and all(v is None for v in given.values()):
            raise InvalidInput(
                "nothing to set was given",
                hint="Give a priority, an interval, a popularity, retries or when to render.",
            )
        every, render = given.get("every"), given.get("render")
        return {
            **given,
            "every": interval_of(every),
            "default_every": "every" in given and every is None,
            "render": None if render is None else parse_render(render),
            "default_render": "render" in given and render is None,
        }


class ChosenTerms(TaskTerms, TaskChoice):
    """Tasks, and the terms that they get."""

    model_config = example(domain="shop.example.org", priority=8, every="12h")


class RecrawlResult(ResponseModel):
    """Those `on_hold` are due, but wait until they are resumed."""

    found: int = Field(description="Number of tasks selected.")
    due: int
    on_hold: int = Field(description="Tasks that are due but on hold.")
    under_way: int = Field(description="Tasks that a worker is running already.")
    not_found: NotFoundIds = Field(default_factory=list)


class HoldResult(ResponseModel, row=holds.HoldChange):
    """What a hold, or its end, has changed, and what is on hold now in all."""

    changed: int = Field(description="Tasks or domains changed; 1 for a hold on all tasks.")
    withdrawn: int = Field(description="Canceled in the workers.")
    not_found: NotFoundIds = Field(default_factory=list)


class ChangedTasks(ResponseModel):
    """How many tasks were changed."""

    changed: int = Field(description="Number of changed tasks.")
    not_found: NotFoundIds = Field(default_factory=list)


class RemovedTasks(ResponseModel):
    """How many tasks were removed."""

    removed: int = Field(description="Number of removed tasks.")
    not_found: NotFoundIds = Field(default_factory=list)


def _only(task_id: int) -> Selection:
    return Selection(ids=(task_id,))


@tasks.operation(
    "recrawl",
    "POST /tasks/recrawl",
    arguments=("ids",),
    done="tasks due now: {due}, on hold: {on_hold}, in progress: {under_way}",
    button="Recrawl now",
)
async def recrawl_many(context: Context, choice: TaskChoice) -> RecrawlResult:
    """Crawl tasks now, before the others of the same domain and priority."""
    chosen = choice.selection()
    unknown = await tasks_of(context).unknown(chosen)
    return RecrawlResult.of(await tasks_of(context).recrawl(chosen), not_found=unknown)


@tasks.operation("recrawl", "POST /tasks/{task_id}/recrawl", command=False)
async def recrawl_one(context: Context, task_id: TaskId) -> TaskDetail:
    """Recrawl a task now; one in progress continues."""
    await tasks_of(context).recrawl(_only(task_id))
    return await report(context, str(task_id))


def _declare_hold(
    name: str,
    hold: Callable[[Holds, Selection], Awaitable[holds.HoldChange]],
    many: str,
    one: str,
    done: str,
) -> None:
    async def hold_many(context: Context, choice: TaskChoice) -> HoldResult:
        chosen = choice.selection()
        unknown = await tasks_of(context).unknown(chosen)
        return HoldResult.of(await hold(Holds(context.database), chosen), not_found=unknown)

    async def hold_one(context: Context, task_id: TaskId) -> TaskDetail:
        await hold(Holds(context.database), _only(task_id))
        return await report(context, str(task_id))

    hold_many.__name__, hold_many.__doc__ = f"{name}_many", many
    hold_one.__name__, hold_one.__doc__ = f"{name}_one", one
    button = name.capitalize()
    how = {"done": lambda found: f"{done} {holds.describe_holds(found)}", "button": button}
    tasks.operation(name, f"POST /tasks/{name}", arguments=("ids",), **how)(hold_many)
    tasks.operation(name, f"POST /tasks/{{task_id}}/{name}", command=False)(hold_one)


_declare_hold(
    "pause",
    Holds.pause,
    "Pause all tasks, the tasks of a domain, or selected tasks. In-progress work is finished.",
    "Pause a task. In-progress work is finished.",
    "Paused: tasks in progress are finished; due times, retries, products and prices are kept.",
)
_declare_hold(
    "stop",
    Holds.stop,
    "Pause, and cancel in-progress work.",
    "Pause a task, and cancel it if it is in progress.",
    "Stopped: due times, retries, products and prices are kept.",
)
_declare_hold(
    "resume",
    Holds.resume,
    "End a hold on all tasks, on a domain, or on selected tasks; other holds stay.",
    "End the hold on a task; holds on its domain or on all tasks stay.",
    "Resumed.",
)


@tasks.operation(
    "set",
    "PATCH /tasks",
    arguments=("ids",),
    resets=("every", "render"),
    flags={"max_retries": "--retries"},
    done="tasks changed: {changed}",
)
async def set_many(context: Context, order: ChosenTerms) -> ChangedTasks:
    """Change the priority, interval, popularity, retries or rendering of tasks."""
    chosen, changes = order.selection(), order.changes()
    unknown = await tasks_of(context).unknown(chosen)
    changed = await tasks_of(context).set_terms(chosen, **changes)
    return ChangedTasks(changed=changed, not_found=unknown)


@tasks.operation("set", "PATCH /tasks/{task_id}", command=False)
async def set_one(context: Context, task_id: TaskId, order: TaskTerms) -> TaskDetail:
    """Change the priority or the interval of a task; an interval counts from the last visit."""
    await tasks_of(context).set_terms(_only(task_id), **order.changes())
    return await report(context, str(task_id))


async def _question(context: Context, choice: TaskChoice) -> str:
    number = counted(await tasks_of(context).count(choice.selection(), destroys=True), "task")
    return f"Stop tracking {number}? Products, their history and the archive are kept."


@tasks.operation(
    "remove",
    "POST /tasks/remove",
    arguments=("ids",),
    confirm=True,
    preview=_question,
    done="tasks removed: {removed}",
)
async def remove_many(context: Context, choice: TaskChoice) -> RemovedTasks:
    """Stop tracking. Products, their history and the archive are kept."""
    chosen = choice.selection()
    unknown = await tasks_of(context).unknown(chosen)
    return RemovedTasks(removed=await tasks_of(context).remove(chosen), not_found=unknown)


@tasks.operation("remove", "DELETE /tasks/{task_id}", command=False)
async def remove_one(context: Context, task_id: TaskId) -> RemovedTasks:
    """Stop tracking a URL. Its product, history and archived pages are kept."""
    return RemovedTasks(removed=await tasks_of(context).remove(_only(task_id)))


tasks.by_hand("page", "GET /tasks/{task_id}/page")
# the place in the dashboard depends on the option
tasks.by_hand("resume --all", "POST /tasks/resume", button="Resume all")
tasks.by_hand("resume --domain", "POST /tasks/resume", page="Domains", button="Resume")
