"""The site: hosts on loopback ports with known expected outcomes that record every request.

A separate thread serves it, so that the harness does not slow it down.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from chaos.receiver import Receiver
from chaos.requests import Served
from chaos.shop import Shop
from chaos.truth import Kind, PageTruth, make_pages

ROBOTS = b"User-agent: *\nDisallow: /private/\n"
FLAKY_TIMES = 2
FAILURES = {Kind.GONE: 404, Kind.BROKEN: 500, Kind.UNAVAILABLE: 503}
SLOW_SECONDS = 0.6
CHECK_INTERVAL = 0.005
PRICES_EVERY = 1.0
START_LIMIT = 30.0
HEAD_LIMIT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0

    def encode(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} So", f"Content-Length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + self.body


@dataclass(slots=True)
class Host:
    """One port: its pages, or the shop's, and all requests for them."""

    name: str
    pages: dict[str, PageTruth] = field(default_factory=dict)
    port: int = 0
    log: list[Served] = field(default_factory=list)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}/"

    def answer(self, request: Served, tag: str) -> Answer:
        """Return the answer of a document page to one user agent; each crawl has its own."""
        page = self.pages.get(request.target)
        if page is None:
            return Answer(404)
        self.asked[request.agent, request.target] += 1
        if page.kind is Kind.FLAKY and self.asked[request.agent, request.target] <= FLAKY_TIMES:
            return Answer(500)
        if page.kind is Kind.MOVED:
            return Answer(301, headers={"Location": page.moved_to})
        if page.kind in FAILURES:
            return Answer(FAILURES[page.kind])
        return _page(page, request.agent, tag)


def _page(page: PageTruth, agent: str, tag: str) -> Answer:
    headers = {"Content-Type": "text/html; charset=utf-8"}
    if page.kind is Kind.TAGGED:
        headers["ETag"] = f'"{page.path}"'
        if tag == headers["ETag"]:
            return Answer(304, headers=headers)
    news = f"<p>News for {escape(agent)}.</p>" if page.kind is Kind.CHANGING else ""
    links = "".join(f'<li><a href="{link}">{link}</a></li>' for link in page.links)
    body = (
        f"<!doctype html><html lang='en'><head><title>{page.title}</title></head><body><main>"
        f"<h1>{page.title}</h1><p>{page.title} {page.text}.</p>{news}</main>"
        f"<ul>{links}</ul></body></html>"
    )
    wait = SLOW_SECONDS if page.kind is Kind.SLOW else 0.0
    return Answer(200, body.encode(), headers, wait)


class Site:
    """Hosts with documents, a shop, and a webhook receiver."""

    def __init__(self, seed: int, *, hosts: int, pages: int, products: int) -> None:
        each = pages // hosts
        self.docs = [Host(f"docs-{n}", make_pages(seed, f"docs-{n}", each)) for n in range(hosts)]
        self.shop = Shop(seed, products)
        self.shop_host = Host("shop")
        self.hook_host = Host("hook")
        self.receiver = Receiver(seed)
        self.prices_change = False
        self._looked = 0.0

    @property
    def hosts(self) -> list[Host]:
        return [*self.docs, self.shop_host]

    @property
    def requests(self) -> int:
        return sum(len(host.log) for host in self.hosts)

    @contextlib.contextmanager
    def served(self) -> Iterator[None]:
        ready = threading.Event()
        ended = asyncio.Event()
        loops: list[asyncio.AbstractEventLoop] = []

        async def serve() -> None:
            loops.append(asyncio.get_running_loop())
            async with contextlib.AsyncExitStack() as stack:
                for host in (*self.hosts, self.hook_host):
                    await stack.enter_async_context(await self._listen(host))
                beside = [asyncio.ensure_future(work) for work in (self._look(), self._trade())]
                ready.set()
                await ended.wait()
                for work in beside:
                    work.cancel()

        thread = threading.Thread(target=lambda: asyncio.run(serve()), name="site", daemon=True)
        thread.start()
        if not ready.wait(START_LIMIT):
            raise TimeoutError("the site did not start")
        try:
            yield
        finally:
            loops[0].call_soon_threadsafe(ended.set)
            thread.join(START_LIMIT)

    async def _listen(self, host: Host) -> asyncio.Server:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            broken = (OSError, EOFError, ValueError, asyncio.LimitOverrunError)
            with contextlib.suppress(*broken, asyncio.CancelledError):
                await self._converse(host, reader, writer)
            writer.transport.abort()

        server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=HEAD_LIMIT)
        host.port = server.sockets[0].getsockname()[1]
        return server

    async def _converse(
        self, host: Host, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *fields = head.strip().split("\r\n")
            headers = {k.lower(): v.strip() for k, v in (f.split(":", 1) for f in fields)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            if host is self.hook_host:
                writer.write(Answer(self.receiver.receive(headers, body)).encode())
                continue
            request = Served(
                line.split()[1], headers.get("user-agent", ""), self._looked, time.monotonic()
            )
            host.log.append(request)
            try:
                answer = self._answer(host, request, headers.get("if-none-match", ""))
                await asyncio.sleep(answer.wait)
                writer.write(answer.encode())
            finally:
                request.ended = time.monotonic()

    def _answer(self, host: Host, request: Served, tag: str) -> Answer:
        if request.target == "/robots.txt":
            return Answer(200, ROBOTS, {"Content-Type": "text/plain"})
        if host is not self.shop_host:
            return host.answer(request, tag)
        name = request.target.removeprefix("/")
        if name not in self.shop.versions:
            return Answer(404)
        body, etag = self.shop.page(name)
        headers = {"Content-Type": "text/html"} | ({"ETag": etag} if etag else {})
        return Answer(304, b"", headers) if etag and tag == etag else Answer(200, body, headers)

    async def _look(self) -> None:
        """Record the last turn of the event loop: the next request arrived after it."""
        while True:
            self._looked = time.monotonic()
            await asyncio.sleep(CHECK_INTERVAL)

    async def _trade(self) -> None:
        while True:
            await asyncio.sleep(PRICES_EVERY)
            if self.prices_change:
                self.shop.raise_prices()
