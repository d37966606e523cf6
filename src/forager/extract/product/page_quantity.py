"""The quantity that a page sells for its price; a doubtful one is none.

Stated quantities come first: those of offers, the net weight, the size. Without any, it follows
from the price and the price per unit, if it is a round number then. The weight of an item may
include its box, or be that of a lamp: it only says which of several quantities in the name is
meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, NamedTuple

from selectolax.lexbor import LexborNode

from forager.extract.product.dom.view import TEXT_START, DomView
from forager.extract.product.main_item import choose_main
from forager.extract.product.page import ProductPage
from forager.extract.product.price import machine_amount, money_in
from forager.extract.product.product import Product
from forager.extract.product.quantity import Quantity, quantities_in, quantity_in, single
from forager.extract.product.schema import Item, first_of, listed, text_of, types_of

_CODES = {
    "kgm": "kg", "grm": "g", "mgm": "mg", "lbr": "lb", "onz": "oz", "ltr": "l", "dlt": "dl",
    "clt": "cl", "mlt": "ml", "c62": "piece", "h87": "piece", "ea": "piece", "pce": "piece",
    "kilogram": "kg", "gram": "g", "milliliter": "ml", "millilitre": "ml",
}  # fmt: skip
_NET = re.compile(
    r"\W*(?:net(?:to)?[ -]?(?:weight|wt\.?|contents?|volume|quantity|gewicht|füllmenge|inhalt)"
    r"|füllmenge|inhalt|nettovikt|nettovægt|nettovekt"
    r"|(?:poids|contenu|contenance|volume) nette?|contenance|peso net[ot]o?|contenido neto"
    r"|contenuto(?: netto)?|hmotnost netto|masa netto|unit[ _]pricing[ _]measure)\W*",
    re.IGNORECASE,
)
_MAX_ITEMS = 50
_MAX_PROPERTIES = 100


class _UnitPrice(NamedTuple):
    """A price for a quantity, beside the price that is paid."""

    price: Decimal
    per: Quantity
    paid: Decimal


def quantity_on(view: DomView, product: Product) -> Quantity | None:
    """The quantity of the page's product; None if the page states none, or several."""
    page = view.page
    items = [*_main_items(page)]
    stated = [q for item in items for q in _stated(item)]
    stated += [q for q in _in_meta(page) if q]
    stated = [q for q in stated if q != _ONE] or [*_in_rows(view)]
    if stated:
        return single(stated)
    unit_prices = [u for item in items for u in _unit_prices(item, product)]
    if unit_prices := unit_prices or [*_shown_unit_prices(view, product)]:
        derived = [_derived(each, product.name or "") for each in unit_prices]
        known = [each for each in derived if each]
        return single(known) if len(known) == len(derived) else None
    weights = [q for item in items for q in _read(item.get("weight"))]
    weights += [q for q in [_weight_in_meta(page)] if q]
    named = quantities_in(product.name or "")
    return single([q for q in named if any(map(q.agrees, weights))])


# no offer is less than one piece, and a price per piece of it says nothing
_ONE = Quantity(Decimal(1), "piece")


def _main_items(page: ProductPage) -> Iterator[Item]:
    for items in (page.linked_data, page.microdata[0]):
        if (main := choose_main(items, page)) is not None:
            yield main[0]


# --- stated quantities ---------------------------------------------------------------------------


def _stated(item: Item) -> Iterator[Quantity]:
    for name in ("size", "netContent", "netWeight"):
        yield from _read(item.get(name))
    for name in ("hasMeasurement", "additionalProperty"):
        for each in listed(item.get(name))[:_MAX_PROPERTIES]:
            if isinstance(each, dict) and _NET.fullmatch(str(text_of(each.get("name")) or "")[:80]):
                yield from _read(each)
    for offer in _offers(item):
        for each in (offer, *_specifications(offer)):
            yield from _read(each.get("eligibleQuantity"))
        for each in _specifications(offer):
            yield from _measured(each, offer)


def _offers(item: Item) -> list[Item]:
    offers = [each for each in listed(item.get("offers"))[:_MAX_ITEMS] if isinstance(each, dict)]
    inner = [o for each in offers for o in listed(each.get("offers"))[:_MAX_ITEMS]]
    return offers + [each for each in inner if isinstance(each, dict)]


def _specifications(offer: Item) -> list[Item]:
    values = listed(offer.get("priceSpecification"))[:_MAX_ITEMS]
    return [each for each in values if isinstance(each, dict)]


def _measured(specification: Item, offer: Item) -> Iterator[Quantity]:
    """The reference quantity of a price that is the offer's: with a base, it is what is sold."""
    reference = specification.get("referenceQuantity")
    if not isinstance(reference, dict) or not isinstance(reference.get("valueReference"), dict):
        return
    paid, price = machine_amount(text_of(offer.get("price"))), _price(specification)
    if paid is None or paid == price:
        yield from _read(reference)


def _price(specification: Item) -> Decimal | None:
    return machine_amount(text_of(specification.get("price")))


def _read(value: Any) -> list[Quantity]:
    """The quantity of a text such as 500 g, or of a value with a unit; at most one."""
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(value, str):
        found = quantity_in(value[:100])
        return [found] if found else []
    if not isinstance(value, dict):
        return []
    written = text_of(value.get("value"))
    unit = str(text_of(first_of(value, "unitCode", "unitText")) or "").strip().lower()
    unit = unit.rpartition("/")[2].rpartition(":")[2]
    if not unit:
        return _read(written) if isinstance(written, str) else []
    number = machine_amount(written)
    found = None if number is None else Quantity.of(number, _CODES.get(unit, unit))
    return [found] if found else []


