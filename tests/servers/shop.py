"""A small shop that knows its own truth: products in three kinds of markup, and what goes wrong.

`products` may be changed at any time; what a page answers follows them. Everything else that a path
can do is in `behaviour`: a redirect, a status, a broken body, a page that hangs until released.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from html import escape
from threading import Lock

import orjson

from servers.site import Answer, Page, Site, moved, tagged, text


class Markup(StrEnum):
    """How a product page says what it sells."""

    JSON_LD = "json-ld"
    MICRODATA = "microdata"
    DOM = "dom"


@dataclass(frozen=True, slots=True)
class Item:
    """A product as the shop knows it."""

    name: str
    price: str = "10.00"
    currency: str = "EUR"
    in_stock: bool = True
    sku: str = ""
    brand: str = "Acme"
    markup: Markup = Markup.JSON_LD
    # whether the page answers 304 while it has not changed
    has_etag: bool = False


@dataclass(slots=True)
class Shop:
    """A site of product pages at `/p/NAME`, served from a thread."""

    site: Site = field(default_factory=Site)
    products: dict[str, Item] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.site.port}"

    def url(self, name: str) -> str:
        return f"http://{self.host}/p/{name}"

    def add(self, name: str, item: Item | None = None) -> str:
        """Sell something; its URL."""
        with self._lock:
            self.products[name] = item or Item(f"Product {name}", sku=name)
        self.behave(name, lambda _: self.page(name))
        return self.url(name)

    def change(self, name: str, *, price: str | None = None, in_stock: bool | None = None) -> None:
        """A new price, or a sell-out, from the next request on."""
        with self._lock:
            item = self.products[name]
            self.products[name] = replace(
                item,
                price=item.price if price is None else price,
                in_stock=item.in_stock if in_stock is None else in_stock,
            )

    def behave(self, name: str, answer: Answer) -> str:
        """Let the product's page answer like this; its URL."""
        self.site.pages[f"/p/{name}"] = answer
        return self.url(name)

    def redirect(self, name: str, to: str, status: str = "301 Moved") -> str:
        return self.behave(name, moved(to, status))

    def refuse(self, name: str, status: str, **headers: str) -> str:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return self.behave(name, Page(b"no", status, named))

    def hang(self, name: str) -> str:
        """Its page is answered only after the site is released."""
        return self.behave(name, lambda _: replace(self.page(name), hangs=True))

    def break_markup(self, name: str) -> str:
        """A page that is there, but shows no readable product."""
        return self.behave(name, text("<html><body><p>Sorry, we are closed", "text/html"))

    def behave_again(self, name: str) -> None:
        self.behave(name, lambda _: self.page(name))

    def forbid(self, path: str) -> None:
        self.site.pages["/robots.txt"] = text(f"User-agent: *\nDisallow: {path}\n")

    def page(self, name: str) -> Page:
        with self._lock:
            item = self.products[name]
        body = _BODIES[item.markup](item).encode()
        page = Page(body, headers={"Content-Type": "text/html; charset=utf-8"})
        return tagged(page) if item.has_etag else page

    def hits(self, name: str) -> int:
        return self.site.hits[f"/p/{name}"]

    def times(self, name: str) -> list[float]:
        """When each request for a product's page came, by the monotonic clock."""
        return [request.at for request in list(self.site.log) if request.target == f"/p/{name}"]

    @contextmanager
    def open(self) -> Iterator[Shop]:
        self.site.pages.setdefault("/robots.txt", text("User-agent: *\nAllow: /\n"))
        with self.site.served():
            yield self


def _json_ld(item: Item) -> str:
    stock = "InStock" if item.in_stock else "OutOfStock"
    product = {
        "@context": "https://schema.org",
        "@type": "Product",
        "name": item.name,
        "sku": item.sku,
        "brand": {"@type": "Brand", "name": item.brand},
        "offers": {
            "@type": "Offer",
            "price": item.price,
            "priceCurrency": item.currency,
            "availability": f"https://schema.org/{stock}",
        },
    }
    script = orjson.dumps(product).decode().replace("<", "\\u003c")
    return _html(item, f'<script type="application/ld+json">{script}</script>', "")


def _microdata(item: Item) -> str:
    stock = "InStock" if item.in_stock else "OutOfStock"
    body = f"""
    <div itemscope itemtype="https://schema.org/Product">
      <h1 itemprop="name">{escape(item.name)}</h1>
      <span itemprop="sku">{escape(item.sku)}</span>
      <div itemprop="offers" itemscope itemtype="https://schema.org/Offer">
        <meta itemprop="priceCurrency" content="{item.currency}">
        <span itemprop="price" content="{item.price}">{item.price}</span>
        <link itemprop="availability" href="https://schema.org/{stock}">
      </div>
    </div>"""
    return _html(item, "", body)


def _dom(item: Item) -> str:
    stock = "In stock" if item.in_stock else "Sold out"
    body = f"""
    <main><h1>{escape(item.name)}</h1>
      <p class="price">{item.currency} {item.price}</p>
      <p class="availability stock">{stock}</p>
      <button>Add to cart</button></main>"""
    return _html(item, "", body)


def _html(item: Item, head: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><title>{escape(item.name)}</title>{head}</head>'
        f"<body>{body or f'<h1>{escape(item.name)}</h1>'}</body></html>"
    )


_BODIES = {Markup.JSON_LD: _json_ld, Markup.MICRODATA: _microdata, Markup.DOM: _dom}
