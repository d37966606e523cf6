"""The outcome of a URL, the reason, and whether it would be fetched now."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from forager.archive.storage import Storage
from forager.crawl.explain import store
from forager.crawl.explain.outlook import Outlook, outlook
from forager.crawl.explain.store import Fate
from forager.crawl.frontier.seeding import scope_of
from forager.crawl.options import CrawlOptions, crawl_options
from forager.crawl.rendering import domain_of
from forager.crawl.report import rounded_time, workers_awaited
from forager.crawl.settlement import Outcome
from forager.db.database import Connection, Database
from forager.documents.page import CarriedPage
from forager.documents.store import reads
from forager.errors import InvalidInput, NotFound
from forager.extract.keys import url_key
from forager.extract.urls import (
    NormalisedUrl,
    Refusal,
    explain_normalisation,
    normalise,
    with_scheme,
)
from forager.fetch.response import agent_header
from forager.hints import Hint
from forager.jobs.job import Job
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.products.record import AttemptRecord
from forager.settings import Settings
from forager.settings.crawling import RenderMode
from forager.tasks.service import Tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedAs:
    """The task of a URL, why it is not running now, and the outcome of its last visit."""

    task_id: int
    status: str
    why: str | Hint
    next_at: datetime | None
    last_attempt: str | None
    last_at: datetime | None


async def tracked_as(
    database: Database, settings: Settings, url: NormalisedUrl
) -> TrackedAs | None:
    try:
        report = await Tasks(database, settings).report(url)
    except NotFound:
        return None
    last = report.attempts[0] if report.attempts else None
    return TrackedAs(
        task_id=report.task.id,
        status=report.task.shown_status,
        why=report.why,
        next_at=report.next_at,
        last_attempt=_attempt_words(last) if last else None,
        last_at=last.finished_at if last else None,
    )


def _attempt_words(attempt: AttemptRecord) -> str:
    status = f" (HTTP {attempt.http_status})" if attempt.http_status else ""
    return f"{attempt.stage} {attempt.outcome}{status}"


NEAR_SHOWN = 5
RECENT_CRAWLS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PastFate:
    """The outcome of a URL in one crawl."""

    job_id: UUID
    outcome: str
    reason: str | None
    detail: str | None
    http_status: int | None
    attempts: int
    settled_at: datetime | None


async def url_history(
    connection: Connection, url: NormalisedUrl, *, user_id: UUID | None = None
) -> list[PastFate]:
    """The outcomes in the latest crawls (of an owner), newest first."""
    jobs = await store.select_recent_crawls(connection, user_id, limit=RECENT_CRAWLS)
    fates = await store.select_settled(connection, jobs, url_key(url))
    return [_past(fate) for fate in sorted(fates, key=lambda fate: jobs.index(fate.job_id))]


def _past(fate: Fate) -> PastFate:
    return PastFate(
        job_id=fate.job_id,
        outcome=fate.outcome,
        reason=fate.reason,
        detail=fate.detail,
        http_status=fate.http_status,
        attempts=fate.attempts,
        settled_at=fate.settled_at,
    )


if TYPE_CHECKING:
    from forager.documents.check import PageContent

LONGEST_WAY = 200
NEVER_SEEN = "never seen"


@dataclass(frozen=True, slots=True)
class Step:
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
    url: str
    normalised: str
    # what was done to the URL as it was given
    steps: list[str]
    job_id: UUID | None
    verdict: str
    reason: str | None = None
    words: str
    duplicate_of: str | None = None
    # it failed in this crawl, which keeps the version before
    carried_over: CarriedPage | None = None
    http_status: int | None = None
    depth: int | None = None
    attempts: int | None = None
    # whether the page was rendered in a browser, and why; None if it is no page
    rendering: str | None = None
    # pages of the same crawl with nearly the same text, which are kept as well
    near_duplicates: NearDuplicates | None = None
    # from a seed to this URL
    found_by: list[Step] = field(default_factory=list)
    # whether it would be fetched now, by the rules of that crawl
    outlook: Outlook
    # how the newest crawls have settled it, the newest first
    history: list[PastFate]
    task: TrackedAs | None
    # what was left out of the page, on request
    content: PageContent | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    """The rows of a URL in the tables of crawls."""

    job_id: UUID | None
    fate: Fate | None
    ancestors: list[tuple[str, str]]
    history: list[PastFate]
    carried_over: CarriedPage | None
    near_duplicates: NearDuplicates | None


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
    normalised = normalise(given)
    if isinstance(normalised, Refusal):
        raise InvalidInput(f"{url!r} cannot be crawled: {normalised.value}")
    known = await database.run(_look_up, normalised, job_id, user_id)
    job = await queue.get(known.job_id) if known.job_id else None
    fate = known.fate
    waits = await _waits(database, job)
    return Explanation(
        url=url,
        normalised=normalised,
        steps=explain_normalisation(given),
        job_id=known.job_id,
        verdict=fate.outcome if fate else NEVER_SEEN,
        reason=fate.reason if fate else None,
        words=_words(fate, job, waits) if fate and job else _why_never_seen(normalised, job, waits),
        duplicate_of=fate.duplicate_of if fate else None,
        carried_over=known.carried_over,
        http_status=fate.http_status if fate else None,
        depth=fate.depth if fate else None,
        attempts=fate.attempts if fate else None,
        rendering=await _rendering(database, fate, _options(job)) if fate else None,
        near_duplicates=known.near_duplicates,
        found_by=_way(fate, known.ancestors) if fate else [],
        outlook=await _outlook(database, queue, normalised, job),
        history=known.history,
        task=await tracked_as(database, queue.settings, normalised),
        content=await _content(database, archive, normalised),
    )


async def _content(
    database: Database, archive: Storage | None, url: NormalisedUrl
) -> PageContent | None:
    if archive is None:
        return None
    from forager.documents.check import explain_content  # most explanations read no page

    return await explain_content(database, archive, url_key(url))


async def _look_up(
    connection: Connection, url: NormalisedUrl, job_id: UUID | None, user_id: UUID | None
) -> _Known:
    jobs = [job_id] if job_id else await _recent(connection, user_id)
    key = url_key(url)
    fates = await store.select_settled(connection, jobs, key)
    fates = fates or await store.select_waiting(connection, jobs, key)
    fate = min(fates, key=lambda each: jobs.index(each.job_id), default=None)
    ancestors = []
    if fate is not None and fate.parent is not None:
        ancestors = await store.select_ancestors(
            connection, fate.job_id, fate.parent, limit=LONGEST_WAY
        )
    return _Known(
        fate.job_id if fate else next(iter(jobs), None),
        fate,
        ancestors,
        await url_history(connection, url, user_id=user_id),
        await _carried_over(connection, fate, key),
        await _near_duplicates(connection, fate, key),
    )


async def _near_duplicates(
    connection: Connection, fate: Fate | None, key: bytes
) -> NearDuplicates | None:
    if fate is None:
        return None
    found = await reads.select_near_duplicates(connection, fate.job_id, key, limit=NEAR_SHOWN)
    return NearDuplicates(*found) if found[0] else None


async def _carried_over(
    connection: Connection, fate: Fate | None, key: bytes
) -> CarriedPage | None:
    if fate is None or not fate.carried_over:
        return None
    return await reads.select_carried_page(connection, fate.job_id, key)


async def _recent(connection: Connection, user_id: UUID | None) -> list[UUID]:
    return await store.select_recent_crawls(connection, user_id, limit=RECENT_CRAWLS)


async def _outlook(
    database: Database, queue: Queue, url: NormalisedUrl, job: Job | None
) -> Outlook:
    options = _options(job)
    agent = agent_header(queue.settings, options.user_agent if options else None)
    return await outlook(database, url, agent=agent, options=options)


def _options(job: Job | None) -> CrawlOptions | None:
    return crawl_options(job.payload) if job is not None and job.kind == "crawl" else None


def _way(fate: Fate, ancestors: list[tuple[str, str]]) -> list[Step]:
    return [Step(*step) for step in [*reversed(ancestors), (fate.url, fate.via)]]


async def _waits(database: Database, job: Job | None) -> str | None:
    """What the crawl itself waits for."""
    if job is None or job.status is not Status.PENDING:
        return None
    async with database.connection() as connection:
        return (await workers_awaited(connection, [job]))[job.id]


def _words(fate: Fate, job: Job, waits: str | None) -> str:
    if fate.outcome == "pending":
        if waits:
            return f"the crawl is {waits}"
        if job.stop_reason:
            return f"the crawl stopped ({job.stop_reason}) before it reached this URL"
        if fate.not_before is not None:
            return _words_of_retry(fate.attempts, fate.not_before)
        return "it is waiting for its turn"
    if fate.detail:
        return fate.detail
    return f"it was fetched (HTTP {fate.http_status})" if fate.http_status else fate.outcome


async def _rendering(database: Database, fate: Fate, options: CrawlOptions | None) -> str | None:
    if fate.rendering is not None:
        return fate.rendering
    if fate.outcome != Outcome.FETCHED or options is None:
        return None
    if options.render is RenderMode.NEVER:
        return "not rendered: the crawl was started with --render never"
    domain = await domain_of(database, options.seeds[0])
    if options.render is RenderMode.AUTO and domain is not None and domain.render == "never":
        return f"not rendered: the domain {domain.domain_name} is set to render never"
    return "not rendered: its static response has the content"


def _why_never_seen(url: NormalisedUrl, job: Job | None, waits: str | None) -> str:
    if job is None:
        return "there has been no crawl yet"
    options = _options(job)
    if options is None:
        return f"job {job.id} is not a crawl"
    rule = scope_of(options).verdict(url).rule
    if rule is not None:
        return f"it would not be crawled: {rule.words}"
    if waits and job.started_at is None:
        return f"the crawl has not started: it is {waits}"
    return "no page that the crawl has read leads to it"


def _words_of_retry(attempts: int, not_before: datetime) -> str:
    """A retry that is due waits for its turn: no time in the past is shown."""
    seconds = (not_before - datetime.now(UTC)).total_seconds()
    times = "once" if attempts == 1 else f"{attempts} times"
    when = f"in {rounded_time(seconds)}" if seconds >= 1 else "as soon as its host allows it"
    return f"it failed {times} and will be retried {when}"
