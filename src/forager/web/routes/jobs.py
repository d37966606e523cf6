"""Jobs: the list, the page of a job, its URLs and exports, and actions on jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from forager.api.routes.jobs import export_file
from forager.api.streams import download, response_file
from forager.archive.options import archive_options
from forager.crawl.export import Export, export_size, export_stream
from forager.crawl.ledger import Ledger
from forager.crawl.options import ExportFormat
from forager.crawl.report import crawl_report
from forager.crawl.settlement import Outcome, SettledUrl, UrlSort
from forager.crawl.url_lists import (
    UrlFilter,
    can_sort,
    list_pending,
    list_settled,
    read_response_of,
)
from forager.db.cursor import Page as Rows
from forager.errors import InvalidInput
from forager.jobs import job as bulk
from forager.jobs.history import AMONG, find_jobs
from forager.jobs.job import Job, Move
from forager.jobs.lifecycle import Status
from forager.web.formats import counted
from forager.web.forms import Form, Submitted
from forager.web.job_view import load_job, moves_of
from forager.web.page import Done, Page, action, attempt, new_router, order_of, page
from forager.web.responses import shown_response
from forager.web.visit import PAGE_SIZE, Operates, Reads, Visit

router = new_router()

FORMATS = {
    ExportFormat.WARC: "WARC",
    ExportFormat.JSONL: "JSONL",
    ExportFormat.PARQUET: "Parquet",
    ExportFormat.MARKDOWN: "Markdown",
}


@dataclass(eq=False)
class RunningExport:
    """A download that is being sent, and how much of it was written."""

    job_id: UUID
    format: str
    total: int
    done: int = 0

    def advance(self, number: int) -> None:
        self.done += number

    @property
    def share(self) -> float:
        return self.done / max(1, self.total)


# the downloads of this process
EXPORTS: list[RunningExport] = []

EVENTS = 100

Text = Annotated[str, Query(max_length=500)]
Cursor = Annotated[str | None, Query(max_length=1000)]


@page(router, "/jobs")
async def list_jobs(visit: Reads, status: Text = "", q: Text = "", cursor: Cursor = None) -> Page:
    state = next((each for each in Status if each == status), None)
    found = await _found(visit, state, q.strip())
    counts = await visit.queue.counts(user_id=visit.caller.sees_only)
    return Page(
        "jobs.html",
        jobs=found,
        moves={job.id: moves_of(job) for job in found.items},
        counts=counts,
        total=sum(counts.values()) if state is None else counts[state],
        status=status,
        q=q.strip(),
        among=AMONG,
        here=visit.with_query(cursor=cursor or ""),
        is_first=cursor is None,
    )


@action(router, "/jobs/bulk")
async def move_many(visit: Operates, form: Submitted) -> Done:
    ids = [_job_id(text) for text in form.texts("id")]
    move = _move(form)
    moved = await bulk.move_each(ids, lambda job_id: visit.move_job(job_id, move))
    refused = [each.error for each in moved if each.error is not None]
    text = f"{counted(len(moved) - len(refused), 'job')}: {move} done."
    if refused:
        text += f" {counted(len(refused), 'job')} refused: {refused[0].message}."
    kept = {name: form.text(name) for name in ("status", "q") if form.text(name)}
    to = f"/jobs?{urlencode(kept)}" if kept else "/jobs"
    return Done(text, to=to, failed=bool(refused))


@page(router, "/jobs/{job_id}")
async def show(visit: Reads, job_id: UUID) -> Page:
    job = await visit.get_job(job_id)
    view = await load_job(visit, job)
    built = view.report.generation
    formats = [
        (format_.value, name)
        for format_, name in FORMATS.items()
        if format_ is not ExportFormat.MARKDOWN or (built is not None and built.is_complete)
    ]
    exports = [each for each in EXPORTS if each.job_id == job_id]
    return Page("job.html", view=view, formats=formats, exports=exports)


@router.get("/jobs/{job_id}/export", response_model=None)
async def export(
    visit: Reads,
    job_id: UUID,
    format_: Annotated[ExportFormat, Query(alias="format")] = ExportFormat.JSONL,
) -> Response:
    await visit.get_job(job_id)
    wanted = Export(format=format_)
    total = await export_size(visit.database, job_id, wanted)
    running = RunningExport(job_id, FORMATS[format_], total)
    storage = archive_options(visit.settings).open()
    parts = export_stream(visit.database, storage, job_id, wanted, running.advance)
    return await download(_shown(running, parts), *export_file(job_id, format_))


async def _shown(running: RunningExport, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Send the parts of an export; meanwhile the page of the job shows its progress."""
    EXPORTS.append(running)
    try:
        async for part in parts:
            yield part
    finally:
        EXPORTS.remove(running)


