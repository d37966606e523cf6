"""`forager tasks`: list tracked pages, hold, change and recrawl them."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from forager.cli.options import AsJson, Cursor, Domain, Limit, Yes, argument, grouped, option
from forager.cli.output import counted, note, note_more, plain, say, show_json, show_page
from forager.cli.products import task_views as views
from forager.cli.running import CommandContext, answers, confirm, leave_if_unknown, with_services
from forager.errors import InvalidInput
from forager.settings.crawling import parse_render
from forager.tasks.lifecycle import TaskStatus

if TYPE_CHECKING:
    from forager.parsers.scaffold import SavedPage
    from forager.tasks.holds import Held
    from forager.tasks.selection import Selection
    from forager.tasks.service import Recrawled, Tasks

Answer = TypeVar("Answer")

app = typer.Typer(help="Tracked pages: due times, outcomes, holds, recrawls.", no_args_is_help=True)

Statuses = Annotated[
    list[TaskStatus] | None, typer.Option("--status", help="Only tasks in this state (repeatable).")
]
Url = Annotated[str | None, typer.Option(help="Only URLs that contain this; * matches anything.")]


@dataclass(frozen=True, slots=True)
class TaskChoice:
    """Options that select tasks."""

    ids: list[int] | None = argument("IDs of tasks.", metavar="[ID]...", min=1)
    status: Statuses = None
    domain: Domain = None
    url: Url = None
    everything: bool = option("All tasks.", "--all", default=False)

    def selection(self) -> Selection:
        """Which tasks are selected; all of them only with --all."""
        from forager.tasks.selection import Selection

        chosen = Selection(tuple(self.ids or ()), tuple(self.status or ()), self.domain, self.url)
        if chosen.is_everything != self.everything:
            raise InvalidInput(
                "--all cannot be combined with a selection"
                if self.everything
                else "no tasks were selected",
                hint="Give IDs, --domain, --status or --url; or --all.",
            )
        return chosen


TaskId = Annotated[str, typer.Argument(metavar="TASK", help="Task ID or URL.")]


@app.command("list")
def list_(
    context: typer.Context,
    status: Statuses = None,
    domain: Domain = None,
    url: Url = None,
    due: bool = option("Only due tasks.", "--due", default=False),
    held: bool | None = option(
        "Only tasks that are held, or not: individually, by domain, or with all others.",
        "--held/--not-held",
    ),
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List tasks, newest first."""
    from forager.tasks.selection import Selection

    chosen = Selection(statuses=tuple(status or ()), domain=domain, url=url, due=due, held=held)
    page = with_services(
        context, lambda here: here.tasks.list_tasks(chosen, cursor=cursor, limit=limit)
    )
    if as_json:
        return show_page([views.document(task) for task in page.items], page.next_cursor)
    if page.items:
        views.show_tasks(page.items)
        views.note_holds(page.items)
    elif chosen.is_everything:
        note("There are no tasks. `forager products track URL` creates one.")
    else:
        note("No task fits. `forager tasks stats` counts those there are.")
    return note_more(page.next_cursor)


@app.command()
@answers(views.show_report, document=views.report_document)
async def show(here: CommandContext, task: TaskId) -> object:
    """Show one task: its next visit, why it is not running now, and its last attempts."""
    return await here.tasks.report(task)


@app.command()
def page(
    context: typer.Context,
    task: TaskId,
    visit: int = option("Number of the visit; 1 is the newest stored response.", default=1, min=1),
    output: Path | None = option("Write to this file.", "--output", "-o", metavar="FILE"),
) -> None:
    """Print or save the stored response of a visit."""
    from forager.tasks.archived_page import visited_page

    async def read(here: CommandContext) -> SavedPage:
        found = await here.tasks.report(task)
        return await visited_page(here.database, here.settings, found.task.id, visit=visit)

    saved = with_services(context, read)
    if output is None:
        sys.stdout.buffer.write(saved.body)
    else:
        output.write_bytes(saved.body)
        say(f"{len(saved.body)} bytes of {saved.url} written to {output}.")


@app.command()
@answers(views.show_stats)
async def stats(here: CommandContext) -> object:
    """Count tasks by state, and show which domains have work waiting."""
    return await here.tasks.stats()


@app.command()
@grouped
def recrawl(context: typer.Context, choice: TaskChoice, as_json: AsJson = False) -> None:
    """Crawl tasks now, before others of the same domain and priority."""
    chosen = choice.selection()
    done, unknown = _beside_unknown(context, chosen, lambda t: t.recrawl(chosen))
    if as_json:
        show_json({**plain(done), "under_way": done.under_way, "not_found": unknown})
    else:
        _show_recrawled(done)
    _leave_if_unknown(unknown)


@app.command()
@grouped
def pause(context: typer.Context, choice: TaskChoice, as_json: AsJson = False) -> None:
    """Pause all tasks, the tasks of a domain, or selected tasks. Work in progress is completed."""
    _hold(context, choice.selection(), "pause", "paused", as_json)


