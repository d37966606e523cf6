"""`forager jobs pause|resume|cancel|retry|pages|workers`, beside the commands of `jobs`."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from forager.cli import output
from forager.cli.crawls.jobs import app
from forager.cli.failures import OK, complain
from forager.cli.options import AsJson, Cursor, JobId, JobIds, Limit, Reason, Yes, option
from forager.cli.output import (
    Columns,
    counted,
    note,
    on_one_line,
    show_rows,
)
from forager.cli.running import CommandContext, answers, confirm, lists, with_services
from forager.crawl.settlement import Outcome, UrlSort
from forager.errors import ForagerError

if TYPE_CHECKING:
    from forager.crawl.settlement import SettledUrl
    from forager.hints import Hint
    from forager.jobs.job import Job
    from forager.jobs.queue import Queue
    from forager.jobs.workers import Worker


Move = Callable[..., Coroutine[Any, Any, "Job"]]


@dataclass(frozen=True, slots=True)
class Moved:
    """The result for one id: the job after the move, or why it was refused."""

    asked: str
    job: Job | None
    error: str | None
    hint: str | Hint | None
    exit_code: int


@app.command()
def pause(
    context: typer.Context, job_ids: JobIds, reason: Reason = None, as_json: AsJson = False
) -> None:
    """Pause jobs. A running job commits its progress first; until then it is pausing."""
    _move_all(context, job_ids, lambda queue: queue.pause, reason, as_json=as_json)


@app.command()
def resume(
    context: typer.Context, job_ids: JobIds, reason: Reason = None, as_json: AsJson = False
) -> None:
    """Continue paused jobs from their last commit."""
    _move_all(context, job_ids, lambda queue: queue.resume, reason, as_json=as_json)


@app.command()
def cancel(
    context: typer.Context,
    job_ids: JobIds,
    reason: Reason = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Cancel jobs permanently; unpublished work is discarded."""
    if len(job_ids) > 1:
        confirm(f"Cancel {counted(len(job_ids), 'job')} permanently?", yes=yes)
    _move_all(context, job_ids, lambda queue: queue.cancel, reason, as_json=as_json)


@app.command()
def retry(
    context: typer.Context, job_ids: JobIds, reason: Reason = None, as_json: AsJson = False
) -> None:
    """Retry failed jobs from their last commit, with all their retries."""
    _move_all(context, job_ids, lambda queue: queue.retry, reason, as_json=as_json)


@app.command("retry-failed")
@answers(
    lambda done: f"{done.job.id} is {done.job.shown_status}: {counted(done.urls, 'URL')}",
    document=lambda done: {"job": done.job, "urls": done.urls},
)
async def retry_failed(
    here: CommandContext,
    job_id: JobId,
    reason: list[str] | None = option("Only URLs with this reason (repeatable)."),
) -> object:
    """Fetch the failed URLs of a finished crawl again, and publish them with its other pages."""
    from forager.access.caller import LOCAL
    from forager.crawl.admission import retry_failed as start

    job = await here.queue.resolve(job_id)
    return await start(here.database, here.settings, LOCAL, job, reason or ())


def _move_all(
    context: typer.Context,
    ids: list[str],
    choose: Callable[[Queue], Move],
    reason: str | None,
    *,
    as_json: bool,
) -> None:
    """Move each job, report on each, and leave with the worst exit code."""

    async def move_each(queue: Queue) -> list[Moved]:
        return [await _move_one(queue, choose(queue), text, reason) for text in ids]

    results = with_services(context, lambda here: move_each(here.queue))
    if as_json:
        output.show_page(results, None)
    for result in results:
        if result.error is not None:
            complain(result.error, result.hint)
        elif result.job is not None and not as_json:
            output.say(f"{result.job.id} is {result.job.shown_status}")
    worst = max(result.exit_code for result in results)
    if worst != OK:
        raise typer.Exit(worst)


async def _move_one(queue: Queue, move: Move, text: str, reason: str | None) -> Moved:
    try:
        job = await move(await queue.resolve(text), actor=_person(), reason=reason)
    except ForagerError as error:
        return Moved(text, None, error.message, error.hint, error.exit_code)
    return Moved(text, job, None, None, OK)


def _person() -> str:
    """Who did it, for the job's history."""
    try:
        return f"user {getpass.getuser()}"
    except (OSError, KeyError):  # a container's user may have no name
        return "user"


_PAGE_COLUMNS: Columns = {
    "OUTCOME": "outcome",
    "HTTP>": "http_status",
    "WHY…": lambda each: on_one_line(each.detail or each.reason or ""),
    "URL…": "url",
}


def _row(page: SettledUrl) -> dict[str, Any]:
    from forager.crawl.export import row_of

    return row_of(page)


@app.command()
@lists(_PAGE_COLUMNS, none="No URLs match.", document=_row)
async def pages(
    here: CommandContext,
    job_id: JobId,
    outcome: list[Outcome] | None = option("Only URLs with this outcome (repeatable)."),
    reason: str | None = option("Only URLs with this reason."),
    status: int | None = option("Only URLs with this HTTP status."),
    contains: str | None = option("Only URLs that contain this text."),
    sort: UrlSort | None = option("Sort up to 100,000 URLs."),
    reverse: bool = option("Largest or newest first.", "--reverse", default=False),
    limit: Limit = 50,
    cursor: Cursor = None,
) -> object:
    """List the outcomes of the URLs of a job."""
    from forager.crawl.url_lists import UrlFilter, list_settled
    from forager.jobs.queue import Queue

    job = await Queue(here.database, here.settings).resolve(job_id)
    wanted = UrlFilter(
        outcomes=tuple(outcome or Outcome), reason=reason, http_status=status, text=contains
    )
    return await list_settled(
        here.database, job, wanted, sort=sort, descending=reverse, cursor=cursor, limit=limit
    )


_WORKER_COLUMNS: Columns = {
    "ID": "id",
    "ROLE": "role",
    "STATE": "state",
    "REGION": "region",
    "RENDERS": lambda each: "yes" if each.renders else "",
    "HOST": "host",
    "PID>": "pid",
    "SEEN": "last_seen",
    "NOTE": "note",
}


def _show_workers(found: Sequence[Worker]) -> None:
    if not found:
        return note("There are no workers. `forager worker` or `forager up` runs one.")
    return show_rows(_WORKER_COLUMNS, found)


@app.command()
@answers(_show_workers, document=lambda found: {"items": found})
async def workers(here: CommandContext) -> object:
    """List workers that are or recently were active."""
    from forager.jobs.workers import list_workers

    return await list_workers(here.database)


__all__ = ["app"]