PENDING = "pending"
FILTERS = ("path", "reason", "status", "min_size", "minutes")
SINCE = ((1.0, "the last minute"), (60.0, "the last hour"), (1440.0, "the last day"))


@page(router, "/jobs/{job_id}/pages")
async def pages(visit: Reads, job_id: UUID) -> Page:
    form = visit.asked
    await visit.get_job(job_id)
    report = await crawl_report(visit.database, visit.queue, job_id)
    if form.text("outcome") == PENDING:
        urls: dict[str, object] = {
            "urls": await list_pending(visit.database, job_id, **visit.paging)
        }
    else:
        urls = await _processed(visit, job_id, form)
    return Page(
        "job_pages.html",
        job=report.job,
        ledger=report.ledger,
        outcome=form.text("outcome"),
        outcomes=list(Outcome),
        reasons=_reasons(report.ledger, form.text("outcome")),
        since=SINCE,
        narrowed=any(form.text(name) for name in FILTERS),
        base=f"/jobs/{job_id}/pages",
        **urls,
    )


async def _processed(visit: Visit, job_id: UUID, form: Form) -> dict[str, object]:
    order = order_of(visit, UrlSort)

    async def load() -> Rows[SettledUrl]:
        nonlocal order
        wanted = _url_filter(form)
        possible = await can_sort(visit.database, job_id, wanted)
        order = order_of(visit, UrlSort, is_possible=possible)
        return await list_settled(
            visit.database,
            job_id,
            wanted,
            sort=UrlSort(order.name) if order.name else None,
            descending=order.descending,
            **visit.paging,
        )

    found, trouble = await attempt(load)
    return {"pages": found, "order": order, "trouble": trouble}


def _url_filter(form: Form) -> UrlFilter:
    minutes = form.amount("minutes", most=525_600)
    size = form.number("min_size", most=10**6)
    return UrlFilter(
        outcomes=[each for each in Outcome if each == form.text("outcome")] or tuple(Outcome),
        reason=form.optional("reason"),
        http_status=form.number("status", most=999),
        text=form.text("path")[:2000] or None,
        min_size=None if size is None else size * 1000,
        since=None if minutes is None else datetime.now(UTC) - timedelta(minutes=minutes),
    )


def _reasons(ledger: Ledger, outcome: str) -> list[str]:
    """The reasons that URLs with this outcome have, or with any outcome."""
    wanted = [each for each in Outcome if each == outcome] or list(Outcome)
    return sorted({reason for each in wanted for reason, _ in ledger.reasons_of(each)})


UrlText = Annotated[str, Query(max_length=10_000)]


@page(router, "/jobs/{job_id}/response")
async def response(visit: Reads, job_id: UUID, url: UrlText) -> Page:
    job = await visit.get_job(job_id)
    stored = await read_response_of(visit.database, visit.settings, job_id, url)
    return Page("job_response.html", job=job, url=url, stored=shown_response(stored))


@router.get("/jobs/{job_id}/response/file", response_model=None)
async def response_body(visit: Reads, job_id: UUID, url: UrlText) -> Response:
    await visit.get_job(job_id)
    stored = await read_response_of(visit.database, visit.settings, job_id, url)
    return response_file(stored.body, "response.bin")


@page(router, "/jobs/{job_id}/events")
async def events(
    visit: Reads, job_id: UUID, after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0
) -> Page:
    job = await visit.get_job(job_id)
    found = await visit.queue.events(job_id, after=after, limit=EVENTS)
    more = f"/jobs/{job_id}/events?after={found[-1].id}" if len(found) == EVENTS else None
    return Page("job_events.html", job=job, events=found, next_url=more)


@action(router, "/jobs/{job_id}/move")
async def move_one(visit: Operates, form: Submitted, job_id: UUID) -> Done:
    job = await visit.move_job(job_id, _move(form))
    return Done(f"{job.source_id or 'The job'} is {job.shown_status} now.", to=f"/jobs/{job_id}")


@action(router, "/jobs/{job_id}/retry-failed")
async def retry_failed(visit: Operates, form: Submitted, job_id: UUID) -> Done:
    done = await visit.retry_failed(job_id, form.texts("reason"))
    return Done(f"{counted(done.urls, 'URL')} will be fetched again.", to=f"/jobs/{job_id}")


async def _found(visit: Visit, status: Status | None, text: str) -> Rows[Job]:
    statuses = None if status is None else [status]
    owner = visit.caller.sees_only
    if not text:
        return await visit.queue.list_jobs(statuses=statuses, user_id=owner, **visit.paging)
    found = await find_jobs(visit.database, text, statuses=statuses, user_id=owner, limit=PAGE_SIZE)
    return Rows(found, None)


def _move(form: Form) -> Move:
    try:
        return Move(form.text("move"))
    except ValueError:
        raise InvalidInput(f"a job can be moved by {', '.join(Move)}") from None


def _job_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput("this is not the id of a job") from None
