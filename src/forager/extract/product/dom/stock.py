"""Visible availability: words beside the product, and the state of the buy button."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from forager.extract.product.availability import availability_in
from forager.extract.product.dom.view import DomView
from forager.extract.product.elements import Element
from forager.extract.product.product import GONE, Availability, Fact, FieldName

_MAX_TEXT = 140
_NEAR = 900
_BELOW = 400
_BOTH = 0.2
# less than the confidence that a price alone gives
_OPTION_TRUST = 0.3
# more elements of one name are about variants or other products
_MANY = 2
_NO_WORDS = frozenset(["script", "style", "input", "option", "select", "meta", "link", "form"])
# "not available for collection", "sold out in this size": of one option, not of the product
_OF_AN_OPTION = re.compile(
    r"deliver|shipping|ship to|pick ?-?up|collect|in[- ]?stores?\b|your (?:area|store|location)"
    r"|nearest|gift|financ|install|assembl|\bsizes?\b|colou?rs?\b|variant|livraison|retrait"
    r"|magasin|taille|couleur|versand|abhol|filiale|(?:im|in deinem) markt|größe|\bfarbe"
    r"|spedizione|consegna|ritiro"
    r"|negozi|tagli[ae]|colore|envío|entrega|recogida|tiendas?\b|\btallas?\b|bezorg|afhal|\bmaat\b"
    r"|winkel|doručen|odběr|prodejn|predajn|velikost|veľkos|odbiór|rozmiar|доставк|самовывоз|размер"
    r"|送料|店舗|サイズ|尺寸|門市|门店|사이즈|매장|combination|selected|auswahl|sélection"
)


_GONE_NAMES = re.compile(r"sold-?_?out|out-?_?of-?_?stock|unavailab|not-?_?available")
# what a button says about the time of delivery is sure
_BUTTON_TRUST = 0.76


def stock_facts(view: DomView) -> Iterator[Fact]:
    yield from _word_facts(view)
    yield from _button_facts(view)


def _word_facts(view: DomView) -> Iterator[Fact]:
    best: dict[Availability, float] = {}
    stocks = view.elements.stocks[:300]
    repeats = Counter(element.names for element in stocks)
    for element in stocks:
        stated = _stated(element, view, repeated=repeats[element.names] > _MANY)
        if stated is not None:
            meaning, confidence = stated
            best[meaning] = max(best.get(meaning, 0.0), confidence)
    buyable = _can_be_bought(view) or any(
        meaning not in GONE and trust >= 0.6 for meaning, trust in best.items()
    )
    for meaning, confidence in best.items():
        if meaning in GONE and confidence >= 0.7 and (_button_off(view) or not buyable):
            # words and button agree, even if the data of the page does not
            confidence += _BOTH
        yield Fact(FieldName.AVAILABILITY, meaning, confidence, "dom:stock")


def text_stock_facts(view: DomView) -> Iterator[Fact]:
    """A short text below the heading that says "sold out", where no element is named so."""
    start = view.start
    if _can_be_bought(view):
        return
    found: list[Availability] = []
    for order, node, text in view.texts:
        if not (start <= order <= start + _BELOW and len(text) < 40):
            continue
        if (meaning := availability_in(text)) in GONE:
            around = view.surroundings.of(node.parent or node)
            aside = around.elsewhere or around.tile or around.hidden or around.linked
            if not (aside or around.option or _OF_AN_OPTION.search(text.lower())):
                found.append(meaning)
    if 0 < len(found) <= _MANY:
        yield Fact(FieldName.AVAILABILITY, found[0], 0.6, "dom:text")


def _can_be_bought(view: DomView) -> bool:
    return view.buy_button is not None and view.buy_button.enabled


def _button_off(view: DomView) -> bool:
    return view.buy_button is not None and not view.buy_button.enabled


def _stated(
    element: Element, view: DomView, *, repeated: bool
) -> tuple[Availability, float] | None:
    if element.node.tag in _NO_WORDS:
        return None
    text = " ".join(element.node.text(separator=" ")[:2000].split())
    if not text or len(text) > _MAX_TEXT:
        return None
    meaning = availability_in(text)
    if meaning is None:
        return None
    around = view.surroundings.of(element.node)
    if around.elsewhere or around.hidden or around.linked:
        return None
    if meaning in GONE and _GONE_NAMES.search(element.names) and element.node.parent is not None:
        # named after the state itself, whatever else it is named after: delivery-soldout
        around = view.surroundings.of(element.node.parent)
    of_option = bool(_OF_AN_OPTION.search(text.lower()))
    if meaning in GONE and (around.tile or repeated or of_option):
        return None
    confidence = 0.75 if len(text) < 80 else 0.6
    if meaning in GONE and around.option:
        return meaning, _OPTION_TRUST
    confidence -= 0.3 if of_option else 0.0
    if view.distance(element) > _NEAR:
        confidence -= 0.25
    return meaning, confidence - (0.2 if around.tile else 0.0)


def _button_facts(view: DomView) -> Iterator[Fact]:
    stated = _button_meanings(view)
    if not stated.isdisjoint(GONE):
        yield Fact(FieldName.AVAILABILITY, Availability.OUT_OF_STOCK, 0.7, "dom:button")
    elif later := stated & {Availability.PREORDER, Availability.BACKORDER}:
        meaning = min(later)  # the same one on every page that has both
        yield Fact(FieldName.AVAILABILITY, meaning, _BUTTON_TRUST, "dom:button")
    elif _can_be_bought(view) and view.buy_button is not None:
        near = view.distance(view.buy_button.element) < 2 * _NEAR
        confidence = 0.55 if near else 0.4
        yield Fact(FieldName.AVAILABILITY, Availability.IN_STOCK, confidence, "dom:button")


def _button_meanings(view: DomView) -> set[Availability]:
    """What buttons near the heading say, such as "sold out" and "pre-order"."""
    found: set[Availability] = set()
    for element, text in view.buttons[:200]:
        near = view.distance(element) < _NEAR
        if near and text and len(text) < 50 and (meaning := availability_in(text)):
            around = view.surroundings.of(element.node)
            if not (around.elsewhere or around.tile or around.hidden or around.option):
                found.add(meaning)
    return found
