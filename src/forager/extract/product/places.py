"""Learned places of prices: paths of elements, from pages whose data states the price.

A page with structured data states its price; `place_of` finds the element that shows the same
amount, or the deal beside it. The path on which pages of a domain agree is passed to readings of
other pages (see `forager.products.validation.learned_places`). These use it where the data states
no price or several, and on all pages if the data of the domain states list prices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from selectolax.lexbor import LexborNode

from forager.extract.product.dom.surroundings import SurroundingsMap
from forager.extract.product.merge import claims_for
from forager.extract.product.page import ProductPage
from forager.extract.product.price import Money, money_in
from forager.extract.product.product import GONE, Fact, FieldName, Product

# recorded for a page that states a price and does not show it at the learned path
NOT_SHOWN = ""
# of the visible price beside a stated one that is struck through
DEAL = "dom:deal"
# of a price at the learned path, which follows
LEARNED = "learned:"
STATING = frozenset(["json-ld", "microdata", "rdfa", "opengraph", "meta"])
_STATED = 0.7
_LEARNED = 0.8
_MAX_STEPS = 6
_MAX_ABOVE = 3
_MAX_TEXT = 120
_MAX_SHOWN = 20
_MAX_CANDIDATES = 30
_NAMING = ("itemprop", "data-testid", "data-test", "data-automation", "data-qa")
_NAME = re.compile(r"[A-Za-z_][\w-]{0,40}", re.ASCII)
_GENERATED = re.compile(r"\d{3,}")


@dataclass(frozen=True, slots=True)
class LearnedPlace:
    """The path to the price on pages of a domain, and whether pages are searched for another.

    `shown_wins`: structured data of the domain states list prices, so the path is decisive.
    """

    path: str | None = None
    search: bool = False
    shown_wins: bool = False


NOTHING_LEARNED = LearnedPlace()


def stated_price(facts: Sequence[Fact]) -> Decimal | None:
    """The price in the page's structured data; None without one, or where it contradicts itself."""
    stating = [fact for fact in facts if fact.origin.partition(":")[0] in STATING]
    claims = claims_for(FieldName.PRICE, stating)
    prices = [claim.value for claim in claims if claim.confidence >= _STATED]
    return prices[0] if len(prices) == 1 else None


def learned_facts(page: ProductPage, facts: Sequence[Fact], place: LearnedPlace) -> Iterator[Fact]:
    """The price at the learned path, where the data does not state one, or states list prices.

    A path that leads to several prices leads to other products, too. So may one on a page whose
    product cannot be bought, unless its price is below the stated one.
    """
    stated = stated_price(facts)
    if not place.path or not (place.shown_wins or stated is None):
        return
    money = _money_shown(page, place.path)
    if money is None or (_is_gone(facts) and (stated is None or money.amount > stated)):
        return
    yield Fact(FieldName.PRICE, money.amount, _LEARNED, f"{LEARNED}{place.path}")
    if money.currency is not None:
        yield Fact(FieldName.CURRENCY, money.currency, _LEARNED, f"{LEARNED}{place.path}")


def _money_shown(page: ProductPage, path: str) -> Money | None:
    """The only price at a path that is not struck through."""
    struck = SurroundingsMap([])
    nodes = page.tree.css(path)[:_MAX_SHOWN]
    shown = [_money(node, page) for node in nodes if not struck.of(node).struck]
    amounts = {money.amount for money in shown if money is not None}
    return shown[0] if len(amounts) == 1 else None


def without_stated(facts: Sequence[Fact], shown: Sequence[Fact]) -> list[Fact]:
    """The facts, with a stated price above the one at the learned path as the list price."""
    price = next((fact.value for fact in shown if fact.field is FieldName.PRICE), None)
    if price is None:
        return list(facts)
    stated = stated_price(facts)
    kept = [f for f in facts if f.field is not FieldName.PRICE or f.value == price]
    if stated is not None and stated > price:
        kept.append(Fact(FieldName.LIST_PRICE, stated, _LEARNED, f"{LEARNED}stated"))
    return kept


