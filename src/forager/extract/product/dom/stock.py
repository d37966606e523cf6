"""Whether a reader could buy the product: words beside it, and the state of the button."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forager.extract.product.availability import words_of
from forager.extract.product.dom.view import View, control_text
from forager.extract.product.elements import Element
from forager.extract.product.fact import Fact, FieldName
from forager.extract.product.record import Availability

_MAX_TEXT = 140
_NEAR = 900
_GONE = (Availability.OUT_OF_STOCK, Availability.DISCONTINUED)
# names that say it by themselves, where the element has no words
_OUT_NAMES = re.compile(
    r"(?:^|[\s_-])(?:out-?_?of-?_?stock|sold-?_?out|soldout|unavailable)(?:$|[\s_-])"
)


def stock_facts(view: View) -> Iterator[Fact]:
    yield from _word_facts(view)
    yield from _button_facts(view)


def _word_facts(view: View) -> Iterator[Fact]:
    best: dict[Availability, float] = {}
    for element in view.elements.stocks[:300]:
        said = _said(element, view)
        if said is not None:
            meaning, confidence = said
            best[meaning] = max(best.get(meaning, 0.0), confidence)
    for meaning, confidence in best.items():
        yield Fact(FieldName.AVAILABILITY, meaning, confidence, "dom:stock")


def _said(element: Element, view: View) -> tuple[Availability, float] | None:
    if element.node.tag in ("script", "style", "input", "option", "select", "meta", "link", "form"):
        return None
    text = " ".join(element.node.text(separator=" ")[:2000].split())
    if not text or len(text) > _MAX_TEXT:
        return None
    meaning = words_of(text)
    if meaning is None:
        return None
    around = view.surroundings.of(element.node)
    if around.elsewhere or around.hidden or around.linked:
        return None
    confidence = 0.75 if len(text) < 60 else 0.6
    if view.distance(element) > _NEAR:
        confidence -= 0.25
    return meaning, confidence - (0.2 if around.tile else 0.0)


def _button_facts(view: View) -> Iterator[Fact]:
    for element in (*view.elements.buttons[:200],):
        text = control_text(element)
        if text and len(text) < 50 and words_of(text) in _GONE:
            around = view.surroundings.of(element.node)
            if (
                not (around.elsewhere or around.tile or around.hidden)
                and view.distance(element) < _NEAR
            ):
                yield Fact(FieldName.AVAILABILITY, Availability.OUT_OF_STOCK, 0.7, "dom:button")
                return
    button = view.buy_button
    if button is not None:
        near = view.distance(button.element) < 2 * _NEAR
        if button.enabled:
            yield Fact(
                FieldName.AVAILABILITY, Availability.IN_STOCK, 0.55 if near else 0.4, "dom:button"
            )
