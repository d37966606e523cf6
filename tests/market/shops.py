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
# templates of shops that state another price than they show, or none; each names its product by SKU
DEAL = """<!doctype html><html lang="en"><head><title>{name}</title>
<script type="application/ld+json">{{"@context": "https://schema.org", "@type": "Product",
"name": "{name}", "sku": "{sku}", "offers": {{"@type": "Offer", "price": "{list_price}",
"priceCurrency": "EUR", "availability": "https://schema.org/{stock}"}}}}</script></head>
<body><h1>{name}</h1><p><s>€{list_price}</s> <strong>€{price}</strong></p>
<button>Add to cart</button></body></html>"""
CROWNS = """<!doctype html><html lang="sv"><head><title>{name}</title></head><body><h1>{name}</h1>
<p>SKU: {sku}</p><p class="stock">{stock_text}</p><div class="price">{price}:-</div>
<button>Köp</button></body></html>"""
EMPTY = """<!doctype html><html lang="de-ch"><head><title>{name}</title></head><body><h1>{name}</h1>
<p>SKU: {sku}</p><p class="stock">{stock_text}</p><div class="price">{shown_price}</div>
<button>Add to cart</button><p>Shipping from CHF 9.90</p><div class="reviews">
<div class="review"><p>Bought it for CHF 20.-</p></div></div></body></html>"""
PARSED = """<!doctype html><html lang="en"><head><title>{name}</title>
<script type="application/ld+json">{{"@context": "https://schema.org", "@type": "Product",
"name": "{name}", "sku": "{sku}", "offers": {{"@type": "Offer", "price": "{list_price}",
"priceCurrency": "EUR", "availability": "https://schema.org/{stock}"}}}}</script></head>
<body><h1>{name}</h1><p {attributes}></p></body></html>"""
FLIPPING = DEAL.replace("<strong>", '<strong class="now">')
UNSTRUCK = FLIPPING.replace("<s>€{list_price}</s>", "")
# what a shop shows at every URL, with a price that is plausible
SAME = {"name": "Thing of the day", "sku": "today", "price": "20.00", "stock": "InStock"}
# instead of a product, with an amount that is no price of it
CATEGORY = """<!doctype html><html lang="en"><head><title>All products</title></head><body>
<h1>All products</h1><ul>{tiles}</ul></body></html>"""
TILE = (
    '<li class="product-card"><a href="/{name}">Thing {name}</a> <b class="price">€{price}</b></li>'
)
UNAVAILABLE = """<!doctype html><html lang="en"><head><title>No longer available</title></head>
<body><h1>This product is no longer available</h1><h2>You may also like</h2>
<div class="offer"><a href="/x">Thing of brass</a> <span class="price">€ 13.37</span></div>
</body></html>"""
SUCCESSOR = {"name": "Thing of the next generation", "sku": "next", "price": "13.37"}
# of list prices; no offer changes by it, so that a list price is never the price of the next hour
ABOVE = 1.3
CAPTCHA = b'<html><body><form id="challenge-form">Are you human?</form></body></html>'


class Fault(StrEnum):
    """What a whole shop does instead of selling."""

    BUSY = "503"
    OUTAGE = "outage"
    CAPTCHA = "captcha"
    GONE = "404"
    HANGS = "hangs"
    SAME_PAGE = "same page"
    EMPTY = "empty answers"


class Template(StrEnum):
    """How a shop shows its prices; all but the first mislead a reader."""

    PLAIN = "plain"
    DEAL = "structured list price beside a deal"
    CROWNS = "crowns without a sign"
    EMPTY = "price missing now and then, amounts elsewhere"
    RAISING = "a parser that raises now and then"
    HANGING = "a parser that hangs now and then"
    FLIPPING = "a deal beside a list price that is not always struck through"
    UNTRIED = "a first parser version that is wrong"
    LATE = "a parser that is rolled out after some visits"


# by which the parser of a shop is chosen
FOLDERS = {
    Template.RAISING: "raising/",
    Template.HANGING: "hanging/",
    Template.UNTRIED: "untried/",
    Template.LATE: "late/",
}


