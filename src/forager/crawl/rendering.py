"""Rendering as a crawl uses it: which pages, why, and what is archived of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from multidict import CIMultiDict, CIMultiDictProxy

from forager.archive.record import ConversionRecord, MetadataRecord, pack
from forager.crawl.extraction.pool import Extracted, ExtractionPool
from forager.crawl.frontier.scope import Pattern
from forager.crawl.options import CrawlOptions, RenderMode
from forager.errors import ErrorKind, GiveUp, Retry
from forager.extract.kinds import ContentKind
from forager.fetch.response import Response
from forager.fetch.robots.gate import Paced, RobotsGate
from forager.fetch.sender import Sender
from forager.jobs.context import JobContext
from forager.render.finding import INSTALL, find_browser
from forager.render.lessons import Lessons
from forager.render.limits import RenderLimits
from forager.render.renderer import RENDERED_TYPE, RenderedPage, Renderer
from forager.render.resources import robots_check
from forager.render.store import Lesson
from forager.tracing import span

# a static response with less text than this may be a shell, if others of its shape were
LITTLE_TEXT = 600
# characters by which a page must grow for its rendering to count as a gain
GAIN = 100
MAX_LISTED = 200


@dataclass(frozen=True, slots=True)
class RenderedFacts:
    """A page as its scripts left it, with what the crawl stores of it."""

    page: RenderedPage
    response: Response
    # None if scripts led elsewhere
    facts: Extracted | None
    # packed records: of the rendered page, and of what was loaded for it
    frame: bytes
    resources_frame: bytes
    words: str
    lesson: Lesson | None


class Rendering:
    """Decides which pages of a crawl are rendered, and renders them.

    Without a renderer there is no browser, for the reason in `missing`.
    """

    def __init__(
        self,
        options: CrawlOptions,
        lessons: Lessons,
        renderer: Renderer | None,
        *,
        missing: str = "",
        skip_unchanged: bool = False,
    ) -> None:
        self._options = options
        self._lessons = lessons
        self._renderer = renderer
        self._missing = missing
        self.skip_unchanged = skip_unchanged
        self._patterns = [Pattern.compile(text) for text in options.render_urls]
        # pages that wait for the browser or are in it
        self.under_way = 0

    # --- decisions -------------------------------------------------------------------------

    def reason(self, url: str, response: Response, facts: Extracted) -> str | None:
        """Why a page is to be rendered, in a word for the ledger; None if it is not."""
        if facts.kind not in (ContentKind.HTML, ContentKind.XHTML) or facts.noindex:
            return None
        if self._options.render is RenderMode.NEVER or facts.refresh is not None:
            return None
        if self._options.render is RenderMode.ALWAYS:
            return "always"
        if "#" in url:
            return "hash_route"
        if any(pattern.matches(response.url) for pattern in self._patterns):
            return "pattern"
        if reason := _looks_empty(response, facts):
            return None if self._lessons.is_wasted(response.url) else reason
        if facts.text_length <= LITTLE_TEXT and self._lessons.gains(response.url):
            return "like_others"
        return None

    def check_browser(self, url: str, reason: str) -> str | None:
        """Why a page that should be rendered is not; Retry if that would lose what it was."""
        if self._renderer is not None:
            return None
        if self._lessons.gains(url):
            message = f"pages like this one need a browser, and there is none: {self._missing}"
            raise Retry(message, kind=ErrorKind.RENDER, hint=INSTALL)
        return f"not rendered, although it should be ({reason}): {self._missing}"

    # --- rendering -------------------------------------------------------------------------

    async def render(
        self, url: str, response: Response, static: Extracted, reason: str, pool: ExtractionPool
    ) -> RenderedFacts:
        assert self._renderer is not None
        with self._counted(), span("render", attributes={"reason": reason}):
            page = await self._renderer.render(
                response,
                url=url,
                wait_for=self._options.wait_for,
                scroll=self._options.scroll,
                hash_routes=self._options.hash_routes,
            )
        rendered = _as_response(response, page)
        facts = None
        if page.moved is None:
            facts = await pool.extract(rendered, archive=False, links=self._routes(page))
        gained = facts is None or _gained(static, facts)
        now = datetime.now(UTC)
        return RenderedFacts(
            page=page,
            response=rendered,
            facts=facts,
            frame=pack(ConversionRecord(url, now, page.html, RENDERED_TYPE)),
            resources_frame=pack(MetadataRecord(url, now, _listed(page))),
            words=_words(page, reason, gained=gained),
            lesson=self._lessons.learn(response.url, gained=gained),
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
    context: JobContext,
    stack: AsyncExitStack,
    options: CrawlOptions,
    *,
    sender: Sender,
    robots: RobotsGate,
    user_agent: str,
) -> Rendering:
    """The rendering of a crawl. The browser starts with the first page that needs it."""
    settings = context.settings
    lessons = await Lessons.load(context.database, context.job.source_id or "")
    if options.render is RenderMode.NEVER:
        return Rendering(
            options, lessons, None, missing="the crawl was started with --render never"
        )
    browser = find_browser(settings)
    if browser.path is None:
        if options.render is RenderMode.ALWAYS:
            raise GiveUp(f"the pages cannot be rendered: {browser.reason}", hint=INSTALL)
        return Rendering(options, lessons, None, missing=browser.reason)
    renderer = Renderer(
        browser.path,
        RenderLimits.of(settings),
        Paced(sender, robots),
        robots_check(robots),
        user_agent=user_agent,
    )
    await stack.enter_async_context(renderer)
    return Rendering(options, lessons, renderer, skip_unchanged=settings.render_skip_unchanged)


def _looks_empty(response: Response, facts: Extracted) -> str | None:
    if facts.needs_javascript:
        return "app_shell"
    has_content = facts.document is None or any(s.content for s in facts.document.sections)
    if not has_content and b"<script" in response.body:
        return "no_content"
    return None


def _gained(static: Extracted, rendered: Extracted) -> bool:
    more_text = rendered.text_length >= static.text_length + GAIN
    return more_text or len(rendered.links) > len(static.links)


def _as_response(response: Response, page: RenderedPage) -> Response:
    """The rendered page in place of the static body; directives in headers still count."""
    kept = {
        name: value
        for name, value in response.headers.items()
        if name.lower() in ("x-robots-tag", "link", "content-language")
    }
    return replace(
        response,
        headers=CIMultiDictProxy(CIMultiDict({**kept, "Content-Type": RENDERED_TYPE})),
        body=page.html,
    )


def _words(page: RenderedPage, reason: str, *, gained: bool) -> str:
    loaded = f"{page.requests} requests, {page.bytes:,} bytes, {page.seconds:.1f} s"
    notes = "" if gained else "; it shows no more than the static response"
    if page.cut:
        notes += "; read before its content was stable"
    return f"rendered ({reason}): {loaded}{notes}"


def _listed(page: RenderedPage) -> dict[str, str]:
    """What was loaded for a page, as fields of a metadata record."""
    fields = {"render-seconds": f"{page.seconds:.3f}", "render-requests": str(page.requests)}
    for number, each in enumerate(page.resources[:MAX_LISTED], start=1):
        result = f"refused ({each.refused})" if each.refused else f"{each.status} {each.size}"
        cached = " cached" if each.cached else ""
        fields[f"resource-{number}"] = f"{result}{cached} {each.type} {each.url}"
    return fields
