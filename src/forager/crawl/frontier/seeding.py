"""Seeding: how a crawl gets its first URLs, from its seeds and from sitemaps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urljoin

from forager.backoff import backoff
from forager.crawl.batch import Batch, Committer
from forager.crawl.frontier.discovery import Discovery
from forager.crawl.frontier.entry import FrontierEntry, Via, found_url
from forager.crawl.frontier.known import KnownUrls
from forager.crawl.frontier.scope import CrawlScope
from forager.crawl.ledger import OUT_OF_SCOPE, SITEMAPS, CrawlState
from forager.crawl.options import CrawlOptions, Strategy
from forager.crawl.sitemaps.reader import Sitemap
from forager.crawl.visit.outcomes import RETRY_DELAY_MAX
from forager.errors import Retry, WorkFailed
from forager.extract.traps import without_session
from forager.extract.urls import NormalizedUrl, Refusal, normalize
from forager.fetch.budgets.slots import HostThrottled
from forager.fetch.files.gate import FileGate
from forager.fetch.redirects import fetch_page
from forager.fetch.response import Request, ResponseLimits
from forager.fetch.robots.gate import RobotsGate, origin_of
from forager.jobs.context import JobContext
from forager.jobs.kinds import Waiting
from forager.logs import get_logger

log = get_logger("crawl")

# by protocol a sitemap has at most 50 MB
SITEMAP_LIMITS = ResponseLimits(body=64 * 1024 * 1024, total=600.0)
MAX_SITEMAPS = 1_000
# sitemaps that are retried before the first page is fetched
MAX_RETRIES = 10
BATCH = 1_000


@dataclass(slots=True)
class Seeding:
    """Puts seeds and sitemap entries into the frontier, in separate commits."""

    context: JobContext
    options: CrawlOptions
    state: CrawlState
    discovery: Discovery
    known: KnownUrls
    committer: Committer
    robots: RobotsGate
    _retries: int = field(default=MAX_RETRIES, init=False)
    # the sitemaps of some host cannot be fetched yet
    _deferred: Waiting | None = field(default=None, init=False)
    # what was found since the last commit
    _batch: Batch = field(default_factory=Batch, init=False)

    async def run(self, *, last: bool = False) -> Waiting | None:
        """Resume where the last run stopped; returns the wait if a host cannot be fetched from yet.

        With `last`, such hosts are skipped.
        """
        if self.state.seeded:
            return None
        self._deferred = None
        if isinstance(self.robots, FileGate) and self.options.strategy is Strategy.SITE:
            await self._add_files(self.robots)
        elif self.options.strategy is not Strategy.SITEMAP:
            # committed with what comes next: sitemaps, or the end of the seeding
            seeds = [found_url(url, Via.SEED, 0) for url in first_urls(self.options)]
            await self._add(seeds, self._batch)
        if self.options.strategy in (Strategy.SITE, Strategy.SITEMAP):
            await self._read_sitemaps()
        if not self.context.stopping.is_set() and (last or self._deferred is None):
            self.state.seeded = True
            # written with every commit, and needed no more
            self.state.sitemaps_read, self.state.sitemaps_waiting = [], []
        if self.state.seeded or self._deferred is not None:
            await self._commit([])
        return self._deferred

    async def _add_files(self, files: FileGate) -> None:
        """Add every file that is a page: nothing has to link to it."""
        found = [found_url(url, Via.FILE, 0) for url in files.pages()]
        for start in range(0, len(found), BATCH):
            if self.context.stopping.is_set():
                return
            await self._commit(found[start : start + BATCH])

    async def _read_sitemaps(self) -> None:
        state = self.state
        if not state.sitemaps_waiting:
            urls, deferred = await sitemap_urls(self.options, self.robots)
            self._deferred = deferred or self._deferred
            state.sitemaps_waiting = self._within_limit(urls)
        while state.sitemaps_waiting and not self.context.stopping.is_set():
            url = state.sitemaps_waiting[0]
            further: list[str] = []
            if url not in state.sitemaps_read:
                try:
                    further = await self._try_sitemap(url)
                except HostThrottled as throttled:
                    self._deferred = Waiting(throttled.seconds, throttled.reason)
                    return
            waiting = dict.fromkeys([*state.sitemaps_waiting[1:], *further])
            state.sitemaps_waiting = self._within_limit(waiting)
            await self._commit([])

    def _within_limit(self, urls: Iterable[str]) -> list[str]:
        """Limit the sitemaps to read: the list is part of every commit."""
        news = [url for url in urls if url not in self.state.sitemaps_read]
        room = MAX_SITEMAPS - len(self.state.sitemaps_read)
        if len(news) > room:
            self.state.ledger.note(SITEMAPS, "beyond_limit", len(news) - room)
        return news[:room]

    async def _try_sitemap(self, url: str) -> list[str]:
        """Read one sitemap; the answer is the further ones it names."""
        try:
            further = await self._read_sitemap(url)
        except HostThrottled:
            raise
        except WorkFailed as error:
            self.state.ledger.note(SITEMAPS, f"failed: {error.kind}")
            log.warning("sitemap cannot be read", url=url, reason=error.message)
            further = []
        self.state.sitemaps_read.append(url)
        return further

    async def _read_sitemap(self, url: str) -> list[str]:
        """Commit the pages of one sitemap; the further sitemaps it names are the answer."""
        sitemap = Sitemap(url, await self._fetch(url))
        further: list[str] = []
        pages: list[FrontierEntry] = []
        outside = 0
        for entry in sitemap:
            if entry.is_sitemap:
                further.append(entry.url)
                continue
            page = _listed(entry.url)
            if self.discovery.scope.outside(page.url) is not None:
                outside += 1
                continue
            pages.append(page)
            if len(pages) >= BATCH:
                await self._commit(pages)
                pages = []
        await self._commit(pages)
        # recorded once it was read to its end, so that a second reading counts nothing twice
        self.state.ledger.note(OUT_OF_SCOPE, "sitemap", outside)
        self.state.ledger.note(SITEMAPS, "read" if sitemap.error is None else "damaged")
        return further

    async def _fetch(self, url: str) -> bytes:
        """The bytes of a sitemap; temporary failures are retried."""
        for attempt in range(self.options.retries):
            try:
                return await fetch_sitemap(self.robots, url)
            except HostThrottled:
                raise
            except Retry:
                if not self._retries:
                    raise
            self._retries -= 1
            await asyncio.sleep(backoff(attempt + 1, self.options.retry_delay, RETRY_DELAY_MAX))
        return await fetch_sitemap(self.robots, url)

    async def _commit(self, found: list[FrontierEntry]) -> None:
        batch, self._batch = self._batch, Batch()
        await self._add(found, batch)
        self.state.next_seq = self.discovery.next_seq
        await self.committer.write(batch)

    async def _add(self, found: list[FrontierEntry], batch: Batch) -> None:
        await self.known.look_up(entry.key for entry in found)
        self.discovery.add(found, batch.discovered)


async def sitemap_urls(
    options: CrawlOptions, robots: RobotsGate
) -> tuple[list[str], Waiting | None]:
    """Sitemaps that robots.txt names; if the crawl is made of sitemaps, the usual place too.

    The second value says that some host cannot be asked yet.
    """
    urls: list[str] = []
    deferred = None
    for seed in _one_for_each_origin(options.seeds):
        if options.strategy is Strategy.SITEMAP and _looks_like_sitemap(seed):
            urls.append(seed)
            continue
        try:
            verdict = await robots.verdict(seed)
            named = _addresses(await robots.sitemaps(seed), seed)
        except WorkFailed:
            continue  # the seed itself will say what is wrong
        if verdict.deferred_for is not None and verdict.error is None:
            deferred = Waiting(verdict.deferred_for, verdict.reason)
        elif not named and options.strategy is Strategy.SITEMAP:
            named = [urljoin(seed, "/sitemap.xml")]
        urls += named
    return list(dict.fromkeys(urls)), deferred


async def fetch_sitemap(robots: RobotsGate, url: str) -> bytes:
    """The body of a sitemap, fetched politely."""
    request = Request(url, limits=SITEMAP_LIMITS)
    return (await fetch_page(robots, request, max_hops=5)).body


def first_urls(options: CrawlOptions) -> list[NormalizedUrl]:
    """The URLs that a crawl starts with."""
    if options.strategy is not Strategy.LLMS:
        return list(options.seeds)
    files = ("/llms.txt", "/llms-full.txt")
    urls = [urljoin(seed, file) for seed in options.seeds for file in files]
    named = [seed for seed in options.seeds if seed.endswith(".txt")]
    return list(dict.fromkeys(NormalizedUrl(url) for url in named or urls))


def scope_of(options: CrawlOptions, more_seeds: Iterable[NormalizedUrl] = ()) -> CrawlScope:
    """The scope of a crawl with these options, and of starts that it found."""
    return CrawlScope(
        (*first_urls(options), *more_seeds),
        options.scope,
        include=options.include,
        exclude=options.exclude,
        max_depth=options.max_depth,
        language=options.language,
    )


def _listed(url: NormalizedUrl) -> FrontierEntry:
    plain = normalize(without_session(url))
    return found_url(url if isinstance(plain, Refusal) else plain, Via.SITEMAP, 1)


def _addresses(lines: Iterable[str], base: str) -> list[str]:
    """The valid URLs among the sitemaps that robots.txt names."""
    urls = (normalize(line, base) for line in lines)
    return [url for url in urls if not isinstance(url, Refusal)]


def _one_for_each_origin(seeds: Iterable[NormalizedUrl]) -> list[NormalizedUrl]:
    """Sitemaps are per origin; a seed that is one itself stands alone."""
    kept = {url if _looks_like_sitemap(url) else origin_of(url): url for url in reversed([*seeds])}
    return list(reversed(kept.values()))


def _looks_like_sitemap(url: str) -> bool:
    path = url.partition("?")[0].lower()
    return path.endswith((".xml", ".xml.gz", ".txt", ".txt.gz", ".rss", ".atom"))
