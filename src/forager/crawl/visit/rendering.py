"""Rendering in a crawl: which pages are rendered, why, and what is archived of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from forager.archive.options import archive_options
from forager.crawl.extraction.pool import Extracted, PageExtractor
from forager.crawl.options import CrawlOptions
from forager.db.database import Database
from forager.documents.page import PreviousPage
from forager.errors import ErrorKind, GiveUp, NotFound, Retry
from forager.extract.hosts import host_of
from forager.extract.kinds import ContentKind
from forager.fetch.domains import Domain
from forager.fetch.domains.service import Domains
from forager.fetch.response import Response
from forager.fetch.robots.gate import RobotsGate
from forager.jobs.context import JobContext
from forager.render.archive_records import pack_page, read_static, rendered_response
from forager.render.finding import INSTALL, find_browser
from forager.render.limits import RenderLimits
from forager.render.renderer import RenderedPage
from forager.render.resources import ResourceLoader
from forager.render.rules import RenderRules
from forager.render.shared import SharedBrowser
from forager.render.stats import RenderStats, ShapeStats, template_of
from forager.settings import Settings
from forager.settings.crawling import RenderMode
from forager.tracing import span

# a static response with less text than this may be a shell, if others of its shape were
LITTLE_TEXT = 600
# characters by which a page must grow for its rendering to count as a gain
GAIN = 100
MAX_KNOWN_LINKS = 100_000
# reasons that only suggest that scripts show more
GUESSES = ("app_shell", "no_content")
# pages of a kind that are rendered at once until one has gained
TRIALS = 2


@dataclass(frozen=True, slots=True)
class RenderedFacts:
    """A page as its scripts left it, with what the crawl stores of it."""

    page: RenderedPage
    response: Response
    # None if scripts led elsewhere
    facts: Extracted | None
    # the packed records of the page
    frame: bytes | None
    message: str
    shape_stats: ShapeStats | None


class NeedsBrowserWorker(Retry):
    """Another worker has the browser that the page needs."""


@dataclass(frozen=True, slots=True)
class CrawlBrowser:
    """The browser as one crawl uses it: its pages load what its robots.txt and budgets allow."""

    shared: SharedBrowser
    new_loader: Callable[[], ResourceLoader]


class Rendering:
    """Decides which pages of a crawl are rendered, and renders them.

    Without a browser, `missing` says why there is none. With `hands_over`, the first page that
    needs one is `needs_browser_worker`, and with it the crawl.
    """

    def __init__(
        self,
        options: CrawlOptions,
        rules: RenderRules,
        stats: RenderStats,
        settings: Settings,
        browser: CrawlBrowser | None = None,
        *,
        missing: str = "",
        hands_over: bool = False,
    ) -> None:
        self._options = options
        self._rules = rules
        self._stats = stats
        self._storage = archive_options(settings).open()
        self._skips_unchanged = settings.render_skip_unchanged
        self._browser = browser
        self._missing = missing
        self._hands_over = hands_over
        self.needs_browser_worker: ShapeStats | None = None
        self._trials = asyncio.Semaphore(TRIALS)
        self._known_links: set[bytes] = set()  # that rendering has shown
        # pages that wait for the browser or are in it
        self.under_way = 0

    # --- decisions -------------------------------------------------------------------------

    def reason(self, url: str, response: Response, facts: Extracted) -> str | None:
        """The reason to render a page, in a word for the ledger; None if it is not rendered."""
        if facts.kind not in (ContentKind.HTML, ContentKind.XHTML) or facts.noindex:
            return None
        if self._rules.mode is RenderMode.NEVER or facts.refresh is not None:
            return None
        if always := self._rules.always(url, response.url):
            return always
        if reason := _looks_empty(response, facts):
            template = template_of(response.body)
            return None if self._stats.is_wasted(response.url, template) else reason
        if facts.text_length <= LITTLE_TEXT and self._stats.gains(response.url):
            return "like_others"
        return None

    def check_browser(self, url: str, reason: str) -> str | None:
        """Explain why a page is not rendered; Retry if its rendered version would be lost."""
        if self._browser is not None:
            return None
        if self._hands_over:
            self.needs_browser_worker = self._stats.left(url)
            raise NeedsBrowserWorker(
                f"left to a worker that renders ({reason})", kind=ErrorKind.RENDER
            )
        if self._stats.gains(url):
            message = f"pages like this one need a browser, and there is none: {self._missing}"
            raise Retry(message, kind=ErrorKind.RENDER, hint=INSTALL)
        return f"not rendered, although it should be ({reason}): {self._missing}"

    async def static_before(self, url: str, previous: PreviousPage) -> Response | None:
        """The archived static response of a page that is to be rendered although it is the same.

        Its content may come from elsewhere, and may have changed. None: the page was not rendered,
        or the settings count it as unchanged. Raises if the archive has lost it.
        """
        if self._skips_unchanged or previous.archive is None:
            return None
        if self._rules.always(url, url) is None and not self._stats.gains(url):
            return None
        return await read_static(self._storage, previous.archive)

    # --- rendering -------------------------------------------------------------------------

    async def render(
        self, url: str, response: Response, static: Extracted, reason: str, extractor: PageExtractor
    ) -> RenderedFacts | None:
        """The rendered page; None if pages like it were rendered meanwhile and gained nothing."""
        assert self._browser is not None
        template = template_of(response.body)
        with self._counted():
            async with self._turn(response.url, template, reason):
                if reason in GUESSES and self._stats.is_wasted(response.url, template):
                    return None
                return await self._render(url, response, static, reason, template, extractor)

    def _turn(
        self, url: str, template: str, reason: str
    ) -> AbstractAsyncContextManager[None, bool | None]:
        """Few pages at once until one of their kind has gained: the first ones may be in vain."""
        if reason not in GUESSES or self._stats.has_gained(url, template):
            return nullcontext()
        return self._trials

    async def _render(
        self,
        url: str,
        response: Response,
        static: Extracted,
        reason: str,
        template: str,
        extractor: PageExtractor,
    ) -> RenderedFacts:
        assert self._browser is not None
        with span("render", attributes={"reason": reason}):
            page = await self._browser.shared.renderer.render(
                response,
                self._browser.new_loader(),
                url=url,
                wait_for=self._options.wait_for,
                scroll=self._options.scroll,
                hash_routes=self._options.hash_routes,
                screenshot=self._options.screenshots,
            )
        rendered = rendered_response(response, page)
        facts = None
        if page.moved is None:
            facts = await extractor.extract(rendered, archive=False, links=self._routes(page))
        gained = facts is None or self._gained(static, facts)
        return RenderedFacts(
            page=page,
            response=rendered,
            facts=facts,
            frame=pack_page(url, page, static.frame) if static.frame else None,
            message=_message(page, reason, gained=gained),
            shape_stats=self._stats.learn(response.url, template, gained=gained),
        )

    def _gained(self, static: Extracted, rendered: Extracted) -> bool:
        """Whether rendering showed more text of the document, or links that no other page has.

        Menus that scripts add are neither: they are no part of the document, and all pages have
        the same.
        """
        new = _followed(rendered) - _followed(static) - self._known_links
        if len(self._known_links) < MAX_KNOWN_LINKS:
            self._known_links |= new
        return bool(new) or (
            rendered.text_length >= static.text_length + GAIN and not _is_same(static, rendered)
        )

    def _routes(self, page: RenderedPage) -> list[str]:
        if self._options.hash_routes:
            return list(page.routes)
        return [route.partition("#")[0] for route in page.routes]

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self.under_way += 1
        try:
            yield
        finally:
            self.under_way -= 1


async def open_rendering(
    context: JobContext, options: CrawlOptions, *, robots: RobotsGate, user_agent: str
) -> Rendering:
    """The rendering of a crawl. The browser starts with the first page that needs it."""
    settings, source_id = context.settings, context.job.source_id
    stats = await RenderStats.load(context.database, source_id) if source_id else RenderStats("")
    rules = _rules(options, await domain_of(context.database, options.seeds[0]))
    make = partial(Rendering, options, rules, stats, settings)
    if rules.mode is RenderMode.NEVER:
        return make(missing="rendering is turned off (never)")
    browser = find_browser(settings)
    if browser.path is None:
        if rules.mode is RenderMode.ALWAYS:
            raise GiveUp(f"the pages cannot be rendered: {browser.reason}", hint=INSTALL)
        return make(missing=browser.reason, hands_over=await context.can_hand_over())
    opened = partial(SharedBrowser, browser.path, RenderLimits.of(settings))
    shared = await context.shared.get("browser", opened)
    owner = str(context.lease.job_id)
    return make(CrawlBrowser(shared, partial(shared.loader, robots, owner, user_agent)))


def _rules(options: CrawlOptions, domain: Domain | None) -> RenderRules:
    """The rules of a crawl; its domain decides what its options leave open."""
    if domain is None:
        return RenderRules.of(options.render, options.render_urls)
    mode = options.render
    if mode is RenderMode.AUTO and domain.render is not None:
        mode = RenderMode(domain.render)
    return RenderRules.of(mode, [*options.render_urls, *domain.render_urls])


async def domain_of(database: Database, url: str) -> Domain | None:
    """The settings for the host of a URL; None if there are none."""
    try:
        return await Domains(database).get(host_of(url))
    except NotFound:
        return None


def _looks_empty(response: Response, facts: Extracted) -> str | None:
    if facts.needs_javascript:
        return "app_shell"
    has_content = facts.document is None or any(s.content for s in facts.document.sections)
    if not has_content and b"<script" in response.body:
        return "no_content"
    return None


def _followed(facts: Extracted) -> set[bytes]:
    return set(facts.links.urls.splitlines()[: facts.links.followed])


def _is_same(static: Extracted, rendered: Extracted) -> bool:
    """Whether both have the same document."""
    if static.document is None or rendered.document is None:
        return False
    return static.document.content_hash == rendered.document.content_hash


def _message(page: RenderedPage, reason: str, *, gained: bool) -> str:
    loaded = f"{page.requests} requests, {page.bytes:,} bytes, {page.seconds:.1f} s"
    notes = "" if gained else "; it shows no more than the static response"
    if page.cut:
        notes += "; read before its content was stable"
    return f"rendered ({reason}): {loaded}{notes}"
