"""The item of a page that describes its product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forager.extract.product.json_ld import LISTED
from forager.extract.product.page import ProductPage
from forager.extract.product.schema import (
    PRODUCT_TYPES,
    SOLD_TYPES,
    Item,
    listed,
    text_of,
    types_of,
)
from forager.extract.product.wording import alike, line_of

# with at least this many other products an item must be named like the page
_MANY = 2
_FITTING = 1.2
_MAX_SIBLINGS = 200


def choose_main(items: Sequence[Item], page: ProductPage) -> tuple[Item, float] | None:
    """The main item and the confidence of the choice; None where a page only lists products."""
    candidates = [item for item in items if is_sold(item)]
    if not candidates:
        return None
    fits = [_fit(item, page) for item in candidates]
    if all(LISTED in item for item in candidates) and max(fits) < _FITTING:
        return None
    at = max(range(len(candidates)), key=lambda i: (fits[i] + _weight(candidates[i]), -i))
    products = sum(1 for item in candidates if types_of(item) & PRODUCT_TYPES)
    rivals = max(0, products - 1)
    if rivals >= _MANY and fits[at] < _FITTING:
        return None
    item = _with_siblings(candidates[at], candidates)
    return item, 1.0 if fits[at] >= _FITTING or not rivals else 0.7


def _with_siblings(main: Item, candidates: Sequence[Item]) -> Item:
    """The item with the offers of all that have its name: some shops write one for each size."""
    name = main.get("name")
    same = [item for item in candidates if name and item.get("name") == name]
    if len(same) < 2:
        return main
    offers = [offer for item in same[:_MAX_SIBLINGS] for offer in listed(item.get("offers"))]
    return {**main, "offers": offers}


def is_sold(item: Item) -> bool:
    types = types_of(item)
    if types & PRODUCT_TYPES:
        return True
    return bool(types & SOLD_TYPES or any(t.endswith("event") for t in types)) and "offers" in item


def _weight(item: Item) -> float:
    """The weight of an item by its type and offers."""
    types = types_of(item)
    weight = 3.0 if types & PRODUCT_TYPES else 1.0
    weight += 1.0 if item.get("offers") else 0.0
    return weight + (0.5 if "productgroup" in types else 0.0)


def _fit(item: Item, page: ProductPage) -> float:
    """The similarity of an item's name and URL to those of the page."""
    name = line_of(text_of(item.get("name")), 500)
    named = 2.0 * max((alike(name, title) for title in page.titles), default=0.0)
    return named + (2.0 if _is_page(item, page) else 0.0)


def _is_page(item: Item, page: ProductPage) -> bool:
    return any(_same(item.get(name), page) for name in ("url", "@id", "mainEntityOfPage"))


def _same(value: Any, page: ProductPage) -> bool:
    url = text_of(value)
    if not isinstance(url, str) or not 1 < len(url) < 2000:
        return False
    address = page.absolute(url)
    return address is not None and address.partition("?")[0] in page.addresses
