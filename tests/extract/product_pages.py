"""Small pages of a shop that does not exist, for the tests of product extraction."""

from __future__ import annotations

from forager.extract.product.extract import extract_product
from forager.extract.product.page import ProductPage, open_page
from forager.extract.product.product import Product

URL = "https://shop.example.co.uk/kettles/copper-kettle-48213"
BUY = "<button class='buy'>Add to basket</button>"


def page_of(html: str, url: str = URL) -> ProductPage:
    return open_page(html.encode("utf-8", "surrogatepass"), url, "text/html; charset=utf-8")


def product_of(html: str, url: str = URL) -> Product:
    return extract_product(page_of(html, url))


def linked(data: str, body: str = "<h1>Copper kettle</h1>", head: str = "") -> str:
    """A page with one JSON-LD script."""
    return (
        f'<html lang="en-gb"><head><title>Copper kettle</title>{head}'
        f'<script type="application/ld+json">{data}</script></head><body>{body}</body></html>'
    )


def shop_page(body: str, head: str = "") -> str:
    return (
        f'<html lang="en-gb"><head><title>Copper kettle | Shop</title>{head}</head>'
        f"<body><main><h1>Copper kettle</h1>{body}</main></body></html>"
    )
