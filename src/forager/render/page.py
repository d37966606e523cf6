"""One page in a browser: loaded, waited for, scrolled, and read as HTML."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from playwright.async_api import BrowserContext, Page, Request, Route, WebSocketRoute
from playwright.async_api import Error as PlaywrightError

from forager.render.link import Message

SendRequest = Callable[[dict[str, Any], bytes], Awaitable[Message]]

TICK = 0.1
# the content is stable when nothing has changed and nothing was loaded for this long
QUIET_SECONDS = 0.4
# a page with less text than this is given more time to begin
LITTLE_TEXT = 200
EMPTY_PAGE_SECONDS = 3.0
SNAPSHOT_SECONDS = 10.0
MAX_HTML = 20 * 2**20

_WATCH = (files("forager.render") / "watch.js").read_text("utf-8")
_SNAPSHOT = (files("forager.render") / "snapshot.js").read_text("utf-8")
_QUIET = "ms => window.__forager.quiet(ms)"
_SCROLL = """() => {
    const before = document.documentElement.scrollHeight;
    window.scrollTo(0, before);
    return before;
}"""
_HEIGHT = "() => document.documentElement.scrollHeight"


class PageRun:
    """Renders one page in a fresh context."""

    def __init__(self, request: dict[str, Any], send: SendRequest) -> None:
        self._request = request
        self._send = send
        self._page: Page | None = None
        self._in_flight = 0
        self._last_request = time.monotonic()
        # seconds that the page has spent on itself
        self._own = 0.0
        self._own_limit: float = request["seconds"]
        self._over = asyncio.Event()
        self._started = False
        self._moved: str | None = None
        self._failure: str | None = None

    async def run(self, context: BrowserContext) -> Message:
        await context.add_init_script(_WATCH)
        await context.route("**/*", self._route)
        await context.route_web_socket("**/*", _refuse_socket)
        self._page = page = await context.new_page()
        context.on("page", _close_popup)
        page.on("crash", lambda _: self._end("the page crashed its process"))
        page.on("dialog", lambda dialog: asyncio.ensure_future(_quietly(dialog.dismiss())))
        loading = asyncio.create_task(self._load(page))
        over = asyncio.create_task(self._over.wait())
        try:
            await asyncio.wait(
                {loading, over},
                timeout=self._request["wall_seconds"],
                return_when=asyncio.FIRST_COMPLETED,
            )
            if loading.done():
                loading.result()
            return await self._result(page)
        finally:
            for task in (loading, over):
                task.cancel()
            await asyncio.gather(loading, over, return_exceptions=True)

    def _end(self, failure: str | None = None) -> None:
        self._failure = self._failure or failure
        self._over.set()

    def tick(self, seconds: float) -> None:
        """Count time against the page, unless it waits for a response."""
        if not self._in_flight:
            self._own += seconds
        if self._own > self._own_limit:
            self._end()

    # --- waiting ---------------------------------------------------------------------------

    async def _load(self, page: Page) -> None:
        try:
            await page.goto(self._request["url"], wait_until="domcontentloaded", timeout=0)
            self._own_limit = min(self._own_limit, self._own + self._request["settle_seconds"])
            if self._request["wait_for"]:
                self._own_limit = self._request["seconds"]
                await page.wait_for_selector(self._request["wait_for"], state="attached", timeout=0)
            await self._settle(page)
            for _ in range(self._request["scroll"]):
                before = await page.evaluate(_SCROLL)
                await self._settle(page)
                if await page.evaluate(_HEIGHT) <= before:
                    break
        except PlaywrightError:
            if self._moved is None:
                raise

    async def _settle(self, page: Page) -> None:
        """Wait until nothing changes and nothing is loaded."""
        began = self._own
        while True:
            text = await page.evaluate(_QUIET, QUIET_SECONDS * 1000)
            idle = time.monotonic() - self._last_request
            if self._in_flight or idle < QUIET_SECONDS:
                await asyncio.sleep(TICK)
            elif _count(text) >= LITTLE_TEXT or self._own - began > EMPTY_PAGE_SECONDS:
                return
            else:
                await asyncio.sleep(TICK)

    # --- requests --------------------------------------------------------------------------

    async def _route(self, route: Route) -> None:
        request = route.request
        main = self._is_main(request)
        if main and self._started:
            # a redirect by script: the target is another page
            self._moved = request.url
            self._end()
            await _quietly(route.abort("aborted"))
            return
        self._started = self._started or main
        self._in_flight += 1
        try:
            await self._serve(route, request, main)
        finally:
            self._in_flight -= 1
            self._last_request = time.monotonic()

    async def _serve(self, route: Route, request: Request, main: bool) -> None:
        sent = {
            "url": request.url,
            "method": request.method,
            "headers": request.headers,
            "type": request.resource_type,
            "main": main,
        }
        reply, blobs = await self._send(sent, request.post_data_buffer or b"")
        if "refused" in reply:
            if reply.get("over"):
                self._end()
            await _quietly(route.abort("blockedbyclient"))
            return
        await _quietly(
            route.fulfill(status=reply["status"], headers=reply["headers"], body=blobs[0])
        )

    def _is_main(self, request: Request) -> bool:
        try:
            if not request.is_navigation_request():
                return False
            return self._page is not None and request.frame == self._page.main_frame
        except PlaywrightError:  # a frame that is being made, or a worker
            return False

    # --- what is read ----------------------------------------------------------------------

    async def _result(self, page: Page) -> Message:
        if self._moved is not None:
            return {"moved": self._moved}, []
        if self._failure is not None:
            return {"failed": self._failure}, []
        cut = self._over.is_set()
        try:
            async with asyncio.timeout(SNAPSHOT_SECONDS):
                read = await self._snapshot(page)
                picture = (
                    await page.screenshot(full_page=True) if self._request["screenshot"] else b""
                )
        except TimeoutError:
            return {"failed": "the page does not respond"}, []
        if not isinstance(read, dict) or not isinstance(read.get("html"), str):
            return {"failed": "the page cannot be read"}, []
        if not read["html"]:
            return {"failed": f"the page has more than {MAX_HTML:,} characters"}, []
        header = {
            "url": str(read.get("url")),
            "routes": [str(each) for each in read.get("routes") or ()],
            "cut": cut,
        }
        return header, [read["html"].encode("utf-8", "replace"), picture]

    async def _snapshot(self, page: Page) -> Any:
        """The document as HTML; read again if it is replaced at that moment."""
        while True:
            try:
                return await page.evaluate(_SNAPSHOT, [MAX_HTML, self._request["hash_routes"]])
            except PlaywrightError:
                await asyncio.sleep(TICK)


def _count(value: Any) -> int:
    """A number that a page has computed, which may be anything."""
    return int(value) if isinstance(value, int) else LITTLE_TEXT


async def _close_popup(page: Page) -> None:
    await _quietly(page.close())


async def _refuse_socket(socket: WebSocketRoute) -> None:
    await _quietly(socket.close())


async def _quietly(action: Awaitable[Any]) -> None:
    """The page may be gone by now."""
    with contextlib.suppress(PlaywrightError):
        await action
