# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""The visible price: candidates are scored by their position and names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import islice

from selectolax.lexbor import LexborNode

from forager.extract.product.currency import iso_code
from forager.extract.product.dom.price_words import (
    CONDITION,
    CURRENT_NAME,
    FORMER_NAME,
    FORMER_WORDS,
    LOWEST,
    NOT_PRICE,
    OTHER_LABEL,
    OTHER_WORDS,
    PER,
)
from forager.extract.product.dom.view import DomView
from forager.extract.product.elements import Element
from forager.extract.product.price import Money, money_in
from forager.extract.product.product import Availability, Fact, FieldName

_MAX_CANDIDATES = 80
_MAX_TEXT = 160
# elements inside of one that has several prices
_MAX_INSIDE = 40
_TIE = 0.15
_DIGIT = re.compile(r"\d")


@dataclass(slots=True)
class PriceCandidate:
    """A text on the page that may be the price."""

    amount: Decimal
    currency: str | None
    score: float
    former: bool
    struck: bool
    names: str
    order: int
    conditional: bool = False
    # its currency is written as a code, such as CAD
    has_code: bool = False


# a candidate of this score stands where a reader looks for the price
_IN_PLACE = 2.0


def price_facts(view: DomView, *, stated: Set[Decimal] = frozenset()) -> Iterator[Fact]:
    """The best price, the list price, and their currency.

    If the data of the page has `stated` a price, all texts are searched only if the page shows it
    struck through: then it is the list price of a deal. If the place of the price is empty, amounts
    elsewhere are not the price.
    """
    found = _candidates(view)
    struck: Decimal | None = None
    in_place = any(c.score >= _IN_PLACE and not c.former for c in found)
    if stated:
        has_lower = any(_undercuts(c, stated) for c in found)
        struck = _struck_price(view, stated, in_words=has_lower)
        if struck is not None and not has_lower:
            found += _text_candidates(view)
    elif not in_place and (empty := _empty_place(view)) is not None:
        if _ON_REQUEST.search(empty):
            yield Fact(FieldName.AVAILABILITY, Availability.ON_REQUEST, 0.9, "dom:price")
        return
    elif not in_place:
        found += _text_candidates(view)
    yield from _facts(found, struck)


_ON_REQUEST = re.compile(
    r"(?:prices?|cost)?\s?(?:up)?on (?:request|application|enquiry|inquiry)|\bp\.?o\.?a\b"
    r"|(?:call|ask|contact us|enquire|inquire) for (?:a )?(?:price|pricing|quote)"
    r"|request a (?:quote|price)|auf anfrage|sur (?:demande|devis)|su richiesta"
    r"|(?:precio )?(?:a consultar|bajo pedido)|sob consulta|op aanvraag|pris på (?:förfrågan"
    r"|forespørsel)|na dotaz|na vyžiadanie|na zapytanie|цена по запросу|по запросу",
    re.IGNORECASE,
)


def _empty_place(view: DomView) -> str | None:
    """The text of the element that is named after the price and shows none; None: there is none.

    Zero is no price either. An element that is not visible, or beside the product, does not count.
    """
    repeats = Counter(e.names for e in view.elements.prices)
    for element in sorted(view.elements.prices, key=view.distance)[:_MAX_CANDIDATES]:
        if element.node.tag in _NO_PRICE_TAGS or FORMER_NAME.search(element.names):
            continue
        score = _score_of_place(element, view, repeats[element.names])
        if score is None or score < _IN_PLACE or view.distance(element) > _AFTER:
            continue
        text = " ".join(element.node.text(separator=" ")[:400].split())
        amounts = [m.amount for m in money_in(text, view.page.currency_hints)]
        if len(text) <= _MAX_TEXT and not any(amounts):
            return text
    return None


def _undercuts(candidate: PriceCandidate, stated: Set[Decimal]) -> bool:
    return candidate.score >= _IN_PLACE and not candidate.former and candidate.amount < max(stated)


def _struck_price(view: DomView, stated: Set[Decimal], *, in_words: bool) -> Decimal | None:
    """The stated price that the product's own block shows struck through, or as a former one.

    `in_words`: also one that only the words before it call a former price.
    """
    digits = {str(int(amount))[-3:] for amount in stated}
    for order, node, text in view.texts:
        near = view.start - _BEFORE <= order <= view.start + _AFTER
        if not near or not any(each in text for each in digits):
            continue
        parent = node.parent or node
        around = view.surroundings.of(parent)
        named = FORMER_NAME.search((parent.attributes.get("class") or "").lower())
        if around.elsewhere or around.tile or around.remark:
            continue
        is_former = around.struck or bool(named)
        if not (is_former or in_words):
            continue
        for money in money_in(text[:_MAX_TEXT], view.page.currency_hints):
            if money.amount in stated and (is_former or FORMER_WORDS.search(text[: money.start])):
                return money.amount
    return None


