"""Rendering of product pages: which tasks need a browser, and their pages from one."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache

from forager.archive.options import archive_options
from forager.archive.record import ArchiveError
from forager.clock import local_time
from forager.db.database import Connection, Database
from forager.errors import ErrorKind, GiveUp, NotFound
from forager.extract.product.record import Product
from forager.extract.wildcard import Pattern
from forager.fetch.polite import DomainTerms, Fetching, PageFetch
from forager.fetch.response import Request, Response, agent_header
from forager.parsers.reading import Parsed
from forager.render import store
from forager.render.finding import find_browser
from forager.render.lessons import Lessons
from forager.render.limits import RenderLimits
from forager.render.records import read_static
from forager.render.renderer import RenderedPage, Renderer
from forager.render.resources import AssetCache, ResourceLoader
from forager.settings import Settings
from forager.settings.crawling import RenderMode
from forager.tasks.stages.attempt import HeldTask
from forager.tasks.store.claims import exists_renderer

# how long lessons and the presence of a renderer are cached
KNOWN_FOR = 15.0
MAX_DOMAINS = 1_000
CACHED_DOMAINS = 8
# redirects by script
MAX_MOVES = 3


def mode_of(task: HeldTask) -> RenderMode:
    return RenderMode(task.render or RenderMode.AUTO)


class RenderDecisions:
    """Decides which tasks are visited with a browser, and learns from their pages."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._lessons: OrderedDict[int, tuple[float, Lessons]] = OrderedDict()
        self._renderer_known_until = 0.0
        self._has_renderer = False

    async def reason(self, task: HeldTask) -> str | None:
        """Why the page of a task is rendered; None if the static response is tried first."""
        mode = mode_of(task)
        if mode is RenderMode.NEVER:
            return None
        if mode is RenderMode.ALWAYS:
            return "always"
        if any(_pattern(text).matches(task.url) for text in task.render_urls):
            return "pattern"
        is_first_visit = task.segment is None
        if not task.needs_browser and not is_first_visit:
            return None
        lessons = await self._lessons_of(task.domain_id)
        if task.needs_browser:
            return None if lessons.is_recheck_due(task.url) else "no_price"
        return "like_others" if lessons.gains(task.url) else None

    async def needs_rendering(self, task: HeldTask, parsed: Parsed) -> bool:
        """Whether a static page has no price, and may have one in a browser."""
        is_auto = mode_of(task) is RenderMode.AUTO
        if not is_auto or _has_price(parsed.product) or parsed.broke or parsed.stack_trace:
            return False
        lessons = await self._lessons_of(task.domain_id)
        return await self._is_renderer_known() and not lessons.is_wasted(task.url)

    async def learn(
        self, connection: Connection, task: HeldTask, product: Product | None, *, rendered: bool
    ) -> bool:
        """Store the lesson of a page for others of its shape; returns whether it needs a browser.

        Call it for pages that were rendered, or whose task needed a browser before.
        """
        lessons = await self._lessons_of(task.domain_id)
        lesson = lessons.learn(task.url, gained=rendered and _has_price(product))
        if lesson is not None:
            await store.upsert_lessons(connection, task.domain_id, [lesson])
        return rendered and lessons.gains(task.url)

    async def _lessons_of(self, domain_id: int) -> Lessons:
        """What is known of the URL shapes of a domain, cached."""
        until, lessons = self._lessons.get(domain_id, (0.0, None))
        if lessons is None or local_time() >= until:
            lessons = await Lessons.load(self._database, domain_id)
            self._lessons[domain_id] = local_time() + KNOWN_FOR, lessons
            while len(self._lessons) > MAX_DOMAINS:
                self._lessons.popitem(last=False)
        return lessons

    async def _is_renderer_known(self) -> bool:
        if local_time() >= self._renderer_known_until:
            self._has_renderer = await self._database.run(
                exists_renderer, stale_after=self._settings.stale_after
            )
            self._renderer_known_until = local_time() + KNOWN_FOR
        return self._has_renderer


@dataclass(frozen=True, slots=True)
class RenderedDownload:
    """A rendered page, and the static response that it was made from."""

    page: RenderedPage
    static: Response


class TaskBrowser:
    """The browser of a worker for tasks, started with the first page that needs it."""

    def __init__(self, settings: Settings, fetching: Fetching) -> None:
        self._settings = settings
        self._fetching = fetching
        self._limits = RenderLimits.of(settings)
        self._storage = archive_options(settings).open()
        self._caches: OrderedDict[str, AssetCache] = OrderedDict()
        self._renderer: Renderer | None = None
        path = find_browser(settings).path
        if path is not None:
            self._renderer = Renderer(path, self._limits, user_agent=agent_header(settings))

    @property
    def is_there(self) -> bool:
        return self._renderer is not None

    @property
    def room(self) -> int:
        """Pages in progress at the same time; some are fetched while others are rendered."""
        return 2 * self._limits.pages if self.is_there else 0

    async def close(self) -> None:
        if self._renderer is not None:
            await self._renderer.__aexit__(None, None, None)

    async def render(self, fetch: PageFetch, response: Response) -> RenderedDownload:
        """Render a page; if a script redirects, the page that it leads to."""
        assert self._renderer is not None
        loader = self._loader(fetch.domain)
        for _ in range(MAX_MOVES + 1):
            page = await self._renderer.render(response, loader)
            if page.moved is None:
                return RenderedDownload(page, response)
            response = await fetch.fetch_page(Request(page.moved))
        raise GiveUp("scripts redirect the page again and again", kind=ErrorKind.RENDER)

    async def static_before(self, task: HeldTask) -> Response | None:
        """The stored static response for a 304; None if the page must be fetched again."""
        if task.ref is None:
            return None
        try:
            return await read_static(self._storage, task.ref)
        except (ArchiveError, NotFound):
            return None

    def _loader(self, domain: DomainTerms) -> ResourceLoader:
        """A loader with the terms of the domain and a cache that no other domain shares."""
        cache = self._caches.pop(domain.name, None)
        if cache is None:
            cache = AssetCache(self._limits.cache_bytes // CACHED_DOMAINS)
        self._caches[domain.name] = cache
        while len(self._caches) > CACHED_DOMAINS:
            self._caches.popitem(last=False)
        resources = self._fetching.begin(domain)
        return ResourceLoader(resources, resources.check, self._limits, cache)


def _has_price(product: Product | None) -> bool:
    return product is not None and product.price is not None


@lru_cache(maxsize=1_000)
def _pattern(text: str) -> Pattern:
    return Pattern.compile(text)
