"""Jobs: the list, the page of a job, its URLs and exports, and actions on jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from forager.api.routes.jobs import export_file
from forager.api.streams import download, response_file
from forager.archive.options import archive_options
from forager.crawl import admission
from forager.crawl.ledger import Ledger
from forager.crawl.reports.report import CrawlReport, crawl_report, crawl_reports, waits_in
from forager.crawl.results.export import CrawlExport, CrawlExportFormat, export_size, export_stream
from forager.crawl.results.url_lists import (
    UrlFilter,
    can_sort,
    count_by_outcome,
    list_pending,
    list_settled,
    read_response_of,
)
from forager.crawl.settlement import Outcome, SettledUrl, UrlSort
from forager.db.cursor import Page as Rows
from forager.documents.reader import lists_page
from forager.documents.sources import generations_of_jobs
from forager.errors import InvalidInput
from forager.jobs import job as bulk
from forager.jobs.history import SEARCHED_JOBS, count_found, find_jobs
from forager.jobs.job import Job, JobFilters, Move
from forager.jobs.lifecycle import Status
from forager.jobs.summary import JobActivity, summarize_jobs
from forager.web.formats import counted
from forager.web.forms import Form, Submitted
from forager.web.job_view import load_job, moves_of
from forager.web.page import Done, WebPage, action, attempt, new_router, order_of, page
from forager.web.responses import shown_response
from forager.web.visit import PAGE_SIZE, OperatorVisit, ReaderVisit, WebVisit

router = new_router()

FORMATS = {
    CrawlExportFormat.WARC: "WARC",
    CrawlExportFormat.JSONL: "JSONL",
    CrawlExportFormat.PARQUET: "Parquet",
    CrawlExportFormat.MARKDOWN: "Markdown",
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

FILTERS = ("status", "q", "host", "activity")
Cursor = Annotated[str | None, Query(max_length=1000)]


@page(router, "/jobs")
async def list_jobs(visit: ReaderVisit, cursor: Cursor = None) -> WebPage:
    owner, form = visit.caller.sees_only, visit.asked
    filters = _filters(form, owner)
    found = await _found(visit, form.text("q"), filters)
    narrowed = any(form.text(name) for name in ("q", "host", "activity"))
    counts = await (
        count_found(visit.database, form.text("q"), filters)
        if narrowed
        else visit.queue.counts(user_id=owner)
    )
    states = filters["statuses"] or list(Status)
    reports = await crawl_reports(visit.database, [job.id for job in found.items])
    return WebPage(
        "jobs.html",
        jobs=found,
        moves={job.id: moves_of(job) for job in found.items},
        built=await generations_of_jobs(visit.database, [job.id for job in found.items]),
        reports=reports,
        waits=waits_in(reports),
        counts=counts,
        total=None if narrowed else sum(counts[state] for state in states),
        summary=await summarize_jobs(visit.database, user_id=owner),
        activities=list(JobActivity),
        status=form.text("status"),
        q=form.text("q"),
        host=form.text("host"),
        activity=form.text("activity"),
        narrowed=narrowed,
        among=SEARCHED_JOBS,
        here=visit.with_query(cursor=cursor or ""),
        is_first=cursor is None,
    )


@action(router, "/jobs/bulk")
async def move_many(visit: OperatorVisit, form: Submitted) -> Done:
    ids = [_job_id(text) for text in form.texts("id")]
    move = _move(form)
    moved = await bulk.move_each(
        ids, lambda job_id: admission.move_job(visit.context, job_id, move)
    )
    refused = [each.error for each in moved if each.error is not None]
    text = f"{counted(len(moved) - len(refused), 'job')}: {move} done."
    if refused:
        text += f" {counted(len(refused), 'job')} refused: {refused[0].message}."
    kept = {name: form.text(name) for name in FILTERS if form.text(name)}
    to = f"/jobs?{urlencode(kept)}" if kept else "/jobs"
    return Done(text, to=to, failed=bool(refused))


@page(router, "/jobs/{job_id}")
async def show(visit: ReaderVisit, job_id: UUID) -> WebPage:
    job = await admission.get_job(visit.context, job_id)
    view = await load_job(visit, job)
    built = view.report.generation
    formats = [
        (format_.value, name)
        for format_, name in FORMATS.items()
        if format_ is not CrawlExportFormat.MARKDOWN or (built is not None and built.is_complete)
    ]
    exports = [each for each in EXPORTS if each.job_id == job_id]
    return WebPage("job.html", view=view, formats=formats, exports=exports)


@router.get("/jobs/{job_id}/export", response_model=None)
async def export(
    visit: ReaderVisit,
    job_id: UUID,
    format_: Annotated[CrawlExportFormat, Query(alias="format")] = CrawlExportFormat.JSONL,
) -> Response:
    await admission.get_job(visit.context, job_id)
    wanted = CrawlExport(format=format_)
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
URL_FILTERS = ("path", "reason", "status", "min_size", "minutes")
SINCE = ((1.0, "the last minute"), (60.0, "the last hour"), (1440.0, "the last day"))


@page(router, "/jobs/{job_id}/pages")
async def pages(visit: ReaderVisit, job_id: UUID) -> WebPage:
    form = visit.asked
    await admission.get_job(visit.context, job_id)
    report = await crawl_report(visit.database, visit.queue, job_id)
    if form.text("outcome") == PENDING:
        urls: dict[str, object] = {
            "urls": await list_pending(visit.database, job_id, **visit.paging)
        }
    else:
        urls = await _processed(visit, job_id, form)
    return WebPage(
        "job_pages.html",
        job=report.job,
        ledger=report.ledger,
        outcome=form.text("outcome"),
        outcomes=list(Outcome),
        reasons=_reasons(report.ledger, form.text("outcome")),
        since=SINCE,
        narrowed=any(form.text(name) for name in URL_FILTERS),
        counts=await _counts(visit, report, form),
        tab_url=lambda outcome: visit.with_query(outcome=outcome),
        base=f"/jobs/{job_id}/pages",
        **urls,
    )


async def _counts(visit: WebVisit, report: CrawlReport, form: Form) -> dict[Outcome, int] | None:
    """URLs by outcome that match the other filters; None if they are too many to count."""
    if not any(form.text(name) for name in URL_FILTERS):
        return report.ledger.settled
    with suppress(InvalidInput):  # the list shows what is wrong with the filters
        wanted = replace(_url_filter(form), outcomes=tuple(Outcome))
        return await count_by_outcome(visit.database, report.job.id, wanted)
    return None


async def _processed(visit: WebVisit, job_id: UUID, form: Form) -> dict[str, object]:
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

    found, problem = await attempt(load)
    return {"pages": found, "order": order, "problem": problem}


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
async def response(visit: ReaderVisit, job_id: UUID, url: UrlText) -> WebPage:
    job = await admission.get_job(visit.context, job_id)
    stored = await read_response_of(visit.database, visit.settings, job_id, url)
    built = (await generations_of_jobs(visit.database, [job_id])).get(job_id)
    is_listed = (
        built is not None and built.is_complete and await lists_page(visit.database, built, url)
    )
    return WebPage(
        "job_response.html",
        job=job,
        url=url,
        stored=shown_response(stored),
        generation=built if is_listed else None,
    )


@router.get("/jobs/{job_id}/response/file", response_model=None)
async def response_body(visit: ReaderVisit, job_id: UUID, url: UrlText) -> Response:
    await admission.get_job(visit.context, job_id)
    stored = await read_response_of(visit.database, visit.settings, job_id, url)
    return response_file(stored.body, "response.bin")


@page(router, "/jobs/{job_id}/events")
async def events(
    visit: ReaderVisit, job_id: UUID, after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0
) -> WebPage:
    job = await admission.get_job(visit.context, job_id)
    found = await visit.queue.events(job_id, after=after, limit=EVENTS)
    more = f"/jobs/{job_id}/events?after={found[-1].id}" if len(found) == EVENTS else None
    return WebPage("job_events.html", job=job, events=found, next_url=more)


@action(router, "/jobs/{job_id}/move")
async def move_one(visit: OperatorVisit, form: Submitted, job_id: UUID) -> Done:
    job = await admission.move_job(visit.context, job_id, _move(form))
    return Done(f"{job.source_id or 'The job'} is {job.shown_status} now.", to=f"/jobs/{job_id}")


@action(router, "/jobs/{job_id}/retry-failed")
async def retry_failed(visit: OperatorVisit, form: Submitted, job_id: UUID) -> Done:
    done = await admission.retry_failed(visit.context, job_id, form.texts("reason"))
    return Done(f"{counted(done.urls, 'URL')} will be fetched again.", to=f"/jobs/{job_id}")


def _filters(form: Form, owner: UUID | None) -> JobFilters:
    """The filters of the list; values that do not exist are ignored."""
    return {
        "statuses": [each for each in Status if each == form.text("status")],
        "host": form.text("host").lower() or None,
        "activity": next((each for each in JobActivity if each == form.text("activity")), None),
        "user_id": owner,
    }


async def _found(visit: WebVisit, text: str, filters: JobFilters) -> Rows[Job]:
    if not text:
        return await visit.queue.list_jobs(**filters, **visit.paging)
    return Rows(await find_jobs(visit.database, text, limit=PAGE_SIZE, **filters), None)


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