def _facts(found: list[PriceCandidate], struck: Decimal | None) -> Iterator[Fact]:
    totals = _totals([c for c in found if not c.former])
    if not totals:
        # a "regular price" that nothing undercuts is the price
        totals = _totals([c for c in found if not c.struck])
    if not totals:
        return
    top = max(c.score for c in totals)
    # of prices with about the same score, the first one
    best = min((c for c in totals if c.score > top - _TIE), key=lambda c: c.order)
    if best.conditional:
        # the "regular price" of everyone else, which is not struck through
        usual = [c for c in found if c.former and not c.struck and c.score >= best.score]
        best = max(usual, key=lambda c: c.score, default=best)
    origin = f"dom:{_label(best) if struck is None else 'deal'}"
    yield Fact(FieldName.PRICE, best.amount, _confidence(best.score), origin)
    if best.currency:
        written = "dom:code" if best.has_code else "dom:price"
        yield Fact(FieldName.CURRENCY, best.currency, _confidence(best.score) * 0.9, written)
    if struck is not None and struck > best.amount and best.score >= _IN_PLACE:
        # the element that shows it may have no name
        yield Fact(FieldName.LIST_PRICE, struck, _confidence(best.score), origin)
    former = [c for c in found if c.former and c.amount > best.amount and c.score > -2]
    if former:
        before = max(former, key=lambda c: (c.score, -c.order))
        yield Fact(
            FieldName.LIST_PRICE, before.amount, _confidence(before.score), f"dom:{_label(before)}"
        )


def _totals(found: list[PriceCandidate]) -> list[PriceCandidate]:
    """The best candidate of each amount, a little better for every time it is repeated."""
    best: dict[Decimal, PriceCandidate] = {}
    counts: Counter[Decimal] = Counter()
    for each in found:
        if each.score <= 0 or not each.amount:
            continue
        counts[each.amount] += 1
        if each.amount not in best or best[each.amount].score < each.score:
            best[each.amount] = each
    for amount, each in best.items():
        each.score += min(0.9, 0.3 * (counts[amount] - 1))
    return list(best.values())


def _confidence(score: float) -> float:
    return round(max(0.2, min(0.8, 0.3 + 0.07 * score)), 3)


def _label(candidate: PriceCandidate) -> str:
    return candidate.names.split()[0][:60] if candidate.names.split() else "text"


# --- elements that are named after prices -----------------------------------------------------


def _candidates(view: DomView) -> list[PriceCandidate]:
    """The candidates nearest to the heading: a page may have hundreds of other prices."""
    elements = view.elements.prices
    repeats = Counter(e.names for e in elements)
    nearest = sorted(elements, key=view.distance)[:_MAX_CANDIDATES]
    found: list[PriceCandidate] = []
    for element in nearest:
        found.extend(_candidates_of(element, view, repeats[element.names]))
    return found


def _candidates_of(element: Element, view: DomView, repeats: int) -> Iterator[PriceCandidate]:
    if element.node.tag in _NO_PRICE_TAGS:
        return
    base = _score_of_place(element, view, repeats)
    text = _short_text(element.node) if base is not None else None
    if base is None or text is None:
        return
    hints = view.page.currency_hints
    moneys = [m for m in money_in(text, hints) if m.amount]
    if len(moneys) == 1 and _NUMBER_ALONE.fullmatch(text):
        text = _text_around(element.node, text)
        moneys = [m for m in money_in(text, hints) if m.amount == moneys[0].amount] or moneys
    several = len({m.amount for m in moneys}) > 1
    former = _former_amounts(element.node, view) if several else frozenset()
    if all(money.amount in former for money in moneys):
        former = frozenset()  # named after the list price together with the price
    for money in moneys[:4]:
        for each in _candidate(money, text, element, base - (1.0 if several else 0.0), view):
            if each.amount in former:
                each.former = each.struck = True
            yield each


def _former_amounts(node: LexborNode, view: DomView) -> frozenset[Decimal]:
    """The amounts in a part of the element that is struck through or named after a list price."""
    inside = (each for each in node.traverse() if each.mem_id != node.mem_id)
    struck = [each for each in islice(inside, _MAX_INSIDE) if view.surroundings.of(each).struck]
    texts = (each.text(separator=" ")[:_MAX_TEXT] for each in struck)
    return frozenset(m.amount for text in texts for m in money_in(text, view.page.currency_hints))


_NO_PRICE_TAGS = frozenset(
    ["script", "style", "meta", "input", "select", "option", "form", "body", "link", "img"]
)


def _short_text(node: LexborNode) -> str | None:
    text = node.text(separator=" ")
    if len(text) > 4000:
        return None
    text = " ".join(text.split())
    return text if len(text) <= _MAX_TEXT and _DIGIT.search(text) else None


