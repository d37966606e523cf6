"""The elements of a page that may speak of its product, found in one walk of the tree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

_MAX_KEPT = 1_500

Attributes = Mapping[str, str | None]


class Element(NamedTuple):
    """An element, where it stands in the order of the page, and the names its author gave it."""

    order: int
    node: LexborNode
    attributes: Attributes
    names: str


@dataclass(slots=True)
class Elements:
    """By what they may say; an element may be in several lists."""

    scripts: list[Element] = field(default_factory=list)
    metas: list[Element] = field(default_factory=list)
    canonicals: list[str] = field(default_factory=list)
    headings: list[Element] = field(default_factory=list)
    microdata: list[Element] = field(default_factory=list)
    rdfa: list[Element] = field(default_factory=list)
    prices: list[Element] = field(default_factory=list)
    stocks: list[Element] = field(default_factory=list)
    skus: list[Element] = field(default_factory=list)
    crumbs: list[Element] = field(default_factory=list)
    brands: list[Element] = field(default_factory=list)
    ratings: list[Element] = field(default_factory=list)
    buttons: list[Element] = field(default_factory=list)
    inputs: list[Element] = field(default_factory=list)
    images: list[Element] = field(default_factory=list)
    json_attributes: list[str] = field(default_factory=list)
    count: int = 0


def collect_elements(tree: LexborHTMLParser) -> Elements:
    """One walk for all readers: every query of its own would walk the whole tree again."""
    found = Elements()
    order = 0
    for order, node in enumerate(tree.css("*")):
        attributes = node.attributes
        tag = node.tag
        lists = _LISTS.get(tag or "")
        if not attributes and lists is None:
            continue
        element = Element(order, node, attributes, "")
        if lists is not None:
            _keep(getattr(found, lists), element)
        _collect_annotations(found, element, attributes)
        _collect_named(found, element, attributes)
    found.count = order
    return found


_LISTS = {
    "script": "scripts",
    "meta": "metas",
    "h1": "headings",
    "button": "buttons",
    "input": "inputs",
    "img": "images",
}


def _collect_annotations(found: Elements, element: Element, attributes: Attributes) -> None:
    if "itemprop" in attributes or "itemscope" in attributes:
        _keep(found.microdata, element)
    if "typeof" in attributes or ("property" in attributes and element.node.tag != "meta"):
        _keep(found.rdfa, element)
    elif "rel" in attributes and attributes["rel"] == "canonical" and attributes.get("href"):
        found.canonicals.append(attributes["href"] or "")


# names that authors give to classes, in the languages of their shops
_KINDS = (
    ("prices", r"pri[cx]e|\bprix|preis|precio|prezzo|pre[cç]o|\bprijs|\bcena|\bpris\b|amount|harga"
               r"|fiyat|kaina|\bcost\b|buynow|\bars\b|tarif"),
    ("stocks", r"stock|avail|inventory|sold-?_?out|dispon|\blager|dostupn|sklad|out-of|unavailab"),
    ("skus", r"sku|(?:product|item|article|art|prod)[-_]?(?:id|code|no|nr|num|ref)|referen|\bmodel"),
    ("crumbs", r"crumb"),
    ("brands", r"brand|manufactur|\bmarque|\bmarke|\bmarca|vendor|byline|znacka|vyrobce"),
    ("ratings", r"rating|review-?_?count|reviews-?_?count"),
)  # fmt: skip
_ANY_KIND = re.compile("|".join(pattern for _, pattern in _KINDS))
_EACH_KIND = tuple((kind, re.compile(pattern)) for kind, pattern in _KINDS)
_NAMED_BY = ("class", "id", "data-testid", "data-test", "data-test-id", "data-automation", "data-qa",
             "data-role", "data-price-type", "data-auto")  # fmt: skip
_JSON_ATTRIBUTES = ("data-product", "data-product_variations", "data-product-json", "data-props",
                    "data-analytics", "data-gtm", "data-item", "data-pdp")  # fmt: skip
_SKU_ATTRIBUTES = frozenset(["data-sku", "data-product-id", "data-productid", "data-product_id",
                             "data-item-id", "data-product-sku", "data-pid"])  # fmt: skip


def _collect_named(found: Elements, element: Element, attributes: Attributes) -> None:
    if len(attributes) == 1 and "class" in attributes:
        names = attributes["class"] or ""
        kinds = _kinds_of(names) if len(names) < 400 else ()
    else:
        names, kinds = _names_and_kinds(found, attributes)
        if not _SKU_ATTRIBUTES.isdisjoint(attributes) and "skus" not in kinds:
            kinds = (*kinds, "skus")
        if attributes.get("role") == "button" or element.node.tag == "a" and "cart" in names:
            kinds = (*kinds, "buttons")
    if kinds:
        named = element._replace(names=names.lower())
        for kind in kinds:
            _keep(getattr(found, kind), named)


def _names_and_kinds(found: Elements, attributes: Attributes) -> tuple[str, tuple[str, ...]]:
    parts = []
    for name, value in attributes.items():
        if not value:
            continue
        if name in _NAMED_BY:
            parts.append(value[:200])
        elif name in _JSON_ATTRIBUTES and value[:1] in "{[" and len(found.json_attributes) < 20:
            found.json_attributes.append(value)
    names = " ".join(parts)
    return names, _kinds_of(names) if names else ()


@lru_cache(maxsize=16_384)
def _kinds_of(names: str) -> tuple[str, ...]:
    """Classes repeat within a page and over the pages of a shop."""
    lower = names.lower()
    if not _ANY_KIND.search(lower):
        return ()
    return tuple(kind for kind, pattern in _EACH_KIND if pattern.search(lower))


def _keep(kept: list[Element], element: Element) -> None:
    if len(kept) < _MAX_KEPT:
        kept.append(element)
