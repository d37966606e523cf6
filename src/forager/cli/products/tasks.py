"""`forager tasks`: list tracked pages, hold, change and recrawl them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from forager.api.models.tasks import TaskChoice, TaskTerms
from forager.cli.model_flags import ModelFlags
from forager.cli.options import Cursor, Domain, Limit, Yes, option, switch
from forager.cli.output import counted, note, plain, say, show_rows
from forager.cli.products import task_views as views
from forager.cli.running import CommandContext, answers, confirm, exit_if_unknown, lists, runs
from forager.tasks.archived_page import visited_page
from forager.tasks.holds import Held, Holds
from forager.tasks.lifecycle import TaskStatus
from forager.tasks.selection import Selection
from forager.tasks.service import Recrawled
from forager.tasks.task import Task

app = typer.Typer(help="Tracked pages: due times, outcomes, holds, recrawls.", no_args_is_help=True)

Statuses = Annotated[
    list[TaskStatus] | None, typer.Option("--status", help="Only tasks in this state (repeatable).")
]
Url = Annotated[str | None, typer.Option(help="Only URLs that contain this; * matches anything.")]


Chosen = Annotated[
    Selection,
    ModelFlags(
        TaskChoice,
        to=TaskChoice.selection,
        ids=typer.Argument(metavar="[ID]...", min=1, help="IDs of tasks."),
    ),
]
TaskId = Annotated[str, typer.Argument(metavar="TASK", help="Task ID or URL.")]


def _show_tasks(tasks: Sequence[Task]) -> None:
    show_rows(views.TASK_COLUMNS, tasks)
    views.note_holds(tasks)


@app.command("list")
@lists(
    _show_tasks,
    none="There are no tasks. `forager products track URL` creates one.",
    no_match="No tasks match. `forager tasks stats` counts all tasks.",
    document=views.document,
)
async def list_(
    here: CommandContext,
    status: Statuses = None,
    domain: Domain = None,
    url: Url = None,
    due: bool = switch("Only due tasks.", "--due"),
    held: bool | None = option(
        "Only tasks that are on hold (paused or stopped), alone or with others, or not.",
        "--held/--not-held",
    ),
    limit: Limit = 50,
    cursor: Cursor = None,
) -> object:
    """List tasks, newest first."""
    chosen = Selection(statuses=tuple(status or ()), domain=domain, url=url, due=due, held=held)
    return await here.tasks.list_tasks(chosen, cursor=cursor, limit=limit)


@app.command()
@answers(views.show_report, document=views.report_document)
async def show(here: CommandContext, task: TaskId) -> object:
    """Show one task: its next visit, why it is not running now, and its last attempts."""
    return await here.tasks.report(task)


@app.command()
@runs
async def page(
    here: CommandContext,
    task: TaskId,
    visit: int = option("Number of the visit; 1 is the newest stored response.", default=1, min=1),
    output: Path | None = option("Write to this file.", "--output", "-o", metavar="FILE"),
) -> None:
    """Print or save the stored response of a visit."""
    found = await here.tasks.report(task)
    saved = await visited_page(here.database, here.settings, found.task.id, visit=visit)
    if output is None:
        sys.stdout.buffer.write(saved.body)
    else:
        await asyncio.to_thread(output.write_bytes, saved.body)
        say(f"{len(saved.body)} bytes of {saved.url} written to {output}.")


@app.command()
@answers(views.show_stats)
async def stats(here: CommandContext) -> object:
    """Count tasks by state, and show which domains have work waiting."""
    return await here.tasks.stats()


@dataclass(frozen=True, slots=True)
class Changed:
    """The result of an action on selected tasks, and given IDs that are unknown."""

    result: Any
    unknown: list[int]
    chosen: Selection

    def document(self) -> dict[str, Any]:
        return {**plain(self.result), "not_found": self.unknown}


def _changes(
    show: Callable[[Changed], str | None],
    document: Callable[[Changed], dict[str, Any]] = Changed.document,
) -> Callable[[Callable[..., Awaitable[Any]]], Callable[..., None]]:
    """Declare a command that changes tasks; unknown IDs are reported after the result."""
    hint = "`forager tasks list` lists tasks."
    return answers(
        show, document=document, then=lambda done: exit_if_unknown(done.unknown, "task", hint)
    )


async def _changed(
    here: CommandContext, chosen: Selection, change: Callable[[Selection], Awaitable[Any]]
) -> Changed:
    unknown = await here.tasks.unknown(chosen)
    return Changed(await change(chosen), unknown, chosen)


def _show_recrawled(done: Changed) -> None:
    result: Recrawled = done.result
    say(f"{counted(result.due, 'task')} due now")
    if result.held:
        are = "is" if result.held == 1 else "are"
        note(f"{result.held} of them {are} on hold; `forager tasks resume` ends holds.")
    if result.under_way:
        note(f"{counted(result.under_way, 'task')} already in progress.")


@app.command()
@_changes(
    _show_recrawled,
    lambda done: {
        **plain(done.result),
        "under_way": done.result.under_way,
        "not_found": done.unknown,
    },
)
async def recrawl(here: CommandContext, chosen: Chosen) -> object:
    """Crawl tasks now, before others of the same domain and priority."""
    return await _changed(here, chosen, here.tasks.recrawl)


def _show_held(done: Changed, state: str) -> None:
    held: Held = done.result
    if done.chosen.is_everything:
        say(f"all tasks are {state}" if held.changed else f"all tasks were {state} already")
    elif done.chosen.is_domain_alone:
        say(f"the tasks of {done.chosen.domain} are {state}")
    else:
        say(f"{counted(held.changed, 'task')} {state}")
    if held.withdrawn:
        note(f"{counted(held.withdrawn, 'task')} canceled in the workers.")
    holds = [f"all tasks are {held.all_hold}"] if held.all_hold else []
    if held.held_domains:
        holds.append(f"{counted(held.held_domains, 'domain')} on hold")
    if held.held_tasks:
        holds.append(f"{counted(held.held_tasks, 'task')} on hold individually")
    if holds:
        note(f"Now: {', '.join(holds)}.")


@app.command()
@_changes(lambda done: _show_held(done, "paused"))
async def pause(here: CommandContext, chosen: Chosen) -> object:
    """Pause all tasks, the tasks of a domain, or selected tasks. Work in progress is completed."""
    return await _changed(here, chosen, Holds(here.database).pause)


@app.command()
@_changes(lambda done: _show_held(done, "stopped"))
async def stop(here: CommandContext, chosen: Chosen) -> object:
    """Pause tasks, and cancel work in progress."""
    return await _changed(here, chosen, Holds(here.database).stop)


@app.command()
@_changes(lambda done: _show_held(done, "resumed"))
async def resume(here: CommandContext, chosen: Chosen) -> object:
    """End a hold on all tasks, on a domain, or on selected tasks; other holds stay."""
    return await _changed(here, chosen, Holds(here.database).resume)


@app.command()
@_changes(
    lambda done: f"{counted(done.result, 'task')} removed",
    lambda done: {"removed": done.result, "not_found": done.unknown},
)
async def remove(here: CommandContext, chosen: Chosen, yes: Yes = False) -> object:
    """Stop tracking. Products, their history and the archive stay."""
    if not yes:
        count = await here.tasks.count(chosen)
        confirm(f"Remove {counted(count, 'task')}?", yes=yes)
    return await _changed(here, chosen, here.tasks.remove)


Terms = Annotated[
    dict[str, Any],
    ModelFlags(
        TaskTerms, to=TaskTerms.changes, removable=("every", "render"), max_retries="--retries"
    ),
]


@app.command("set")
@_changes(
    lambda done: f"{counted(done.result, 'task')} changed",
    lambda done: {"changed": done.result, "not_found": done.unknown},
)
async def set_(here: CommandContext, chosen: Chosen, terms: Terms) -> object:
    """Change the priority, interval, popularity, retries or rendering of tasks."""
    return await _changed(here, chosen, partial(here.tasks.set_terms, **terms))