_MEASURES = ("product:unit_pricing_measure", "unit_pricing_measure", "product:size")


def _in_meta(page: ProductPage) -> Iterator[Quantity | None]:
    for name in _MEASURES:
        yield from (quantity_in(text[:100]) for text in page.metas.get(name, ())[:3])


def _weight_in_meta(page: ProductPage) -> Quantity | None:
    value = next(iter(page.metas.get("product:weight:value", ())), None)
    unit = next(iter(page.metas.get("product:weight:units", ())), "")
    number = machine_amount(value)
    return None if number is None else Quantity.of(number, unit.strip())


def _in_rows(view: DomView) -> Iterator[Quantity]:
    """The net weight or volume of a row of the product's own specification."""
    for at in view.texts_with(_NET_START):
        order, node, text = view.texts[at]
        label, _, value = text[:_MAX_TEXT].partition(":")
        if not value.strip() and at + 1 < len(view.texts):
            value = view.texts[at + 1][2]
        if _NET.fullmatch(label) and len(value) <= 40 and _is_own(view, order, node):
            yield from _read(value.strip())


# in lower case
_NET_START = re.compile(
    rf"{TEXT_START}\W{{0,3}}(?:net|füll|inhalt|poids|conten|volume|peso|hmotnost|masa)"
)


# --- prices per unit -----------------------------------------------------------------------------


def _unit_prices(item: Item, product: Product) -> Iterator[_UnitPrice]:
    for offer in _offers(item):
        paid = machine_amount(text_of(offer.get("price"))) or product.price
        for each in _specifications(offer):
            price = _price(each)
            for per in _reference(each):
                if price and paid and price != paid:
                    yield _UnitPrice(price, per, paid)


def _reference(specification: Item) -> list[Quantity]:
    reference = specification.get("referenceQuantity")
    if isinstance(reference, dict):
        base = reference.get("valueReference")
        return _read(base if isinstance(base, dict) else reference)
    if "unitpricespecification" in types_of(specification):
        return _read({**specification, "value": 1})
    return []


_UNIT = r"(?:kg|g|mg|l|liter|litre|dl|cl|ml|lb|oz|stk|stück|piece|pc)"
_PER = re.compile(
    rf"^[\s)]{{0,2}}(?:/|per\b|pro\b|je\b|par\b)\s?(?P<per>(?:10{{0,3}})?\s?{_UNIT})\b",
    re.IGNORECASE,
)
_EQUALS = re.compile(rf"(?P<per>10{{0,3}}\s?{_UNIT})\s?=\s{{0,2}}$", re.IGNORECASE)
# before the search of amounts, in lower case
_HINT = re.compile(rf"(?:/|per|pro|je|par)\s?(?:10{{0,3}}\s?)?{_UNIT}\b|\d\s?{_UNIT}\s?=")


def _shown_unit_prices(view: DomView, product: Product) -> Iterator[_UnitPrice]:
    """The prices per unit beside the price of the product."""
    if not product.price:
        return
    for at in view.texts_with(_HINT):
        order, node, text = view.texts[at]
        text = " ".join(_with_amount(node, text).split())
        if len(text) > _MAX_TEXT or not _is_own(view, order, node):
            continue
        for money in money_in(text, view.page.currency_hints):
            found = _PER.match(text[money.end :]) or _EQUALS.search(text[: money.start])
            if not (found and money.symbol and money.amount):
                continue
            if product.currency not in (None, money.currency):
                continue
            per = re.sub(r"^(?=\D)", "1 ", found["per"].strip())
            yield from (_UnitPrice(money.amount, q, product.price) for q in _read(per))


def _with_amount(node: LexborNode, text: str) -> str:
    """The text, with those around it if the amount stands in an element of its own."""
    above = node.parent
    for _ in range(2):
        if above is None or any(map(str.isdigit, _HINT.sub("", text.lower()))):
            break
        text, above = above.text(separator=" ")[: 2 * _MAX_TEXT], above.parent
    return text


_MAX_TEXT = 80
# elements after the heading
_NEAR = 400


def _is_own(view: DomView, order: int, node: LexborNode) -> bool:
    """Whether a text is about the product of the page, as it is sold now."""
    if view.heading is None or not 0 <= order - view.start <= _NEAR:
        return False
    around = view.surroundings.of(node.parent or node)
    return not (around.elsewhere or around.tile or around.hidden or around.option or around.struck
                or around.linked or around.remark)  # fmt: skip


_HALF_CENT = Decimal("0.005")
# currencies without cents have such amounts
_OF_WHOLE_UNITS = 50
_WIDEST = Decimal("1.03")


def _derived(unit_price: _UnitPrice, name: str) -> Quantity | None:
    """The quantity that fits both prices, which are rounded: the only round number that does."""
    price, per, paid = unit_price
    half = _HALF_CENT if price < _OF_WHOLE_UNITS or price % 1 else 100 * _HALF_CENT
    if price <= half:
        return None
    least, most = paid * per.amount / (price + half), paid * per.amount / (price - half)
    if most > least * _WIDEST:
        return None
    for named in quantities_in(name):
        if named.unit == per.unit and least <= named.amount <= most:
            return named
    for digits in (1, 2):
        upward = Context(prec=digits, rounding=ROUND_CEILING)
        first = upward.plus(least)
        if first <= most:
            found = Quantity.of(first, per.unit)
            return found if upward.next_plus(first) > most and found != _ONE else None
    return None
