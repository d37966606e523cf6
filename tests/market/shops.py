"""Twenty shops on loopback whose truth is known, and the faults that they have."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum

from servers.base import LoopbackServer
from servers.proxies import HttpProxy, Reader, Writer

PAGE = """<!doctype html><html lang="en"><head><title>{name}</title>
<script type="application/ld+json">{{"@context": "https://schema.org", "@type": "Product",
"name": "{name}", "sku": "{sku}", "offers": {{"@type": "Offer", "price": "{price}",
"priceCurrency": "EUR", "availability": "https://schema.org/{stock}"}}}}</script></head>
<body><h1>{name}</h1><p>One of the things that this shop sells.</p></body></html>"""
# what a shop shows at every URL, with a price that is plausible
SAME = {"name": "Thing of the day", "sku": "today", "price": "20.00", "stock": "InStock"}
CAPTCHA = b'<html><body><form id="challenge-form">Are you human?</form></body></html>'


class Fault(StrEnum):
    """What a whole shop does instead of selling."""

    BUSY = "503"
    OUTAGE = "outage"
    CAPTCHA = "captcha"
    GONE = "404"
    HANGS = "hangs"
    SAME_PAGE = "same page"


@dataclass(frozen=True, slots=True)
class Truth:
    """The offer that a page shows."""

    price: str
    in_stock: bool = True

    @property
    def shown(self) -> tuple[str, str]:
        return self.price, "in_stock" if self.in_stock else "out_of_stock"


class Shop(LoopbackServer):
    """Products by name. `served` are the offers that any client received, in order."""

    def __init__(self, number: int, products: int) -> None:
        super().__init__()
        self.number = number
        self.fault: Fault | None = None
        self.products = {f"p{n}": Truth(f"{10 + n % 80}.00") for n in range(products)}
        # pages that are gone while the rest of the shop is well
        self.gone: set[str] = set()
        self.served: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self.requests: Counter[str] = Counter()
        self._over = asyncio.Event()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, name: str) -> str:
        return f"http://{self.host}/{name}"

    def fall_ill(self, fault: Fault | None) -> None:
        """Called on the loop of the server; whatever hangs is cut off."""
        self.fault = fault
        self._over.set()
        self._over = asyncio.Event()

    def change_offers(self, chance: random.Random) -> None:
        for name, truth in self.products.items():
            if chance.random() < 0.3:
                price = float(truth.price) * chance.choice([0.8, 0.9, 0.97, 1.1, 1.25])
                truth = replace(truth, price=f"{min(max(price, 2), 900):.2f}")
            if chance.random() < 0.1:
                truth = replace(truth, in_stock=not truth.in_stock)
            self.products[name] = truth

    async def handle(self, reader: Reader, writer: Writer) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode().removeprefix("/")
            self.requests[str(self.fault)] += 1
            if path == "robots.txt":
                writer.write(_answer("200 OK", b"User-agent: *\nAllow: /\n", "text/plain"))
            elif self.fault is Fault.OUTAGE:
                writer.transport.abort()
                return
            elif self.fault is Fault.HANGS:
                await self._over.wait()
                return
            else:
                writer.write(self._answer(path))
            await writer.drain()
            if b"\r\nconnection: close\r\n" in head.lower():
                return

    def _answer(self, name: str) -> bytes:
        if self.fault is Fault.BUSY:
            return _answer("503 Service Unavailable", b"later")
        if self.fault is Fault.CAPTCHA:
            return _answer("403 Forbidden", CAPTCHA)
        if self.fault is Fault.GONE or name in self.gone or name not in self.products:
            return _answer("404 Not Found", b"<html><body>not here</body></html>")
        if self.fault is Fault.SAME_PAGE:
            return _answer("200 OK", PAGE.format(**SAME).encode())
        truth = self.products[name]
        if self.served[name][-1:] != [truth.shown]:
            self.served[name].append(truth.shown)
        stock = "InStock" if truth.in_stock else "OutOfStock"
        sku = f"{self.number}-{name}"
        named = {"name": f"Thing {sku}", "sku": sku, "price": truth.price, "stock": stock}
        return _answer("200 OK", PAGE.format(**named).encode())


def _answer(status: str, body: bytes, kind: str = "text/html; charset=utf-8") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class SlowProxy(HttpProxy):
    """Takes its time for every connection."""

    delay = 0.5

    async def dial(self, host: str, port: int) -> tuple[Reader, Writer]:
        await asyncio.sleep(self.delay)
        return await super().dial(host, port)


@dataclass(slots=True)
class Shops:
    """All shops and two proxies, one of them slow, on a loop of their own."""

    shops: list[Shop]
    proxies: list[HttpProxy]
    loop: asyncio.AbstractEventLoop | None = None

    def fall_ill(self, faults: dict[int, Fault]) -> None:
        """Set the fault of every shop, by number; the others are well."""
        assert self.loop is not None

        async def change() -> None:
            for shop in self.shops:
                if shop.fault is not faults.get(shop.number):
                    shop.fall_ill(faults.get(shop.number))

        asyncio.run_coroutine_threadsafe(change(), self.loop).result(10)

    @contextmanager
    def open(self) -> Iterator[None]:
        ready, ended = threading.Event(), asyncio.Event()

        async def serve() -> None:
            self.loop = asyncio.get_running_loop()
            async with AsyncExitStack() as stack:
                for server in (*self.shops, *self.proxies):
                    await stack.enter_async_context(server)
                ready.set()
                await ended.wait()

        thread = threading.Thread(target=lambda: asyncio.run(serve()), name="shops")
        thread.start()
        ready.wait(10)
        try:
            yield
        finally:
            assert self.loop is not None
            self.loop.call_soon_threadsafe(ended.set)
            thread.join(10)
