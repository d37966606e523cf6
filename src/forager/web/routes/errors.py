"""Errors of crawls and tasks, in groups and one by one, and tasks that failed permanently."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from forager.api.limits import RowId
from forager.api.services import CachedAnswer
from forager.crawl.reports.report import crawl_reports
from forager.crawl.settlement import Outcome
from forager.db.cursor import Page as Found
from forager.errors import ErrorKind, ForagerError, InvalidInput, NotFound
from forager.failures import service as errors
from forager.failures.cause import ErrorType
from forager.failures.service import ErrorFilter
from forager.jobs.job import Job
from forager.jobs.lifecycle import RETRY_FAILED
from forager.operations.models import LARGEST_BIGINT
from forager.tasks import dead_letters as letters
from forager.tasks.dead_letters import LetterFilter, LetterGroup
from forager.web.charts import Series
from forager.web.formats import counted, duration
from forager.web.forms import Form, Submitted
from forager.web.page import Done, WebPage, action, attempt, cached, new_router, page
from forager.web.visit import OperatorVisit, ReaderVisit, WebVisit

router = new_router()

GROUPS = 200
# parts of the time range in the chart
PARTS = 48
NEWEST_CRAWLS = 100
SHOWN_CRAWLS = 20
DAY = 24.0
AGES = (
    (1.0, "the last hour"),
    (DAY, "the last day"),
    (7 * DAY, "the last week"),
    (30 * DAY, "the last 30 days"),
)


@dataclass(slots=True)
class CauseSelection:
    """Dead letters of one kind and domain, which are retried or dismissed together."""

    kind: str
    domain: str
    count: int
    last_died: datetime
    messages: list[str]
    example_url: str


@page(router, "/errors")
async def overview(visit: ReaderVisit) -> WebPage:
    form = visit.asked
    groups, age = CachedAnswer(Found([], None), None), DAY
    problem: ForagerError | None = None
    try:
        age = form.amount("hours", most=87600) or DAY
        wanted = _wanted(visit, form)
        groups = await cached(
            visit, lambda: errors.group_errors(visit.database, wanted, **visit.paging)
        )
    except (InvalidInput, NotFound) as error:
        problem = error
    trend = await cached(visit, lambda: _trend(visit, form, age), "trend")
    waiting = await letters.count_letters(visit.database, letters.LetterFilter())
    dead = await cached(
        visit,
        lambda: letters.group_letters(visit.database, letters.LetterFilter(), limit=GROUPS),
        "letters",
        waiting,
    )
    return WebPage(
        "errors.html",
        trend=[Series("errors", trend.answer, "d")],
        trend_ticks=[f"{duration(age * 3600)} ago", *([""] * 2), "now"],
        trend_names=_part_names(age),
        crawls=await _failed_crawls(visit, age),
        groups=groups.answer,
        groups_at=groups.at,
        causes=by_cause(dead.answer),
        causes_at=dead.at,
        open_letters=waiting,
        causes_cut=len(dead.answer) == GROUPS,
        types=list(ErrorType),
        ages=AGES,
        age=age,
        problem=problem,
    )


@page(router, "/errors/list")
async def list_errors(visit: ReaderVisit) -> WebPage:
    found, problem = await attempt(
        lambda: errors.list_errors(visit.database, _wanted(visit, visit.asked), **visit.paging)
    )
    return WebPage("error_list.html", errors=found, problem=problem)


@page(router, "/errors/{error_id}")
async def show(visit: ReaderVisit, error_id: RowId) -> WebPage:
    owner = visit.caller.sees_only
    return WebPage(
        "error_one.html", error=await errors.get_error(visit.database, error_id, user_id=owner)
    )


@page(router, "/dead-letters")
async def list_letters(visit: ReaderVisit) -> WebPage:
    found, problem = await attempt(
        lambda: letters.list_letters(visit.database, _letters(visit.asked), **visit.paging)
    )
    return WebPage("dead_letters.html", letters=found, kinds=list(ErrorKind), problem=problem)


@action(router, "/dead-letters/resolve")
async def resolve(visit: OperatorVisit, form: Submitted) -> Done:
    """Retry or dismiss the selected dead letters, those of a cause, or all."""
    wanted = _meant(form)
    to = "/errors"
    if form.text("move") == "retry":
        done = await letters.retry_letters(visit.database, wanted)
        return Done(f"{counted(done, 'task')} retried.", to=to)
    if form.text("move") == "drop":
        done = await letters.drop_letters(visit.database, wanted)
        return Done(f"{counted(done, 'dead letter')} dismissed. The tasks stay failed.", to=to)
    raise InvalidInput("dead letters can be retried or dropped")


async def _trend(visit: WebVisit, form: Form, hours: float) -> list[int]:
    try:
        wanted = _wanted(visit, form)
        return await errors.error_trend(visit.database, wanted, timedelta(hours=hours), parts=PARTS)
    except (InvalidInput, NotFound):  # shown with the groups
        return [0] * PARTS


def _part_names(hours: float) -> list[str]:
    width = hours * 3600 / PARTS
    return [f"{duration(part * width)} ago" for part in range(PARTS, 0, -1)]


@dataclass(frozen=True, slots=True)
class FailedCrawl:
    """URLs of one crawl that failed for one reason."""

    job: Job
    reason: str
    urls: int
    can_retry: bool


async def _failed_crawls(visit: WebVisit, hours: float) -> list[FailedCrawl]:
    """Failed URLs of the newest crawls, the most frequent reason first."""
    since = datetime.now(UTC) - timedelta(hours=hours)
    newest = await visit.queue.list_jobs(
        kind="crawl", user_id=visit.caller.sees_only, limit=NEWEST_CRAWLS
    )
    jobs = [job for job in newest.items if (job.completed_at or datetime.now(UTC)) > since]
    reports = await crawl_reports(visit.database, [job.id for job in jobs])
    # only the newest generation of a source can be continued
    newest_of = {job.source_id: job.id for job in reversed(newest.items)}
    rows = [
        FailedCrawl(job, reason, urls, newest_of[job.source_id] == job.id and is_finished)
        for job in (report.job for report in reports.values())
        for is_finished in [job.status in RETRY_FAILED.sources]
        for reason, urls in reports[job.id].ledger.reasons_of(Outcome.FAILED)
    ]
    return sorted(rows, key=lambda row: -row.urls)[:SHOWN_CRAWLS]


def by_cause(groups: Iterable[LetterGroup]) -> list[CauseSelection]:
    """Merge groups that differ only in the message: retries select by kind and domain."""
    found: dict[tuple[str, str], CauseSelection] = {}
    for group in groups:
        key = (group.error_kind, group.domain)
        known = found.get(key)
        if known is None:
            found[key] = CauseSelection(
                *key, group.count, group.last_died, [group.message], group.example_url
            )
            continue
        known.count += group.count
        known.last_died = max(known.last_died, group.last_died)
        known.messages.append(group.message)
    return sorted(found.values(), key=lambda cause: -cause.count)


def _wanted(visit: WebVisit, form: Form) -> ErrorFilter:
    task_id = form.number("task", least=1, most=LARGEST_BIGINT)
    hours = form.amount("hours", most=87600) or (None if task_id else DAY)
    return errors.ErrorFilter(
        domain=form.optional("domain"),
        error_type=form.optional("type"),
        since=None if hours is None else timedelta(hours=hours),
        message=form.optional("message"),
        task_id=task_id,
        user_id=visit.caller.sees_only,
    )


def _letters(form: Form) -> LetterFilter:
    return letters.LetterFilter(cause=form.optional("cause"), domain=form.optional("domain"))


def _meant(form: Form) -> LetterFilter:
    """An empty selection must not select everything."""
    match form.text("which"):
        case "all":
            return letters.LetterFilter()
        case "cause" if form.text("cause") or form.text("domain"):
            return _letters(form)
        case "ticked" if ids := form.ids("id"):
            return letters.LetterFilter(ids=ids)
        case _:
            raise InvalidInput("no dead letter is selected", hint="Select at least one.")