@app.command()
@grouped
def stop(context: typer.Context, choice: TaskChoice, as_json: AsJson = False) -> None:
    """Pause tasks, and cancel work in progress."""
    _hold(context, choice.selection(), "stop", "stopped", as_json)


@app.command()
@grouped
def resume(context: typer.Context, choice: TaskChoice, as_json: AsJson = False) -> None:
    """End a hold on all tasks, on a domain, or on selected tasks; other holds stay."""
    _hold(context, choice.selection(), "resume", "resumed", as_json)


@app.command()
@grouped
def remove(
    context: typer.Context, choice: TaskChoice, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Stop tracking. Products, their history and the archive stay."""
    chosen = choice.selection()

    async def ask(tasks: Tasks) -> int:
        if not yes:
            confirm(f"Remove {counted(await tasks.count(chosen), 'task')}?", yes=yes)
        return await tasks.remove(chosen)

    removed, unknown = _beside_unknown(context, chosen, ask)
    _show_count("removed", removed, unknown, as_json)


@app.command("set")
@grouped
def set_(
    context: typer.Context,
    choice: TaskChoice,
    priority: int | None = option("Higher runs first.", min=0, max=9),
    every: str | None = option(
        "Recrawl interval: 30m, 6h, 1d, 1w; `default`: the domain's interval.", metavar="6h|default"
    ),
    popularity: float | None = option("Breaks ties between tasks: higher runs first."),
    retries: int | None = option("Retries of a visit.", min=0, max=1000),
    render: str | None = option(
        "Render pages in a browser: those without a price (auto), always, or never;"
        " `default`: the setting of the domain.",
        metavar="auto|always|never|default",
    ),
    as_json: AsJson = False,
) -> None:
    """Change the priority, interval, popularity, retries or rendering of tasks."""
    from forager.tasks.task import parse_every

    chosen = choice.selection()
    if all(given is None for given in (priority, every, popularity, retries, render)):
        raise InvalidInput(
            "nothing to set was given",
            hint="Give --priority, --every, --popularity, --retries or --render.",
        )
    default = every == "default"
    interval = None if every is None or default else parse_every(every)

    def set_terms(tasks: Tasks) -> Awaitable[int]:
        return tasks.set_terms(
            chosen, priority=priority, every=interval, default_every=default,
            popularity=popularity, max_retries=retries,
            render=None if render in (None, "default") else parse_render(render),
            default_render=render == "default",
        )  # fmt: skip

    changed, unknown = _beside_unknown(context, chosen, set_terms)
    _show_count("changed", changed, unknown, as_json)


def _beside_unknown(
    context: typer.Context, chosen: Selection, ask: Callable[[Tasks], Awaitable[Answer]]
) -> tuple[Answer, list[int]]:
    """The answer, and the numbers that named no task before it was given."""

    async def answer(here: CommandContext) -> tuple[Answer, list[int]]:
        unknown = await here.tasks.unknown(chosen)
        return await ask(here.tasks), unknown

    return with_services(context, answer)


def _hold(context: typer.Context, chosen: Selection, move: str, done: str, as_json: bool) -> None:
    from forager.tasks.holds import Holds

    def ask(tasks: Tasks) -> Awaitable[Held]:
        holds = Holds(tasks.database)
        moves = {"pause": holds.pause, "stop": holds.stop, "resume": holds.resume}
        return moves[move](chosen)

    held, unknown = _beside_unknown(context, chosen, ask)
    if as_json:
        show_json({**plain(held), "not_found": unknown})
    else:
        _show_held(held, chosen, done)
    _leave_if_unknown(unknown)


def _show_count(done: str, count: int, unknown: list[int], as_json: bool) -> None:
    if as_json:
        show_json({done: count, "not_found": unknown})
    else:
        say(f"{counted(count, 'task')} {done}")
    _leave_if_unknown(unknown)


def _show_recrawled(done: Recrawled) -> None:
    say(f"{counted(done.due, 'task')} due now")
    if done.held:
        are = "is" if done.held == 1 else "are"
        note(f"{done.held} of them {are} held: `forager tasks resume` lets them go.")
    if done.under_way:
        note(f"{counted(done.under_way, 'task')} already in progress.")


def _leave_if_unknown(ids: list[int]) -> None:
    leave_if_unknown(ids, "task", "`forager tasks list` shows those there are.")


def _show_held(held: Held, chosen: Selection, done: str) -> None:
    if chosen.is_everything:
        say(f"all tasks are {done}" if held.changed else f"all tasks were {done} already")
    elif chosen.is_domain_alone:
        say(f"the tasks of {chosen.domain} are {done}")
    else:
        say(f"{counted(held.changed, 'task')} {done}")
    if held.withdrawn:
        note(f"{counted(held.withdrawn, 'task')} canceled in the workers.")
    _note_other_holds(held)


def _note_other_holds(held: Held) -> None:
    holds = [f"all tasks are {held.all_hold}"] if held.all_hold else []
    if held.held_domains:
        holds.append(f"{counted(held.held_domains, 'domain')} held")
    if held.held_tasks:
        holds.append(f"{counted(held.held_tasks, 'task')} held individually")
    if holds:
        note(f"Now: {', '.join(holds)}.")
