"""The outcome of a URL, the reason, and whether it would be fetched now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

from forager.amounts import rounded_time
from forager.archive.storage import Storage
from forager.crawl.explain import store
from forager.crawl.explain.outlook import Outlook, outlook
from forager.crawl.frontier.seeding import scope_of
from forager.crawl.options import CrawlOptions, crawl_options
from forager.crawl.reports.report import workers_awaited
from forager.crawl.settlement import Outcome, PastOutcome, UrlRecord
from forager.crawl.visit.rendering import domain_of
from forager.db.database import Connection, Database
from forager.documents.page import CarriedPage
from forager.documents.reader import select_carried_page, select_near_duplicates
from forager.documents.visibility import PageVisibility, page_visibility
from forager.errors import InvalidInput, NotFound
from forager.extract.keys import url_key
from forager.extract.urls import (
    NormalizedUrl,
    Refusal,
    explain_normalization,
    normalize,
    with_scheme,
)
from forager.fetch.response import agent_header
from forager.hints import Hint
from forager.jobs.job import Job
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.settings import Settings
from forager.settings.crawling import RenderMode
from forager.tasks.service import Tasks

if TYPE_CHECKING:
    from forager.documents.archived import PageContent

NEAR_SHOWN = 5
# of each source
RECENT_CRAWLS = 10
# crawls of other hosts in which a URL may wait: their frontiers have no index by URL
_READ_FRONTIERS = 50
MAX_ANCESTORS = 200
NEVER_SEEN = "never seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedAs:
    """The task of a URL, why it is not running now, and the outcome of its last visit."""

    task_id: int
    status: str
    why: str | Hint
    next_at: datetime | None
    last_attempt: str | None = None
    last_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RedirectStep:
    """One URL on the way to another, and what led to it."""

    url: str
    via: str


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """The number of pages with nearly the same text as one, and the first of them."""

    pages: int
    urls: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The outcome of a URL, the reason, and whether it would be fetched now."""

    url: str
    normalized: str
    # how the given URL was normalized
    steps: list[str]
    job_id: UUID | None
    verdict: str = NEVER_SEEN
    reason: str | None = None
    message: str
    # whether readers find the page, since when, and why not
    publication: PageVisibility
    duplicate_of: str | None = None
    # the previous version, if the page failed in this crawl and is kept
    carried_over: CarriedPage | None = None
    http_status: int | None = None
    depth: int | None = None
    attempts: int | None = None
    # whether the page was rendered in a browser, and why; None if it is no page
    rendering: str | None = None
    # pages of the same crawl with nearly the same text, which are kept as well
    near_duplicates: NearDuplicates | None = None
    # from a seed to this URL
    found_by: list[RedirectStep] = field(default_factory=list)
    # whether it would be fetched now, by the rules of that crawl
    outlook: Outlook
    # how the newest crawls have settled it, the newest first
    history: list[PastOutcome]
    task: TrackedAs | None
    # blocks that extraction left out of the page, on request
    content: PageContent | None = None


async def explain(
    database: Database,
    queue: Queue,
    url: str,
    *,
    job_id: UUID | None = None,
    user_id: UUID | None = None,
    archive: Storage | None = None,
) -> Explanation:
    """Look a URL up in one crawl, or in the latest one (of an owner) that knows it.

    With an archive, the page is read again to say what extraction leaves out of it.
    """
    given = with_scheme(url)
    normalized = normalize(given)
    if isinstance(normalized, Refusal):
        raise InvalidInput(f"{url!r} cannot be crawled: {normalized.value}")
    key = url_key(normalized)
    async with database.connection() as connection:
        crawls = await store.select_recent_crawls(connection, user_id, per_source=RECENT_CRAWLS)
        recent = [crawl for crawl, _ in crawls]
        # those of sources on the host of the URL come first
        jobs = [job_id] if job_id else _near_first(crawls, normalized)
        record = await store.select_settled(connection, [job_id] if job_id else recent, key)
        record = record or await store.select_pending(connection, jobs[:_READ_FRONTIERS], key)
        history = await store.select_history(connection, recent, key)
        facts = await _facts(connection, record, key) if record else {}
    task = await _tracked_as(database, queue.settings, normalized)
    if record:
        job_id = record.job_id
    elif task is None:
        job_id = next(iter(jobs), None)
    job = await queue.get(job_id) if job_id else None
    facts["publication"] = await _publication(
        database, key, record, job if record else None, user_id
    )
    options = _options(job)
    waits = await _waits(database, job)
    if record and job:
        facts["rendering"] = await _rendering(database, record, options)
        facts["message"] = _message(record, job, waits)
    else:
        facts["message"] = _why_never_seen(normalized, job, waits, is_tracked=task is not None)
    agent = agent_header(queue.settings, options.user_agent if options else None)
    return Explanation(
        url=url,
        normalized=normalized,
        steps=explain_normalization(given),
        job_id=job_id,
        outlook=await outlook(database, normalized, agent=agent, options=options),
        history=history,
        task=task,
        content=await _content(database, archive, normalized),
        **facts,
    )


