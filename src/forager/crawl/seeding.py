"""Seeding: how a crawl gets its first URLs, from its seeds and from sitemaps."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urljoin

from forager.crawl.batch import Batch, Committer
from forager.crawl.discovery import Discovery
from forager.crawl.entry import Found, Via
from forager.crawl.options import CrawlOptions, Strategy
from forager.crawl.sitemaps import SitemapEntry, SitemapParser
from forager.crawl.state import CrawlState
from forager.errors import WorkFailed
from forager.extract.hosts import host_of
from forager.extract.keys import url_key
from forager.extract.urls import NormalisedUrl, Refusal, normalise
from forager.fetch.budgets import Budgets
from forager.fetch.client import Client
from forager.fetch.limits import Limits
from forager.fetch.redirects import follow
from forager.fetch.response import Request
from forager.fetch.robots_gate import RobotsGate
from forager.jobs.context import JobContext
from forager.logs import get_logger

log = get_logger("crawl")

# by protocol a sitemap has at most 50 MB
SITEMAP_LIMITS = Limits(body=64 * 1024 * 1024, total=600.0)
MAX_SITEMAPS = 1_000
CHUNK = 256 * 1024
BATCH = 1_000
SITEMAP_NOTE = "sitemaps"


class Seeding:
    """Puts seeds and sitemap entries into the frontier, in commits of their own."""

    def __init__(
        self,
        context: JobContext,
        options: CrawlOptions,
        state: CrawlState,
        discovery: Discovery,
        committer: Committer,
        *,
        client: Client,
        budgets: Budgets,
        robots: RobotsGate,
    ) -> None:
        self._context = context
        self._options = options
        self._state = state
        self._discovery = discovery
        self._committer = committer
        self._client = client
        self._budgets = budgets
        self._robots = robots

    async def run(self) -> None:
        """Go on where the last run stopped; does nothing once everything is seeded."""
        if self._state.seeded:
            return
        if self._options.strategy is not Strategy.SITEMAP:
            await self._commit([_seed(url) for url in first_urls(self._options)])
        if self._options.strategy in (Strategy.SITE, Strategy.SITEMAP):
            await self._read_sitemaps()
        if not self._context.stopping.is_set():
            self._state.seeded = True
            await self._commit([])

    async def _read_sitemaps(self) -> None:
        waiting = await self._sitemap_urls()
        while waiting and len(self._state.sitemaps_read) < MAX_SITEMAPS:
            if self._context.stopping.is_set():
                return
            url = waiting.pop(0)
            if url in self._state.sitemaps_read:
                continue
            try:
                waiting += await self._read_sitemap(url)
            except WorkFailed as error:
                self._state.ledger.note(SITEMAP_NOTE, f"failed: {error.kind}")
                log.warning("sitemap cannot be read", url=url, reason=error.message)
            self._state.sitemaps_read.append(url)
            await self._commit([])

    async def _sitemap_urls(self) -> list[str]:
        """Those that robots.txt names; if the crawl is made of sitemaps, the usual place too."""
        urls: list[str] = []
        for seed in self._options.seeds:
            if self._options.strategy is Strategy.SITEMAP and _looks_like_sitemap(seed):
                urls.append(seed)
                continue
            named = await self._robots.sitemaps(seed)
            if not named and self._options.strategy is Strategy.SITEMAP:
                named = [urljoin(seed, "/sitemap.xml")]
            urls += named
        return list(dict.fromkeys(urls))

    async def _read_sitemap(self, url: str) -> list[str]:
        """Commit the pages of one sitemap; the further sitemaps it names are the answer."""
        body = await self._fetch(url)
        parser = SitemapParser(url)
        further: list[str] = []
        pages: list[Found] = []
        for entry in _entries(parser, body):
            if entry.is_sitemap:
                further.append(entry.url)
                continue
            if self._discovery.scope.outside(entry.url) is None:
                pages.append(_listed(entry.url))
            if len(pages) >= BATCH:
                await self._commit(pages)
                pages = []
        await self._commit(pages)
        self._state.ledger.note(SITEMAP_NOTE, "read" if parser.error is None else "damaged")
        return further

    async def _fetch(self, url: str) -> bytes:
        async def take_slot(target: str) -> None:
            slot = await self._budgets.acquire(
                host_of(target), robots_delay=await self._robots.crawl_delay(target)
            )
            with slot:
                slot.succeeded(0.0)

        normalised = normalise(url)
        target = url if isinstance(normalised, Refusal) else normalised
        await take_slot(target)
        followed = await follow(
            self._client, Request(target, limits=SITEMAP_LIMITS), take_slot, max_hops=5
        )
        response = followed.response
        if response.status != 200:
            self._state.ledger.note(SITEMAP_NOTE, f"http_{response.status}")
            return b""
        return response.body

    async def _commit(self, found: list[Found]) -> None:
        batch = Batch()
        self._discovery.meet(found, batch.discovered)
        self._state.next_seq = self._discovery.next_seq
        await self._committer.write(batch)


def first_urls(options: CrawlOptions) -> list[NormalisedUrl]:
    if options.strategy is not Strategy.LLMS:
        return list(options.seeds)
    files = ("/llms.txt", "/llms-full.txt")
    urls = [urljoin(seed, file) for seed in options.seeds for file in files]
    named = [seed for seed in options.seeds if seed.endswith(".txt")]
    return list(dict.fromkeys(NormalisedUrl(url) for url in named or urls))


def _seed(url: NormalisedUrl) -> Found:
    return Found(url, url_key(url), Via.SEED, 0, None)


def _listed(url: NormalisedUrl) -> Found:
    return Found(url, url_key(url), Via.SITEMAP, 1, None)


def _entries(parser: SitemapParser, body: bytes) -> Iterator[SitemapEntry]:
    for start in range(0, len(body), CHUNK):
        yield from parser.feed(body[start : start + CHUNK])
    yield from parser.close()


def _looks_like_sitemap(url: str) -> bool:
    path = url.partition("?")[0].lower()
    return path.endswith((".xml", ".xml.gz", ".txt", ".txt.gz", ".rss", ".atom"))