def _is_gone(facts: Sequence[Fact]) -> bool:
    claims = claims_for(FieldName.AVAILABILITY, [*facts])
    return any(claim.value in GONE and claim.confidence >= _STATED for claim in claims)


def with_place(
    product: Product, page: ProductPage, facts: Sequence[Fact], place: LearnedPlace
) -> Product:
    """The product; the evidence of its price says where the page shows it.

    Only if its data states the price, or a list price that the page shows struck through.
    """
    price = stated_price(facts) if place.path or place.search else None
    if price is None or FieldName.PRICE not in product.evidence:
        return product
    origin = product.evidence[FieldName.PRICE].origin
    is_decided = place.shown_wins and origin.startswith(LEARNED)
    if product.price is not None and (is_decided or any(f.origin == DEAL for f in facts)):
        price = product.price
    known = money_at(place.path, page) if place.path else None
    if known is not None and known.amount == price:
        shown = place.path or NOT_SHOWN
    else:
        shown = (place_of(price, page) if place.search else None) or NOT_SHOWN
    evidence = replace(product.evidence[FieldName.PRICE], place=shown)
    return replace(product, evidence={**product.evidence, FieldName.PRICE: evidence})


def place_of(price: Decimal, page: ProductPage) -> str | None:
    """The path of the first element that shows this price and no other, and not struck through."""
    digits = str(int(price))[-3:]
    candidates = 0
    surroundings = SurroundingsMap([])
    for _, text_node, text in page.elements.texts:
        node = text_node.parent if digits in text else None
        for _ in range(_MAX_ABOVE):
            if node is None or node.tag in ("body", "html"):
                break
            money = _money(node, page)
            if money is not None and money.amount == price and not surroundings.of(node).struck:
                if path := _path(node, page):
                    return path
                if (candidates := candidates + 1) == _MAX_CANDIDATES:
                    return None
            node = node.parent
    return None


def money_at(path: str, page: ProductPage) -> Money | None:
    """The price that the first element at the path shows."""
    node = page.tree.css_first(path)
    return None if node is None else _money(node, page)


def _money(node: LexborNode, page: ProductPage) -> Money | None:
    text = " ".join(node.text(separator=" ")[: 3 * _MAX_TEXT].split())
    if not 0 < len(text) <= _MAX_TEXT:
        return None
    shown = {money.amount: money for money in money_in(text, page.currency_hints) if money.amount}
    return shown.popitem()[1] if len(shown) == 1 else None


def _path(node: LexborNode, page: ProductPage) -> str | None:
    """The shortest path that has names and leads to the element only, or else to it first."""
    steps: list[str] = []
    leads_first: str | None = None
    above: LexborNode | None = node
    while above is not None and above.tag not in ("body", "html") and len(steps) < _MAX_STEPS:
        if not above.tag or not _NAME.fullmatch(above.tag):  # such as <g:price>
            break
        steps.insert(0, _step(above))
        path = " > ".join(steps)
        if any(sign in path for sign in "#.["):
            found = page.tree.css(path)
            if found and found[0].mem_id == node.mem_id:
                if len(found) == 1:
                    return path
                leads_first = leads_first or path
        above = above.parent
    return leads_first


def _step(node: LexborNode) -> str:
    """An element by the names that its author gave it; generated names differ between pages."""
    attributes = node.attributes
    for name in _NAMING:
        if _is_usable(value := attributes.get(name) or ""):
            return f'{node.tag}[{name}="{value}"]'
    if _is_usable(identifier := attributes.get("id") or ""):
        return f"{node.tag}#{identifier}"
    classes = [f".{name}" for name in (attributes.get("class") or "").split() if _is_usable(name)]
    return f"{node.tag}{''.join(classes[:3])}"


def _is_usable(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and not _GENERATED.search(name)