def _near_first(crawls: Sequence[tuple[UUID, str]], url: NormalizedUrl) -> list[UUID]:
    """The crawls whose source begins on the host of a URL, then the others; newest first."""
    host = urlsplit(url).netloc
    return [crawl for crawl, _ in sorted(crawls, key=lambda each: urlsplit(each[1]).netloc != host)]


async def _facts(connection: Connection, record: UrlRecord, key: bytes) -> dict[str, Any]:
    """The fields of an explanation that come from the tables of the crawl."""
    pages, urls = await select_near_duplicates(connection, record.job_id, key, limit=NEAR_SHOWN)
    carried = None
    if record.carried_over:
        carried = await select_carried_page(connection, record.job_id, key)
    ancestors = await store.select_ancestors(
        connection, record.job_id, record.parent, limit=MAX_ANCESTORS
    )
    return {
        "verdict": record.outcome,
        "reason": record.reason,
        "duplicate_of": record.duplicate_of,
        "http_status": record.http_status,
        "depth": record.depth,
        "attempts": record.attempts,
        "carried_over": carried,
        "near_duplicates": NearDuplicates(pages, urls) if pages else None,
        "found_by": [
            RedirectStep(*step) for step in [*reversed(ancestors), (record.url, record.via)]
        ],
    }


async def _publication(
    database: Database, key: bytes, record: UrlRecord | None, job: Job | None, user_id: UUID | None
) -> PageVisibility:
    return await database.run(
        page_visibility,
        key,
        source_id=None if job is None else job.source_id,
        job_id=None if job is None else job.id,
        user_id=user_id,
        otherwise=_why_not_listed(record),
    )


def _why_not_listed(record: UrlRecord | None) -> str:
    if record is None:
        return "no crawl has found it"
    if record.outcome == "pending":
        return "it has not been fetched"
    if record.duplicate_of is not None:
        return f"it is a duplicate of {record.duplicate_of}"
    return f"{record.outcome} ({record.reason})" if record.reason else "its page is no longer kept"


async def _tracked_as(
    database: Database, settings: Settings, url: NormalizedUrl
) -> TrackedAs | None:
    try:
        report = await Tasks(database, settings).report(url)
    except NotFound:
        return None
    tracked = TrackedAs(
        task_id=report.task.id,
        status=report.task.shown_status,
        why=report.why,
        next_at=report.next_at,
    )
    if not report.attempts:
        return tracked
    last = report.attempts[0]
    status = f" (HTTP {last.http_status})" if last.http_status else ""
    attempt = f"{last.stage} {last.outcome}{status}"
    return replace(tracked, last_attempt=attempt, last_at=last.finished_at)


async def _content(
    database: Database, archive: Storage | None, url: NormalizedUrl
) -> PageContent | None:
    if archive is None:
        return None
    from forager.documents.archived import explain_content  # most explanations read no page

    return await explain_content(database, archive, url_key(url))


def _options(job: Job | None) -> CrawlOptions | None:
    return crawl_options(job.payload) if job is not None and job.kind == "crawl" else None


async def _waits(database: Database, job: Job | None) -> str | None:
    """The reason why the crawl itself waits."""
    if job is None or job.status is not Status.PENDING:
        return None
    async with database.connection() as connection:
        return (await workers_awaited(connection, [job]))[job.id]


def _message(record: UrlRecord, job: Job, waits: str | None) -> str:
    if record.outcome == "pending":
        if waits:
            return f"the crawl is {waits}"
        if job.stop_reason:
            return f"the crawl stopped ({job.stop_reason}) before it reached this URL"
        if record.not_before is not None:
            return _retry_message(record.attempts, record.not_before)
        return "it is waiting for its turn"
    if record.detail:
        return record.detail
    return f"it was fetched (HTTP {record.http_status})" if record.http_status else record.outcome


async def _rendering(
    database: Database, record: UrlRecord, options: CrawlOptions | None
) -> str | None:
    if record.rendering is not None:
        return record.rendering
    if record.outcome != Outcome.FETCHED or options is None:
        return None
    if options.render is RenderMode.NEVER:
        return "not rendered: the crawl was started with --render never"
    domain = await domain_of(database, options.seeds[0])
    if options.render is RenderMode.AUTO and domain is not None and domain.render == "never":
        return f"not rendered: the domain {domain.domain_name} is set to render never"
    return "not rendered: its static response has the content"


def _why_never_seen(
    url: NormalizedUrl, job: Job | None, waits: str | None, *, is_tracked: bool
) -> str:
    if job is None:
        return "only its task visits it" if is_tracked else "there has been no crawl yet"
    options = _options(job)
    if options is None:
        return f"job {job.id} is not a crawl"
    rule = scope_of(options).refusal(url)
    if rule is not None:
        return f"it would not be crawled: {rule.message}"
    if waits and job.started_at is None:
        return f"the crawl has not started: it is {waits}"
    return "no page that the crawl has read leads to it"


def _retry_message(attempts: int, not_before: datetime) -> str:
    """A retry that is due waits for its turn: no time in the past is shown."""
    seconds = (not_before - datetime.now(UTC)).total_seconds()
    times = "once" if attempts == 1 else f"{attempts} times"
    when = f"in {rounded_time(seconds)}" if seconds >= 1 else "as soon as its host allows it"
    return f"it failed {times} and will be retried {when}"
