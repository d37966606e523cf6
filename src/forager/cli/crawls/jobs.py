"""`forager jobs`: look at jobs and their history, and clean up old ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from forager.cli import output
from forager.cli.options import AsJson, JobId, Limit, Yes, flags_of, option
from forager.cli.output import counted, distance, duration, long_time, on_one_line
from forager.cli.running import CommandContext, answers, confirm, run, with_services
from forager.jobs.lifecycle import FINISHED, Status

if TYPE_CHECKING:
    from forager.crawl.report import CrawlReport
    from forager.jobs.job import Job, JobEvent
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


def shown_status(job: Job) -> tuple[str, str]:
    return job.shown_status, STYLES[job.shown_status]


@app.command("list")
def list_jobs(
    context: typer.Context,
    status: list[Status] | None = option("Only jobs in this state (repeatable)."),
    kind: str | None = option("Only jobs of this kind."),
    source: str | None = option("Only jobs of this source."),
    limit: Limit = 50,
    cursor: str | None = option("Return results after this cursor."),
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    page = with_services(
        context,
        lambda here: here.queue.list_jobs(
            statuses=status, kind=kind, source_id=source, cursor=cursor, limit=limit
        ),
    )
    if as_json:
        return output.show_page(page.items, page.next_cursor)
    if page.items:
        output.show_rows(_used_columns(page.items), page.items)
    filtered = bool(status or kind or source)
    return _say_what_is_missing(page.items, page.next_cursor, filtered=filtered)


def _note(job: Job) -> str:
    """What sets this job apart from others in its state."""
    if job.status not in FINISHED and job.retry_count:
        tried = f"retry {job.retry_count} of {job.max_retries}: "
    else:
        tried = ""
    text = job.error_message or (job.stop_reason if job.stop_reason != "finished" else "") or ""
    return on_one_line(tried + text)


_COLUMNS: output.Columns = {
    "ID": "id",
    "STATUS": shown_status,
    "KIND": "kind",
    "DONE>": lambda job: f"{job.progress_percentage} %",
    "CREATED": "created_at",
    "SOURCE…": lambda job: job.source_id or "",
    "NOTE…": _note,
}
_EVENT_COLUMNS: output.Columns = {
    "TIME": "at",
    "EVENT": "move",
    "STATUS": lambda event: (event.to_status, STYLES[event.to_status]),
    "LEASE>": "lease",
    "ACTOR": "actor",
    "REASON~": "reason",
}


def _used_columns(jobs: list[Job]) -> output.Columns:
    """Without columns that would be empty, because terminals are narrow."""
    return {
        heading: column
        for heading, column in _COLUMNS.items()
        if isinstance(column, str) or any(column(job) for job in jobs)
    }


def _say_what_is_missing(jobs: list[Job], cursor: str | None, *, filtered: bool) -> None:
    output.note_more(cursor)
    if jobs or cursor is not None:
        return
    if filtered:
        output.note("No jobs match. `forager jobs work` counts jobs by state.")
    else:
        output.note(
            "There are no jobs. `forager crawl URL` creates one, and so does `forager demo`."
        )


@app.command()
def show(context: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """Show one job in detail."""
    from forager.crawl.report import crawl_report
    from forager.db.database import open_database
    from forager.jobs.queue import Queue
    from forager.jobs.workers import job_report

    settings = flags_of(context).load()

    async def ask() -> tuple[JobReport, CrawlReport]:
        async with open_database(settings, name="forager cli") as database:
            queue = Queue(database, settings)
            found = await queue.resolve(job_id)
            report = await job_report(database, queue, found)
            return report, await crawl_report(database, queue, found)

    report, crawl = run(ask())
    if as_json:
        output.show_json(_document(report, crawl))
    else:
        _show_report(report, crawl)


def _document(report: JobReport, crawl: CrawlReport) -> dict[str, Any]:
    document: dict[str, Any] = output.plain(report)
    job: dict[str, Any] = document.pop("job")
    return job | document | {"waiting": crawl.wait.words if crawl.wait else None}


def _show_report(report: JobReport, crawl: CrawlReport) -> None:
    facts = _facts(report, crawl)
    output.show_table({"": {"style": "dim"}, " ": {"no_wrap": False}}, list(facts.items()))
    output.say("\nLast events", style="bold")
    output.show_rows(_EVENT_COLUMNS, report.last_events)


def _pace(crawl: CrawlReport) -> str | None:
    if crawl.pace is None:
        return None
    left = crawl.seconds_left
    return f"{crawl.pace:.1f} pages/s" + (f", about {duration(left)} left" if left else "")


def _facts(report: JobReport, crawl: CrawlReport) -> dict[str, Any]:
    import json

    job = report.job
    facts = {
        "id": job.id,
        "status": shown_status(job),
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
        "created": long_time(job.created_at),
        "runs after": long_time(job.run_after) if job.status is Status.PENDING else None,
        "first started": long_time(job.started_at),
        "last heartbeat": long_time(job.last_heartbeat),
        "finished": long_time(job.completed_at),
        "lease": job.lease,
        "worker": job.worker_id,
        "owner": job.user_id,
        "checkpoint": json.dumps(report.checkpoint) if report.checkpoint else None,
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}


@app.command()
def events(
    context: typer.Context,
    job_id: JobId,
    limit: Limit = 100,
    cursor: int = option("Return results after this cursor.", default=0, min=0),
    as_json: AsJson = False,
) -> None:
    """List a job's history, oldest first."""

    async def ask(queue: Queue) -> tuple[list[JobEvent], int | None]:
        found = await queue.resolve(job_id)
        page = await queue.events(found, after=cursor, limit=limit)
        cut = page and await queue.events(found, after=page[-1].id, limit=1)
        return page, page[-1].id if cut else None

    page, next_cursor = with_services(context, lambda here: ask(here.queue))
    if as_json:
        return output.show_page(page, next_cursor)
    if page:
        output.show_rows(_EVENT_COLUMNS, page)
    else:
        output.note("No events after this one.")
    return output.note_more(next_cursor)


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
def prune(
    context: typer.Context,
    older_than_days: float | None = option(
        "Delete jobs older than this many days.", min=0, max=36500, show_default="setting"
    ),
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete finished jobs that are old, with their history."""
    settings = flags_of(context).load()
    days = settings.prune_after_days if older_than_days is None else older_than_days
    confirm(f"Delete all finished jobs older than {days:g} days?", yes=yes)
    deleted = with_services(context, lambda here: here.queue.prune(older_than=days * 86400))
    if as_json:
        output.show_json({"deleted": deleted})
    else:
        output.say(f"{counted(deleted, 'job')} deleted")