class Wrong(StrEnum):
    """What one page shows instead of its product."""

    CATEGORY = "category page"
    TO_CATEGORY = "redirect to a category"
    UNAVAILABLE = "no longer available"
    TO_SUCCESSOR = "redirect to a successor"


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
        self.template = Template.PLAIN
        # whether the price is missing, or the parser of the shop fails
        self.is_incomplete = False
        # pages that show something else
        self.wrong: dict[str, Wrong] = {}
        self.served: dict[str, list[tuple[str, str]]] = defaultdict(list)
        # how often a product was shown
        self.visits: Counter[str] = Counter()
        # offers that were shown by two visits or more
        self.lasting: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self._shown_in: dict[str, int] = {}
        self.requests: Counter[str] = Counter()
        self.hour = 0
        self.pages_requested = 0
        self._over = asyncio.Event()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, name: str) -> str:
        return f"http://{self.host}/{FOLDERS.get(self.template, '')}{name}"

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
            path = head.split(b" ", 2)[1].decode().rpartition("/")[2]
            self.requests[str(self.fault)] += 1
            self.pages_requested += path != "robots.txt"
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
        if self.fault is Fault.EMPTY:
            return _answer("200 OK", b"<!doctype html><html><body></body></html>")
        if self.fault is Fault.CAPTCHA:
            return _answer("403 Forbidden", CAPTCHA)
        if name == "all":
            return _answer("200 OK", self._category())
        if name == "next":
            return _answer("200 OK", PAGE.format(**SUCCESSOR, stock="InStock").encode())
        if self.fault is None and name in self.wrong:
            return self._wrong_page(self.wrong[name])
        if self.fault is Fault.GONE or name in self.gone or name not in self.products:
            return _answer("404 Not Found", b"<html><body>not here</body></html>")
        if self.fault is Fault.SAME_PAGE:
            return _answer("200 OK", PAGE.format(**SAME).encode())
        truth = self.products[name]
        if self.is_incomplete:
            return _answer("200 OK", self._page(name, truth))
        self._note(name, truth.shown)
        return _answer("200 OK", self._page(name, truth))

    def _note(self, name: str, shown: tuple[str, str]) -> None:
        """Retries within an hour are one visit."""
        if self.served[name][-1:] != [shown]:
            self.served[name].append(shown)
        elif self._shown_in[name] != self.hour and self.lasting[name][-1:] != [shown]:
            self.lasting[name].append(shown)
        if self._shown_in.get(name) != self.hour:
            self.visits[name] += 1
        self._shown_in[name] = self.hour

    def _page(self, name: str, truth: Truth) -> bytes:
        stock = "InStock" if truth.in_stock else "OutOfStock"
        sku = f"{self.number}-{name}"
        named = {"name": f"Thing {sku}", "sku": sku, "price": truth.price, "stock": stock}
        # a product that is sold out may lose its price
        is_missing = self.is_incomplete and truth.in_stock
        more = {
            "list_price": f"{float(truth.price) * ABOVE:.2f}",
            "stock_text": "In stock" if truth.in_stock else "Out of stock",
            "shown_price": "" if is_missing else f"CHF {truth.price}",
            "attributes": self._attributes(truth),
        }
        templates = {
            Template.DEAL: DEAL, Template.CROWNS: CROWNS, Template.EMPTY: EMPTY,
            Template.RAISING: PARSED, Template.HANGING: PARSED, Template.LATE: PARSED,
            Template.FLIPPING: FLIPPING if self._strikes(name) else UNSTRUCK,
        }  # fmt: skip
        template = templates.get(self.template, PAGE)
        return template.format(**named, **more).encode()

    def _strikes(self, name: str) -> bool:
        """Once three pages have shown the deal, any page may not strike its list price through."""
        return self.visits[name] < 3 or self.visits[name] % 2 == 0

    def _attributes(self, truth: Truth) -> str:
        """What the parser of the shop reads."""
        if not self.is_incomplete:
            return f'data-net="{truth.price}"'
        return 'data-hang="yes"' if self.template is Template.HANGING else ""

    def _wrong_page(self, wrong: Wrong) -> bytes:
        if wrong in (Wrong.TO_CATEGORY, Wrong.TO_SUCCESSOR):
            target = "/all" if wrong is Wrong.TO_CATEGORY else "/next"
            return _answer("302 Found", b"", location=target)
        return _answer(
            "200 OK", self._category() if wrong is Wrong.CATEGORY else UNAVAILABLE.encode()
        )

    def _category(self) -> bytes:
        tiles = (TILE.format(name=n, price=truth.price) for n, truth in self.products.items())
        return CATEGORY.format(tiles="".join(tiles)).encode()


def _answer(
    status: str, body: bytes, kind: str = "text/html; charset=utf-8", *, location: str | None = None
) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"Location: {location}"] if location else []
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
