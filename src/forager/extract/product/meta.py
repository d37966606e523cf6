"""Facts in `<meta>` elements: OpenGraph, its product vocabulary, Twitter labels and others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from forager.extract.product.availability import term_of
from forager.extract.product.currency import currency_of
from forager.extract.product.images import gallery
from forager.extract.product.page import ProductPage
from forager.extract.product.price import machine_amount, money_in
from forager.extract.product.product import Fact, FieldName
from forager.extract.product.wording import (
    brand_of,
    category_of,
    count_of,
    description_of,
    gtin_of,
    name_of,
    rating_of,
    sku_of,
)

Reader = Callable[[str], Any]

# the field of each name, its confidence and its reader; the first value of a field wins
_NAMES: dict[str, tuple[FieldName, float, Reader]] = {
    "og:title": (FieldName.NAME, 0.6, name_of),
    "twitter:title": (FieldName.NAME, 0.5, name_of),
    "sailthru.title": (FieldName.NAME, 0.5, name_of),
    "og:description": (FieldName.DESCRIPTION, 0.5, description_of),
    "twitter:description": (FieldName.DESCRIPTION, 0.4, description_of),
    "description": (FieldName.DESCRIPTION, 0.3, description_of),
    "product:availability": (FieldName.AVAILABILITY, 0.8, term_of),
    "og:availability": (FieldName.AVAILABILITY, 0.8, term_of),
    "availability": (FieldName.AVAILABILITY, 0.6, term_of),
    "product:brand": (FieldName.BRAND, 0.8, brand_of),
    "og:brand": (FieldName.BRAND, 0.8, brand_of),
    "og:product:brand": (FieldName.BRAND, 0.8, brand_of),
    "product:manufacturer": (FieldName.BRAND, 0.6, brand_of),
    "og:manufacturer": (FieldName.BRAND, 0.6, brand_of),
    "brand": (FieldName.BRAND, 0.5, brand_of),
    "manufacturer": (FieldName.BRAND, 0.45, brand_of),
    "product:category": (FieldName.CATEGORY, 0.5, category_of),
    "product:retailer_item_id": (FieldName.SKU, 0.8, sku_of),
    "product:retailer_part_no": (FieldName.SKU, 0.6, sku_of),
    "product:mfr_part_no": (FieldName.MPN, 0.8, sku_of),
    "product:sku": (FieldName.SKU, 0.8, sku_of),
    "og:sku": (FieldName.SKU, 0.8, sku_of),
    "sku": (FieldName.SKU, 0.7, sku_of),
    "product:ean": (FieldName.GTIN, 0.85, gtin_of),
    "product:gtin": (FieldName.GTIN, 0.85, gtin_of),
    "product:upc": (FieldName.GTIN, 0.85, gtin_of),
    "product:isbn": (FieldName.GTIN, 0.85, gtin_of),
    "og:upc": (FieldName.GTIN, 0.8, gtin_of),
    "og:ean": (FieldName.GTIN, 0.8, gtin_of),
    "og:isbn": (FieldName.GTIN, 0.8, gtin_of),
    "book:isbn": (FieldName.GTIN, 0.8, gtin_of),
    "og:rating": (FieldName.RATING, 0.6, rating_of),
    "og:rating_count": (FieldName.REVIEW_COUNT, 0.6, count_of),
}
_CURRENCIES = ("product:sale_price:currency", "product:price:currency", "og:price:currency",
               "price:currency", "currency", "pricecurrency")  # fmt: skip
_PRICES = (("product:sale_price:amount", 0.85), ("product:price:amount", 0.85),
           ("og:price:amount", 0.8), ("og:price", 0.7), ("price", 0.6), ("product:price", 0.7),
           ("sailthru.price", 0.6), ("price:amount", 0.7))  # fmt: skip
_LIST_PRICES = ("product:original_price:amount", "og:price:standard_amount")
_IMAGES = ("og:image", "og:image:secure_url", "og:image:url", "twitter:image", "twitter:image:src")


def meta_facts(page: ProductPage) -> Iterator[Fact]:
    metas = page.metas
    for name, (field, trust, read) in _NAMES.items():
        if name not in metas:
            continue
        value = next((v for text in metas[name][:3] if (v := read(text))), None)
        if value is not None:
            yield Fact(field, value, trust, _origin(name))
    yield from _price_facts(metas, page)
    yield from _label_facts(metas, page)
    yield from _described_facts(metas, page)
    addresses = (page.absolute(url) for name in _IMAGES for url in metas.get(name, ()))
    if images := gallery((url, None) for url in addresses if url):
        yield Fact(FieldName.IMAGES, images, 0.55, "opengraph:og:image")


def page_type(page: ProductPage) -> str:
    """The OpenGraph type of the page: product, article, website..."""
    return next(iter(page.metas.get("og:type", ())), "").lower()


def _origin(name: str) -> str:
    shared = name.startswith(("og:", "product:", "book:"))
    return f"opengraph:{name}" if shared else f"meta:{name}"


def _price_facts(metas: dict[str, list[str]], page: ProductPage) -> Iterator[Fact]:
    currency = None
    for name in _CURRENCIES:
        if currency := currency_of(next(iter(metas.get(name, ())), ""), page.currency_hints):
            yield Fact(FieldName.CURRENCY, currency, 0.8, _origin(name))
            break
    found = None
    for name, trust in _PRICES:
        amount = machine_amount(next(iter(metas.get(name, ())), None), currency)
        if amount and found is None:
            found = amount
            yield Fact(FieldName.PRICE, amount, trust, _origin(name))
        elif amount and found and amount > found and name == "product:price:amount":
            yield Fact(FieldName.LIST_PRICE, amount, 0.75, _origin(name))
    for name in _LIST_PRICES:
        if amount := machine_amount(next(iter(metas.get(name, ())), None), currency):
            yield Fact(FieldName.LIST_PRICE, amount, 0.75, _origin(name))


def _described_facts(metas: dict[str, list[str]], page: ProductPage) -> Iterator[Fact]:
    """A price in the texts for search results and shared links."""
    for name, trust in (("og:title", 0.5), ("og:description", 0.4), ("description", 0.4)):
        text = next(iter(metas.get(name, ())), "")[:300]
        money = next(
            (m for m in money_in(text, page.currency_hints) if m.symbol and m.amount), None
        )
        if money is not None and not _BEYOND.search(text[max(0, money.start - 30) : money.start]):
            yield Fact(FieldName.PRICE, money.amount, trust, _origin(name))
            return


# "free delivery over £50", "save $20", "$10 off"
_BEYOND = re.compile(
    r"over|above|orders?|save|from|ab|dès|desde|delivery|shipping|versand|livraison|spedizione"
    r"|envío",
    re.IGNORECASE,
)


def _label_facts(metas: dict[str, list[str]], page: ProductPage) -> Iterator[Fact]:
    """Twitter cards put any label beside any value."""
    for number in ("1", "2"):
        label = next(iter(metas.get(f"twitter:label{number}", ())), "").strip().lower()
        value = next(iter(metas.get(f"twitter:data{number}", ())), "")
        origin = f"meta:twitter:data{number}"
        if "price" in label and (money := next(money_in(value[:100], page.currency_hints), None)):
            yield Fact(FieldName.PRICE, money.amount, 0.7, origin)
            if money.currency:
                yield Fact(FieldName.CURRENCY, money.currency, 0.6, origin)
        elif "avail" in label and (term := term_of(value)):
            yield Fact(FieldName.AVAILABILITY, term, 0.7, origin)
        elif "brand" in label and (brand := brand_of(value)):
            yield Fact(FieldName.BRAND, brand, 0.7, origin)
