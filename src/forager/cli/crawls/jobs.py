"""`forager jobs`: list, inspect, pause, resume, cancel, retry and prune jobs."""

from __future__ import annotations

import getpass
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import typer

from forager.cli import output
from forager.cli.failures import OK, print_error
from forager.cli.options import Cursor, JobId, JobIds, Limit, Reason, Yes, option, switch
from forager.cli.output import Columns, counted, distance, duration, on_one_line
from forager.cli.running import CommandContext, answers, confirm, lists
from forager.crawl.settlement import Outcome, UrlSort
from forager.db.cursor import Page
from forager.errors import ForagerError
from forager.hints import Hint
from forager.jobs.job import Job
from forager.jobs.lifecycle import FINISHED, Status

if TYPE_CHECKING:
    from forager.crawl.report import CrawlReport
    from forager.crawl.settlement import SettledUrl
    from forager.jobs.queue import Queue
    from forager.jobs.workers import JobReport

app = typer.Typer(help="List, pause, resume, cancel and retry jobs.", no_args_is_help=True)

STYLES = {
    "pending": "",
    "processing": "cyan",
    "completed": "green",
    "failed": "red",
    "cancelled": "dim",
    "paused": "yellow",
    "pausing": "yellow",
}


def _status(job: Job) -> tuple[str, str]:
    return job.shown_status, STYLES[job.shown_status]


@dataclass(frozen=True, slots=True)
class _ListedJob:
    job: Job
    # what an active crawl waits for: a host, its robots.txt or a retry, but not a worker
    wait: str | None

    @property
    def note(self) -> str:
        job, retried = self.job, ""
        if job.status not in FINISHED and job.retry_count:
            retried = f"retry {job.retry_count} of {job.max_retries}: "
        text = job.error_message or (job.stop_reason if job.stop_reason != "finished" else "") or ""
        return "; ".join(filter(None, (retried + text, self.wait)))


_COLUMNS: Columns = {
    "ID": "job.id",
    "STATUS": lambda listed: _status(listed.job),
    "KIND": "job.kind",
    "DONE>": lambda listed: f"{listed.job.progress_percentage} %",
    "CREATED": "job.created_at",
    # terminals are narrow
    "SOURCE…?": "job.source_id",
    "NOTE…?": "note",
}
_EVENT_COLUMNS: Columns = {
    "TIME": "at",
    "EVENT": "move",
    "STATUS": lambda event: (event.to_status, STYLES[event.to_status]),
    "LEASE>": "lease",
    "ACTOR": "actor",
    "REASON~": "reason",
}


@app.command("list")
@lists(
    _COLUMNS,
    none="There are no jobs. `forager crawl URL` creates one, and so does `forager demo`.",
    no_match="No jobs match. `forager jobs work` counts jobs by state.",
    document=lambda listed: listed.job,
)
async def list_jobs(
    here: CommandContext,
    status: list[Status] | None = option("Only jobs in this state (repeatable)."),
    kind: str | None = option("Only jobs of this kind."),
    source: str | None = option("Only jobs of this source."),
    limit: Limit = 50,
    cursor: Cursor = None,
) -> object:
    """List jobs, newest first."""
    page = await here.queue.list_jobs(
        statuses=status, kind=kind, source_id=source, cursor=cursor, limit=limit
    )
    waits = await _waits(here, page.items)
    jobs = [_ListedJob(job, waits.get(job.id)) for job in page.items]
    return Page(jobs, page.next_cursor)


async def _waits(here: CommandContext, jobs: Sequence[Job]) -> dict[UUID, str]:
    active = [job.id for job in jobs if job.status in (Status.PENDING, Status.PROCESSING)]
    if not active:
        return {}
    from forager.crawl.report import crawl_reports

    reports = await crawl_reports(here.database, active)
    return {
        job_id: report.wait.words
        for job_id, report in reports.items()
        if report.wait and (report.wait.seconds or report.job.status is Status.PROCESSING)
    }


def _show_report(reports: tuple[JobReport, CrawlReport]) -> None:
    output.show_facts(_facts(*reports))
    output.say("\nLast events", style="bold")
    output.show_rows(_EVENT_COLUMNS, reports[0].last_events)


def _document(reports: tuple[JobReport, CrawlReport]) -> dict[str, Any]:
    report, crawl = reports
    document: dict[str, Any] = output.plain(report)
    job: dict[str, Any] = document.pop("job")
    return job | document | {"waiting": crawl.wait.words if crawl.wait else None}


@app.command()
@answers(_show_report, document=_document)
async def show(here: CommandContext, job_id: JobId) -> object:
    """Show one job in detail."""
    from forager.crawl.report import crawl_report
    from forager.jobs.workers import job_report

    found = await here.queue.resolve(job_id)
    report = await job_report(here.database, here.queue, found)
    return report, await crawl_report(here.database, here.queue, found)


def _pace(crawl: CrawlReport) -> str | None:
    if crawl.pace is None:
        return None
    left = crawl.seconds_left
    return f"{crawl.pace:.1f} pages/s" + (f", about {duration(left)} left" if left else "")


