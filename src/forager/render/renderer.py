"""The renderer of a process: pages in, rendered pages out, browsers replaced as needed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from forager.errors import ErrorKind, Retry
from forager.fetch.response import Response
from forager.processes.turns import FairTurns
from forager.render.browser import Browser, BrowserDied, BrowserUnusable, Serve
from forager.render.limits import RenderLimits
from forager.render.link import Message
from forager.render.resources import PageAccount, Resource, ResourceLoader

# share of the memory limit: a browser that uses more than this between pages is replaced
LEAKED_SHARE = 0.6
# the content type of stored rendered pages
RENDERED_TYPE = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page after its scripts have run. `moved`: they led to another URL instead."""

    html: bytes
    url: str
    routes: tuple[str, ...]
    # the content was still changing when it was read
    cut: bool
    moved: str | None
    screenshot: bytes
    seconds: float
    resources: tuple[Resource, ...]

    @property
    def requests(self) -> int:
        """Requests that were sent for it."""
        return sum(1 for each in self.resources if each.refused is None and not each.cached)

    @property
    def bytes(self) -> int:
        return sum(each.size for each in self.resources if not each.cached)


class Renderer:
    """Renders pages in a shared browser, which is replaced after a failure.

    The browser has no network: the `ResourceLoader` of a page sends its requests. Owners of pages
    take turns.

        async with Renderer(browser_path(settings), limits) as renderer:
            page = await renderer.render(response, loader)
    """

    def __init__(self, browser: str, limits: RenderLimits) -> None:
        self._path = browser
        self._limits = limits
        self._turns = FairTurns(limits.pages)
        self._alone = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._current: Browser | None = None
        self._retired: set[Browser] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        browsers = [*self._retired, *([self._current] if self._current else [])]
        await asyncio.gather(*(browser.stop() for browser in browsers))

    async def render(
        self,
        document: Response,
        loader: ResourceLoader,
        *,
        url: str | None = None,
        wait_for: str | None = None,
        scroll: int = 0,
        hash_routes: bool = False,
        screenshot: bool = False,
    ) -> RenderedPage:
        """Render a page whose document was fetched; Retry of the kind `render` if that fails.

        `loader` sends its requests. `url` is the route of the page, if it is more than the URL of
        the document. The page is read after the CSS selector `wait_for` matches, and after
        scrolling `scroll` times to the end of a list that grows. With `hash_routes`, links behind
        #/ are routes.
        """
        request = {
            "url": url or document.url,
            "user_agent": loader.user_agent,
            "wait_for": wait_for,
            "scroll": scroll,
            "hash_routes": hash_routes,
            "screenshot": screenshot,
        }
        account = PageAccount(document, pictures=screenshot)
        try:
            async with self._turns.turn(loader.owner):
                began = time.perf_counter()
                (header, blobs), account = await self._render(request, account, loader)
        except BrowserUnusable as error:
            raise Retry(error.message, kind=ErrorKind.RENDER) from error
        if "failed" in header:
            raise _failed(header["failed"])
        if account.error is not None and "moved" not in header:
            raise account.error
        html, picture = blobs or (b"", b"")
        return RenderedPage(
            html=html,
            url=str(header.get("url", "")),
            routes=tuple(header.get("routes", ())),
            cut=bool(header.get("cut")),
            moved=header.get("moved"),
            screenshot=picture,
            seconds=time.perf_counter() - began,
            resources=tuple(account.resources),
        )

    async def _render(
        self, request: dict[str, Any], account: PageAccount, loader: ResourceLoader
    ) -> tuple[Message, PageAccount]:
        try:
            return await self._in_shared_browser(request, partial(loader.serve, account)), account
        except BrowserDied as death:
            if death.guilty:
                raise _failed(death.cause) from death
        # another page may have been the cause: this one gets a separate browser
        account = PageAccount(account.document, pictures=account.pictures)
        async with self._alone:
            browser = await Browser.start(self._path, self._limits)
            try:
                return await browser.render(request, partial(loader.serve, account)), account
            except BrowserDied as death:
                raise _failed(death.cause) from death
            finally:
                await browser.stop()

    async def _in_shared_browser(self, request: dict[str, Any], serve: Serve) -> Message:
        browser = await self._usable_browser()
        try:
            return await browser.render(request, serve)
        finally:
            if browser in self._retired and not browser.is_busy:
                self._retired.discard(browser)
                await browser.stop()

    async def _usable_browser(self) -> Browser:
        async with self._starting:
            current = self._current
            if current is not None and self._is_spent(current):
                self._current = None
                if current.is_busy:
                    self._retired.add(current)
                else:
                    await current.stop()
            if self._current is None:
                self._current = await Browser.start(self._path, self._limits)
            return self._current

    def _is_spent(self, browser: Browser) -> bool:
        leaked = browser.memory_mb > LEAKED_SHARE * self._limits.memory_mb
        return (
            not browser.is_alive
            or browser.pages_rendered >= self._limits.pages_per_browser
            or (leaked and not browser.is_busy)
        )


def _failed(cause: str) -> Retry:
    return Retry(f"the page cannot be rendered: {cause}", kind=ErrorKind.RENDER)
