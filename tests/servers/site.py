"""A web site made for a test, on a real socket and a separate loop; unknown paths misbehave.

Pages are found by path and query; whatever is not among them is left to the hostile server, so
that a site may link to `/reset`, `/endless` or `/status/503?Retry-After=1`. `pages` may be changed
at any time; a page with an ETag or a Last-Modified answers 304 while it is the one asked about.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple

from servers import hostile

WORDS = "Every page says something of its own, so that none is taken for another one: "


@dataclass(frozen=True, slots=True)
class Page:
    """One answer. `hangs`: not before the site is released."""

    body: bytes = b""
    status: str = "200 OK"
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False


Answer = Page | Callable[[int], Page]


def html(
    title: str, links: Iterable[str] = (), *, head: str = "", body: str = "", **headers: str
) -> Page:
    """A page with a text that no other page has; a link is an href, or a whole element."""
    anchors = "\n".join(a if a.startswith("<") else f'<a href="{a}">{a}</a>' for a in links)
    text = f"<p>{WORDS}{title}. {title} is what this page is about.</p>"
    document = f"<html><head><title>{title}</title>{head}</head><body>{text}{body}{anchors}</body>"
    return Page(document.encode(), headers={k.replace("_", "-"): v for k, v in headers.items()})


def tagged(page: Page) -> Page:
    """The page with an ETag that changes with its body."""
    tag = f'"{sha256(page.body).hexdigest()[:16]}"'
    return replace(page, headers={**page.headers, "ETag": tag})


def moved(target: str, status: str = "301 Moved") -> Page:
    return Page(b"", status, {"Location": target})


def text(content: str, content_type: str = "text/plain") -> Page:
    return Page(content.encode(), headers={"Content-Type": content_type})


class Request(NamedTuple):
    target: str
    at: float


class Site(hostile.HostileServer):
    """`pages` by target; `log` is every request with its time.

    `conditional` counts requests that ask only for what changed, `not_modified` the answers 304.
    """

    def __init__(self, pages: Mapping[str, Answer] | None = None, *, delay: float = 0.0) -> None:
        super().__init__()
        self.pages: dict[str, Answer] = dict(pages or {})
        self.delay = delay
        self.log: list[Request] = []
        # the last request for each target, as it was sent
        self.heads: dict[str, bytes] = {}
        self.hanging = 0
        self.conditional: Counter[str] = Counter()
        self.not_modified: Counter[str] = Counter()
        self._released = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def hits(self) -> Counter[str]:
        return Counter(request.target for request in list(self.log))

    def release(self) -> None:
        """Let everything that hangs be answered, now and later."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._released.set)

    async def handle(self, reader: hostile.Reader, writer: hostile.Writer) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            target = head.split(b" ", 2)[1].decode()
            self.log.append(Request(target, time.monotonic()))
            self.heads[target] = head
            answer = hostile._Answer(self, head, writer)
            page = self.pages.get(target)
            if page is None:
                route = hostile.ROUTES.get(answer.name, hostile._missing)
                if not await route(answer):
                    return
                continue
            page = page(self.hits[target]) if callable(page) else page
            self.conditional[target] += _is_conditional(answer)
            await self._serve_page(target, page, answer)

    async def _serve_page(self, target: str, page: Page, answer: hostile._Answer) -> None:
        if page.hangs:
            self.hanging += 1
            try:
                await self._released.wait()
            finally:
                self.hanging -= 1
        await asyncio.sleep(self.delay)
        headers = {name.replace("-", "_"): value for name, value in page.headers.items()}
        if _is_current(page, answer):
            self.not_modified[target] += 1
            await answer.page(b"", "304 Not Modified", **headers)
        else:
            await answer.page(page.body, page.status, **headers)

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve from a thread, so that whatever a test does on its loop does not slow the site."""
        ready = threading.Event()
        ended = asyncio.Event()

        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            async with self:
                ready.set()
                await ended.wait()

        thread = threading.Thread(target=lambda: asyncio.run(serve()), name="site")
        thread.start()
        ready.wait(10)
        try:
            yield
        finally:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(ended.set)
            thread.join(10)


def _is_conditional(answer: hostile._Answer) -> bool:
    return bool(answer.header("If-None-Match") or answer.header("If-Modified-Since"))


def _is_current(page: Page, answer: hostile._Answer) -> bool:
    """Whether the page is the one that was asked about; an ETag decides where one was sent."""
    tag = answer.header("If-None-Match")
    if tag:
        return tag == page.headers.get("ETag")
    since = answer.header("If-Modified-Since")
    return bool(since) and since == page.headers.get("Last-Modified")
