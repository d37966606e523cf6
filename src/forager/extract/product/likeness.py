"""The probability that a page is about one product, and not a list or an article."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from urllib.parse import urlsplit

from forager.extract.product.meta import page_type
from forager.extract.product.page import ProductPage
from forager.extract.product.product import GONE, Fact, FieldName, Product
from forager.extract.product.schema import PRODUCT_TYPES, types_of

# from here on a page counts as a product's
PRODUCT_PAGE = 0.5

_ITEMS = ("json-ld:Product", "microdata:Product", "rdfa:Product")
_LISTS = frozenset(["itemlist", "collectionpage", "searchresultspage", "offercatalog"])
_ARTICLES = frozenset(
    ["article", "newsarticle", "blogposting", "techarticle", "recipe", "qapage", "faqpage",
     "discussionforumposting", "jobposting", "profilepage"]
)  # fmt: skip
# only a list has this many prices of one kind
_MANY_PRICES = 8


def is_product(product: Product) -> bool:
    """Whether the page is that of one product, and not a list or an article."""
    return product.name is not None and product.confidence >= PRODUCT_PAGE


def likeness(product: Product, facts: Sequence[Fact], page: ProductPage) -> float:
    """0 to 1; a page that merely mentions a price stays below a half."""
    if product.name is None:
        return 0.0
    structure = _structure(facts)
    # a site parser has patterns for the addresses of products
    structure = max(structure, 0.3 if any(f.origin.startswith("parser:") for f in facts) else 0.0)
    score = structure + _shop(product, facts) - _doubt(structure, facts, page)
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
    """The score of visible signs of a shop: a price, a button, a code, "sold out"."""
    best: dict[str, float] = {}
    for fact in facts:
        place = fact.origin.partition(":")[0]
        key = fact.origin if place == "dom" else f"{place} {fact.field}"
        best[key] = max(best.get(key, 0.0), fact.confidence)
    score = 0.2 if "dom:button" in best else 0.0
    score += 0.1 if "dom:stock" in best else 0.0
    score += 0.05 if product.brand else 0.0
    if price := product.evidence.get("price"):
        score += 0.3 * min(1.0, price.confidence / 0.7)
        score += 0.15 if _shown(facts) else 0.0
    if sku := product.evidence.get("sku"):
        score += 0.15 if sku.confidence >= 0.6 else 0.08
    if product.availability in GONE and product.evidence["availability"].confidence >= 0.7:
        score += 0.25
    return score


def _shown(facts: Sequence[Fact]) -> bool:
    """Whether a price stands where a reader of this page looks for it."""
    return any(
        fact.field is FieldName.PRICE and fact.origin.startswith("dom") and fact.confidence >= 0.58
        for fact in facts
    )


def _doubt(structure: float, facts: Sequence[Fact], page: ProductPage) -> float:
    doubt = 0.3 if urlsplit(page.url).path in ("", "/") else 0.0
    types = Counter(name for item in page.linked_data for name in types_of(item))
    if structure == 0.0:
        doubt += 0.3 if any(types[name] for name in _LISTS) else 0.0
        doubt += 0.3 if sum(types[name] for name in PRODUCT_TYPES) > 3 else 0.0
        if _most_repeated(page) >= _MANY_PRICES:
            doubt += 0.1 if _shown(facts) else 0.2
    return doubt + (0.3 if any(types[name] for name in _ARTICLES) else 0.0)


def _most_repeated(page: ProductPage) -> int:
    """The number of prices of the most common kind: one for each product of a list."""
    counts = Counter(element.names for element in page.elements.prices)
    return max(counts.values(), default=0)
