"""A preview of a crawl: its first URLs, and whether robots.txt and the scope allow them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import islice

from forager.crawl.extraction.pool import ExtractionPool
from forager.crawl.frontier.entry import Via
from forager.crawl.frontier.scope import CrawlScope
from forager.crawl.frontier.seeding import fetch_sitemap, first_urls, scope_of, sitemap_urls
from forager.crawl.options import CrawlOptions, Strategy
from forager.crawl.sitemaps.reader import Sitemap
from forager.crawl.visit.gate import open_gate
from forager.db.database import Database
from forager.errors import ErrorKind, ForagerError, GiveUp
from forager.extract.urls import NormalizedUrl
from forager.fetch.files.gate import FileGate
from forager.fetch.redirects import fetch_page
from forager.fetch.response import Request, agent_header
from forager.fetch.robots.gate import RobotsGate
from forager.fetch.robots.rules import product_token
from forager.processes.sandbox import SandboxLimits
from forager.settings import Settings

FIRST_URLS = 20
SECONDS = 30.0
# sitemaps that are read, of those that robots.txt and their indexes name
MAX_SITEMAPS = 3


@dataclass(frozen=True, slots=True)
class PreviewedUrl:
    """A URL in the order of the crawl; `refusal` says why it would not be fetched."""

    url: str
    via: str
    refusal: str | None = None


@dataclass(slots=True)
class CrawlPreview:
    """The beginning of a crawl. Nothing is stored but robots.txt."""

    urls: list[PreviewedUrl] = field(default_factory=list)
    # seconds between requests, by robots.txt
    crawl_delay: float | None = None
    sitemaps: list[str] = field(default_factory=list)
    # errors of requests
    problems: list[str] = field(default_factory=list)


async def preview_crawl(
    database: Database, settings: Settings, options: CrawlOptions
) -> CrawlPreview:
    """Read robots.txt, sitemaps and the first page, within half a minute and the host's budget."""
    preview = CrawlPreview()
    gate = open_gate(database, settings, options, ignore_robots=options.ignore_robots)
    try:
        async with asyncio.timeout(SECONDS), gate as robots:
            await _Beginning(preview, settings, options, robots).collect()
    except TimeoutError:
        preview.problems.append(f"the site did not answer within {SECONDS:g} s")
    return preview


async def address_problems(
    database: Database, settings: Settings, options: CrawlOptions
) -> list[str]:
    """What keeps a crawl from its start URLs or its folder; each URL is requested once.

    Repositories are not fetched.
    """
    if options.repository is not None:
        return []
    problems: list[str] = []
    gate = open_gate(database, settings, options, ignore_robots=options.ignore_robots)
    try:
        async with asyncio.timeout(SECONDS), gate as robots:
            urls = [] if options.files else first_urls(options)[:FIRST_URLS]
            problems += [f"{url}: {why}" for url in urls if (why := await _problem_at(robots, url))]
    except TimeoutError:
        problems.append(f"{options.seeds[0]}: the site did not answer within {SECONDS:g} s")
    except ForagerError as error:
        problems.append(error.message)
    return problems


async def _problem_at(gate: RobotsGate, url: NormalizedUrl) -> str | None:
    try:
        verdict = await gate.verdict(url)
        if not verdict.allowed:
            return verdict.reason
        await fetch_page(gate, Request(url))
    except ForagerError as error:
        return error.message.removeprefix(f"{url}: ")
    return None


@dataclass(slots=True)
class _Beginning:
    preview: CrawlPreview
    settings: Settings
    options: CrawlOptions
    gate: RobotsGate

    async def collect(self) -> None:
        scope = scope_of(self.options)
        seen: set[str] = set()
        async for url, via in self._found():
            if url in seen or (via is Via.SITEMAP and scope.outside(url) is not None):
                continue
            seen.add(url)
            self.preview.urls.append(PreviewedUrl(url, via, await self._refusal(scope, url, via)))
            if len(self.preview.urls) >= FIRST_URLS:
                return

    async def _refusal(self, scope: CrawlScope, url: NormalizedUrl, via: Via) -> str | None:
        rule = None if via is Via.SEED else scope.refusal(url, 1)
        if rule is not None:
            return rule.message
        try:
            verdict = await self.gate.verdict(url)
        except ForagerError as error:
            return error.message
        return None if verdict.allowed else verdict.reason

    async def _found(self) -> AsyncIterator[tuple[NormalizedUrl, Via]]:
        """Seeds, pages of sitemaps and links of the first page, as the frontier has them."""
        seeds = first_urls(self.options)
        try:
            self.preview.crawl_delay = await self.gate.crawl_delay(seeds[0])
        except ForagerError as error:
            # as the crawl itself does
            if isinstance(error, GiveUp) and error.kind is ErrorKind.NOT_ALLOWED:
                raise
            self.preview.problems.append(error.message)
            return
        if isinstance(self.gate, FileGate):
            for url in self.gate.pages()[:FIRST_URLS]:
                yield url, Via.FILE
            return
        if self.options.strategy is not Strategy.SITEMAP:
            for url in seeds[:FIRST_URLS]:
                yield url, Via.SEED
        if self.options.strategy in (Strategy.SITE, Strategy.SITEMAP):
            for url in await self._listed():
                yield url, Via.SITEMAP
        if self.options.follows_links_at(0):
            for url in await self._linked(seeds[0]):
                yield url, Via.LINK

    async def _listed(self) -> list[NormalizedUrl]:
        """Pages of the first sitemaps."""
        self.preview.sitemaps, _ = await sitemap_urls(self.options, self.gate)
        waiting = list(self.preview.sitemaps)
        pages: list[NormalizedUrl] = []
        for _ in range(MAX_SITEMAPS):
            if not waiting or len(pages) >= FIRST_URLS:
                break
            url = waiting.pop(0)
            try:
                # a sitemap may list many pages outside the scope
                sitemap = Sitemap(url, await fetch_sitemap(self.gate, url))
                entries = list(islice(sitemap, 50 * FIRST_URLS))
            except ForagerError as error:
                self.preview.problems.append(f"sitemap {url}: {error.message}")
                continue
            pages += [entry.url for entry in entries if not entry.is_sitemap]
            waiting = [*(entry.url for entry in entries if entry.is_sitemap), *waiting]
        return pages

    async def _linked(self, url: NormalizedUrl) -> list[NormalizedUrl]:
        """In-scope links of the first page, extracted in a limited process."""
        options = self.options
        try:
            response = await fetch_page(self.gate, Request(url))
            async with ExtractionPool(SandboxLimits.of_pages(self.settings)) as pool:
                extractor = pool.extractor(
                    seeds=first_urls(options),
                    scope=options.scope,
                    agent=product_token(agent_header(self.settings, options.user_agent)),
                    documents=False,
                )
                links = (await extractor.extract(response, archive=False)).links
        except ForagerError as error:
            self.preview.problems.append(f"{url}: {error.message}")
            return []
        return [NormalizedUrl(link) for link in links.urls.decode().splitlines()[: links.followed]]
