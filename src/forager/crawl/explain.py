"""What became of a URL, and why: the question every crawl must be able to answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from forager.crawl import explain_store as store
from forager.crawl.explain_store import Fate
from forager.crawl.options import crawl_options
from forager.crawl.scope import Scope
from forager.crawl.seeding import first_urls
from forager.db.database import Database
from forager.errors import InvalidInput
from forager.extract.keys import url_key
from forager.extract.urls import NormalisedUrl, Refusal, explain_normalisation, normalise
from forager.jobs.job import Job
from forager.jobs.queue import Queue

RECENT_CRAWLS = 50
LONGEST_WAY = 200
NEVER_SEEN = "never seen"


@dataclass(frozen=True, slots=True)
class Step:
    """One URL on the way to another, and what led to it."""

    url: str
    via: str


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
    http_status: int | None = None
    depth: int | None = None
    attempts: int | None = None
    # from a seed to this URL
    found_by: list[Step] = field(default_factory=list)


async def explain(
    database: Database,
    queue: Queue,
    url: str,
    *,
    job_id: UUID | None = None,
    user_id: UUID | None = None,
) -> Explanation:
    """Look a URL up in one crawl, or in the latest one (of an owner) that knows it."""
    given = url if "://" in url else f"https://{url}"
    normalised = normalise(given)
    if isinstance(normalised, Refusal):
        raise InvalidInput(f"{url!r} cannot be crawled: {normalised.value}")
    async with database.connection() as connection:
        jobs = (
            [job_id]
            if job_id
            else await store.select_recent_crawls(connection, user_id, limit=RECENT_CRAWLS)
        )
        key = url_key(normalised)
        fates = await store.select_settled(connection, jobs, key)
        fates = fates or await store.select_waiting(connection, jobs, key)
        fate = min(fates, key=lambda each: jobs.index(each.job_id), default=None)
        ancestors = []
        if fate is not None and fate.parent is not None:
            ancestors = await store.select_ancestors(
                connection, fate.job_id, fate.parent, limit=LONGEST_WAY
            )
    steps = explain_normalisation(given)
    if fate is None:
        job = await queue.get(jobs[0]) if jobs else None
        return _never_seen(url, normalised, steps, job)
    return Explanation(
        url=url,
        normalised=normalised,
        steps=steps,
        job_id=fate.job_id,
        verdict=fate.outcome,
        reason=fate.reason,
        words=_words(fate, await queue.get(fate.job_id)),
        duplicate_of=fate.duplicate_of,
        http_status=fate.http_status,
        depth=fate.depth,
        attempts=fate.attempts,
        found_by=[Step(*step) for step in [*reversed(ancestors), (fate.url, fate.via)]],
    )


def _words(fate: Fate, job: Job) -> str:
    if fate.outcome == "pending":
        if job.stop_reason:
            return f"the crawl stopped ({job.stop_reason}) before it was this URL's turn"
        if fate.not_before is not None:
            return f"it failed {fate.attempts} times and will be tried again at {fate.not_before}"
        return "it is waiting for its turn"
    if fate.detail:
        return fate.detail
    return f"it was fetched (HTTP {fate.http_status})" if fate.http_status else fate.outcome


def _never_seen(
    url: str, normalised: NormalisedUrl, steps: list[str], job: Job | None
) -> Explanation:
    return Explanation(
        url=url,
        normalised=normalised,
        steps=steps,
        job_id=job.id if job else None,
        verdict=NEVER_SEEN,
        words=_why_never_seen(normalised, job),
    )


def _why_never_seen(url: NormalisedUrl, job: Job | None) -> str:
    if job is None:
        return "there has been no crawl yet"
    if job.kind != "crawl":
        return f"job {job.id} is not a crawl"
    options = crawl_options(job.payload)
    scope = Scope(
        first_urls(options), options.scope, include=options.include, exclude=options.exclude
    )
    rule = scope.verdict(url).rule
    if rule is not None:
        return f"it would not be crawled: {rule.words}"
    return "no page that the crawl has read leads to it"