def _facts(report: JobReport, crawl: CrawlReport) -> dict[str, Any]:
    job = report.job
    return {
        "id": job.id,
        "status": _status(job),
        "kind": job.kind,
        "source": job.source_id,
        "payload": json.dumps(job.payload, ensure_ascii=False),
        "progress": f"{job.progress_percentage} %, {report.total_processed} done,"
        f" {report.total_pending} to do",
        "pace": _pace(crawl),
        "waiting": crawl.wait.words if crawl.wait else None,
        "priority": job.priority,
        "region": f"{job.region}: only its workers run it" if job.region else None,
        "retries": f"{job.retry_count} of {job.max_retries}",
        "error": (job.error_message, "red") if job.error_message else None,
        "stop reason": job.stop_reason,
        "created": job.created_at,
        "runs after": job.run_after if job.status is Status.PENDING else None,
        "first started": job.started_at,
        "last heartbeat": job.last_heartbeat,
        "finished": job.completed_at,
        "lease": job.lease,
        "worker": job.worker_id,
        "owner": job.user_id,
        "checkpoint": json.dumps(report.checkpoint) if report.checkpoint else None,
    }


@app.command()
@lists(_EVENT_COLUMNS, none="No events after this one.")
async def events(
    here: CommandContext,
    job_id: JobId,
    limit: Limit = 100,
    cursor: int = option("Return results after this cursor.", default=0, min=0),
) -> object:
    """List a job's history, oldest first."""
    found = await here.queue.resolve(job_id)
    page = await here.queue.events(found, after=cursor, limit=limit)
    more = page and await here.queue.events(found, after=page[-1].id, limit=1)
    return Page(page, str(page[-1].id) if more else None)


def _show_work(answer: dict[str, Any]) -> None:
    left = {row.status: row for row in answer["pending_work"]}
    rows = [
        (
            (status.value, STYLES[status]),
            count,
            left[status].total_pending if status in left else "",
            distance(left[status].oldest) if status in left else "",
        )
        for status, count in answer["counts"].items()
    ]
    output.show_table("STATUS, JOBS>, WORK LEFT>, OLDEST", rows)


@app.command()
@answers(_show_work)
async def work(here: CommandContext) -> object:
    """Count jobs by state, with their remaining work."""
    queue = here.queue
    return {"counts": await queue.counts(), "pending_work": await queue.pending_work()}


@app.command()
@answers(lambda done: f"{counted(done['deleted'], 'job')} deleted")
async def prune(
    here: CommandContext,
    older_than_days: float | None = option(
        "Delete jobs older than this many days.", min=0, max=36500, show_default="setting"
    ),
    yes: Yes = False,
) -> object:
    """Delete finished jobs that are old, with their history."""
    days = here.settings.prune_after_days if older_than_days is None else older_than_days
    confirm(f"Delete all finished jobs older than {days:g} days?", yes=yes)
    return {"deleted": await here.queue.prune(older_than=days * 86400)}


@dataclass(frozen=True, slots=True)
class Moved:
    """The result for one given ID: the job after the move, or the error."""

    asked: str
    job: Job | None = None
    error: str | None = None
    hint: str | Hint | None = None
    exit_code: int = OK


def _show_moved(results: Sequence[Moved]) -> None:
    for result in results:
        if result.job is not None:
            output.say(f"{result.job.id} is {result.job.shown_status}")


def _exit_with_worst(results: Sequence[Moved]) -> None:
    for result in results:
        if result.error is not None:
            print_error(result.error, result.hint)
    if worst := max(result.exit_code for result in results):
        raise typer.Exit(worst)


moves_jobs = answers(
    _show_moved,
    document=lambda results: {"items": results, "next_cursor": None},
    then=_exit_with_worst,
)


async def _move_each(
    queue: Queue, move: Callable[..., Awaitable[Job]], ids: Sequence[str], reason: str | None
) -> list[Moved]:
    try:
        actor = f"user {getpass.getuser()}"
    except (OSError, KeyError):  # a container's user may have no name
        actor = "user"
    results = []
    for text in ids:
        try:
            job = await move(await queue.resolve(text), actor=actor, reason=reason)
            results.append(Moved(text, job))
        except ForagerError as error:
            results.append(Moved(text, None, error.message, error.hint, error.exit_code))
    return results


@app.command()
@moves_jobs
async def pause(here: CommandContext, job_ids: JobIds, reason: Reason = None) -> object:
    """Pause jobs. A running job commits its progress first; until then it is pausing."""
    return await _move_each(here.queue, here.queue.pause, job_ids, reason)


@app.command()
@moves_jobs
async def resume(here: CommandContext, job_ids: JobIds, reason: Reason = None) -> object:
    """Continue paused jobs from their last commit."""
    return await _move_each(here.queue, here.queue.resume, job_ids, reason)


@app.command()
@moves_jobs
async def cancel(
    here: CommandContext, job_ids: JobIds, reason: Reason = None, yes: Yes = False
) -> object:
    """Cancel jobs permanently; unpublished work is discarded."""
    if len(job_ids) > 1:
        confirm(f"Cancel {counted(len(job_ids), 'job')} permanently?", yes=yes)
    return await _move_each(here.queue, here.queue.cancel, job_ids, reason)


@app.command()
@moves_jobs
async def retry(here: CommandContext, job_ids: JobIds, reason: Reason = None) -> object:
    """Retry failed jobs from their last commit, with all their retries."""
    return await _move_each(here.queue, here.queue.retry, job_ids, reason)


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
    reverse: bool = switch("Largest or newest first.", "--reverse"),
    limit: Limit = 50,
    cursor: Cursor = None,
) -> object:
    """List the outcomes of the URLs of a job."""
    from forager.crawl.url_lists import UrlFilter, list_settled

    job = await here.queue.resolve(job_id)
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


@app.command()
@answers(
    _WORKER_COLUMNS,
    none="There are no workers. `forager worker` or `forager up` runs one.",
    document=lambda found: {"items": found},
)
async def workers(here: CommandContext) -> object:
    """List workers that are or recently were active."""
    from forager.jobs.workers import list_workers

    return await list_workers(here.database, here.settings)
