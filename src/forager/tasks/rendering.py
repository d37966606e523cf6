"""Rendering of product pages: which tasks need a browser, and their pages from one."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from forager.archive.options import archive_options
from forager.archive.warc_record import ArchiveError
from forager.clock import local_time
from forager.db.database import Connection, Database
from forager.errors import ErrorKind, GiveUp, NotFound
from forager.extract.product.product import Product
from forager.fetch.polite import Fetching, PageFetch
from forager.fetch.response import Request, Response, agent_header
from forager.parsers.reading import Parsed
from forager.render.archive_records import read_static
from forager.render.finding import find_browser
from forager.render.limits import RenderLimits
from forager.render.renderer import RenderedPage
from forager.render.rules import RenderRules
from forager.render.shared import SharedBrowser
from forager.render.stats import RenderStats, upsert_shape_stats
from forager.settings import Settings
from forager.settings.crawling import RenderMode
from forager.tasks.stages.attempt import LeasedTask
from forager.tasks.store.claims import exists_renderer

# how long stats and the presence of a renderer are cached
KNOWN_FOR = 15.0
MAX_DOMAINS = 1_000
# redirects by script
MAX_MOVES = 3


def mode_of(task: LeasedTask) -> RenderMode:
    return RenderMode(task.render or RenderMode.AUTO)


class RenderDecisions:
    """Decides which tasks are visited with a browser, and learns from their pages."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._stats: OrderedDict[int, tuple[float, RenderStats]] = OrderedDict()
        self._renderer_known_until = 0.0
        self._has_renderer = False

    async def reason(self, task: LeasedTask) -> str | None:
        """Why the page of a task is rendered; None if the static response is tried first."""
        rules = RenderRules.of(mode_of(task), task.render_urls)
        if rules.mode is RenderMode.NEVER:
            return None
        if always := rules.always(task.url, task.url):
            return always
        is_first_visit = task.segment is None
        if not task.needs_browser and not is_first_visit:
            return None
        stats = await self._stats_of(task.domain_id)
        if task.needs_browser:
            is_check = task.browser_expired or stats.is_recheck_due(task.url)
            return None if is_check else "no_price"
        return "like_others" if stats.gains(task.url) else None

    async def needs_rendering(self, task: LeasedTask, parsed: Parsed) -> bool:
        """Whether a static page has no price, and may have one in a browser."""
        is_auto = mode_of(task) is RenderMode.AUTO
        # a parser that fails for the price, or is bypassed, fails in a browser as well
        is_failing = parsed.broke or parsed.stack_trace or "price" in parsed.withheld
        if not is_auto or is_failing or _has_price(parsed.product):
            return False
        stats = await self._stats_of(task.domain_id)
        return await self._is_renderer_known() and not stats.is_wasted(task.url)

    async def learn(
        self, connection: Connection, task: LeasedTask, product: Product | None, *, rendered: bool
    ) -> bool:
        """Store the stats of a page for others of its shape; returns whether it needs a browser.

        Call it for pages that were rendered, or whose task needed a browser before.
        """
        stats = await self._stats_of(task.domain_id)
        shape_stats = stats.learn(task.url, gained=rendered and _has_price(product))
        if shape_stats is not None:
            await upsert_shape_stats(connection, task.domain_id, [shape_stats])
        return rendered and stats.gains(task.url)

    async def _stats_of(self, domain_id: int) -> RenderStats:
        """What is known of the URL shapes of a domain, cached."""
        until, stats = self._stats.get(domain_id, (0.0, None))
        if stats is None or local_time() >= until:
            stats = await RenderStats.load(self._database, domain_id)
            self._stats[domain_id] = local_time() + KNOWN_FOR, stats
            while len(self._stats) > MAX_DOMAINS:
                self._stats.popitem(last=False)
        return stats

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
        self._agent = agent_header(settings)
        path = find_browser(settings).path
        self._shared = None if path is None else SharedBrowser(path, self._limits)

    @property
    def is_there(self) -> bool:
        return self._shared is not None

    @property
    def room(self) -> int:
        """Pages in progress at the same time; some are fetched while others are rendered."""
        return 2 * self._limits.pages if self.is_there else 0

    async def close(self) -> None:
        if self._shared is not None:
            await self._shared.__aexit__()

    async def render(self, fetch: PageFetch, response: Response) -> RenderedDownload:
        """Render a page; if a script redirects, the page that it leads to."""
        assert self._shared is not None
        # with the terms of the domain, beside the fetch of the page
        resources, domain = self._fetching.begin(fetch.domain), fetch.domain.name
        loader = self._shared.loader(resources, domain, self._agent)
        for _ in range(MAX_MOVES + 1):
            page = await self._shared.renderer.render(response, loader)
            if page.moved is None:
                return RenderedDownload(page, response)
            response = await fetch.fetch_page(Request(page.moved))
        raise GiveUp("scripts redirect the page again and again", kind=ErrorKind.RENDER)

    async def static_before(self, task: LeasedTask) -> Response | None:
        """The stored static response for a 304; None if the page must be fetched again."""
        if task.ref is None:
            return None
        try:
            return await read_static(self._storage, task.ref)
        except (ArchiveError, NotFound):
            return None


def _has_price(product: Product | None) -> bool:
    return product is not None and product.price is not None
