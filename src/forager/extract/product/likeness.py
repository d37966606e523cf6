"""How much a page looks like the page of one product, and not like a list or an article."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from forager.extract.product.fact import Fact, FieldName
from forager.extract.product.meta import page_type
from forager.extract.product.page import ProductPage
from forager.extract.product.record import Product

_ITEMS = ("json-ld:Product", "microdata:Product", "rdfa:Product")


def likeness(product: Product, facts: Sequence[Fact], page: ProductPage) -> float:
    """0 to 1; a page that merely mentions a price stays below a half."""
    if product.name is None:
        return 0.0
    score = _structure(facts) + _shop(product, facts) - _doubt(facts, page)
    kind = page_type(page)
    score += 0.2 if "product" in kind or kind.endswith(":item") else 0.0
    score -= 0.25 if kind in ("article", "blog", "profile") else 0.0
    return round(max(0.0, min(1.0, score)), 3)


def _structure(facts: Sequence[Fact]) -> float:
    """An item that describes a product, and more so one with an offer."""
    found = {fact.field for fact in facts if fact.origin.startswith(_ITEMS)}
    if not found:
        return 0.0
    return 0.5 if FieldName.PRICE in found or FieldName.AVAILABILITY in found else 0.3


def _shop(product: Product, facts: Sequence[Fact]) -> float:
    origins = {fact.origin for fact in facts}
    fields = {fact.field for fact in facts if fact.confidence >= 0.5}
    score = 0.0
    price = product.evidence.get("price")
    if price is not None:
        score += 0.25 * min(1.0, price.confidence / 0.7)
    score += 0.2 if "dom:button" in origins else 0.0
    score += 0.1 if FieldName.SKU in fields else 0.0
    score += 0.1 if "dom:stock" in origins else 0.0
    score += 0.05 if product.brand else 0.0
    return score


def _doubt(facts: Sequence[Fact], page: ProductPage) -> float:
    doubt = 0.0
    if urlsplit(page.url).path in ("", "/"):
        doubt += 0.3
    return doubt