def _score_of_place(element: Element, view: DomView, repeats: int) -> float | None:
    around = view.surroundings.of(element.node)
    if around.elsewhere or around.remark:
        return None  # never the price, even if the page shows no other amount
    score = 1.0
    score -= 2.0 if around.tile else 0.0
    score -= 2.0 if around.hidden else 0.0
    score -= 2.0 if around.linked else 0.0
    score -= 1.5 if repeats > 5 else 0.0
    score += _score_of_names(element.names)
    score += _nearness(element, view)
    return score if score > -2.5 else None


@lru_cache(maxsize=16_384)
def _score_of_names(names: str) -> float:
    score = 1.5 if CURRENT_NAME.search(names) else 0.0
    return score - (3.0 if NOT_PRICE.search(names) else 0.0)


def _nearness(element: Element, view: DomView) -> float:
    score = 0.0
    if view.heading is not None:
        score += max(0.0, 2.5 - view.distance(element) / 120)
    if view.buy_button is not None:
        score += max(0.0, 1.5 - abs(element.order - view.buy_button.element.order) / 80)
    return score


def _candidate(
    money: Money, text: str, element: Element, base: float, view: DomView
) -> Iterator[PriceCandidate]:
    before, after = text[max(0, money.start - 40) : money.start], text[money.end : money.end + 30]
    if PER.match(after) or OTHER_WORDS.search(before):
        return
    if not before.strip():
        before = _text_before(element.node)
        if OTHER_LABEL.fullmatch(before):
            return
    # its number of days is no price either
    named_lowest = before if money.symbol else before + text[money.start : money.end]
    if LOWEST.search(named_lowest):
        return
    struck = view.surroundings.of(element.node).struck
    named = FORMER_NAME.search(element.names) or FORMER_WORDS.search(before)
    score = base + (1.5 if money.symbol else -0.5) + (0.5 if len(text) < 25 else -0.3)
    conditional = bool(CONDITION.search(before) or CONDITION.match(after))
    score -= 2.0 if conditional else 0.0
    yield PriceCandidate(
        money.amount, money.currency, score, struck or bool(named), struck, element.names,
        element.order, conditional, has_code=iso_code(money.symbol or "") is not None,
    )  # fmt: skip


def _text_before(node: LexborNode) -> str:
    """The end of the text before an element: its label may be a separate element."""
    for each in (node, node.parent):
        beside = each.prev if each is not None else None
        while beside is not None:
            if text := " ".join(beside.text(separator=" ")[:200].split()):
                if LOWEST.search(text) or OTHER_LABEL.fullmatch(text):
                    return text
                return text[-40:] if len(text) < 60 and not _DIGIT.search(text) else ""
            beside = beside.prev
    return ""


# --- any text, where no element was named after a price ---------------------------------------

# elements before and after the heading in which a price without a name is accepted
_BEFORE, _AFTER = 150, 1_200
_NUMBER_ALONE = re.compile(r"\s*\d[\d.,'’\s]{0,15}\s*(?:[.,:][-–—]{1,2})?\s*")
_LOUD_STYLE = re.compile(r"bold|(?:[2-9]\d|1[89])\s?p[xt]|[2-9](?:\.\d+)?r?em")
_LOUD_TAGS = frozenset(["b", "strong", "big", "em", "h2", "h3", "h4", "ins"])


def _text_candidates(view: DomView) -> list[PriceCandidate]:
    start = view.start
    found: list[PriceCandidate] = []
    for order, node, text in view.texts:
        if start - _BEFORE <= order <= start + _AFTER and _DIGIT.search(text):
            found.extend(_in_text(" ".join(text.split()), node.parent or node, order, view))
    return found


def _in_text(text: str, parent: LexborNode, order: int, view: DomView) -> Iterator[PriceCandidate]:
    if _NUMBER_ALONE.fullmatch(text):
        text = _text_around(parent, text)
    moneys = [m for m in money_in(text[:_MAX_TEXT], view.page.currency_hints) if m.amount]
    if not any(m.symbol for m in moneys):
        return
    names = (parent.attributes.get("class") or "").lower()
    element = Element(order, parent, names)
    base = _score_of_place(element, view, 0)
    if base is None:
        return
    base += 0.7 if _is_loud(parent) else 0.0
    for money in moneys:
        if money.symbol and not _PROSE.search(text[: money.start]):
            yield from _candidate(money, text, element, base - 1.0, view)


# words of a sentence before an amount, which is no label
_PROSE = re.compile(r"(?:\b[^\W\d]{2,}[\s,]+){3,}(?:[^\W\d]+\W{0,3})?$")


def _text_around(node: LexborNode, text: str) -> str:
    """A number with the text beside it, which may be its currency."""
    above = node.parent
    around = " ".join(above.text(separator=" ")[:300].split()) if above is not None else ""
    at = around.find(text)
    return around[max(0, at - 40) : at + len(text) + 8] if at >= 0 and len(around) < 120 else text


def _is_loud(node: LexborNode) -> bool:
    if node.tag in _LOUD_TAGS:
        return True
    return bool(_LOUD_STYLE.search((node.attributes.get("style") or "")[:200]))
