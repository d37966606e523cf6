# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""The visible price: candidates are scored by their position and names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import islice

from selectolax.lexbor import LexborNode

from forager.extract.product.dom.view import View
from forager.extract.product.elements import Element
from forager.extract.product.price import Money, money_in
from forager.extract.product.record import Fact, FieldName

_MAX_CANDIDATES = 80
_MAX_TEXT = 160
# elements inside of one that has several prices
_MAX_INSIDE = 40
_TIE = 0.15
_DIGIT = re.compile(r"\d")

_CURRENT = re.compile(
    r"(?:current|sale|selling|special|final|now|actual|our|buy|main|offer|deal|promo|discounted"
    r"|display"
    r"|product|detail|pdp|item|big|new|aktuell|actuel|attuale|prc)-?_?\w{0,12}-?_?pri[cx]e"
    r"|pri[cx]e-?_?\w{0,8}"
    r"-?_?(?:current|sale|now|final|special|new|main|value|big|discount|our)|buyingprice"
    r"|pricetopay|itemprice"
)
_FORMER = re.compile(
    r"\bold|old-?_?pri|was-?_?pri|pri[cx]e-?_?was|\bwas\b|regular|\blist-?_?pri|pri[cx]e-?_?list"
    r"|rrp|msrp"
    r"|strike|crossed|line-?through|before|original|\buvp\b|retail|compare|previous|former"
    r"|standard-?_?pri"
    r"|barr[eé]|ancien|tachado|normal-?_?pri|pri[cx]e-?_?(?:old|normal|regular|original|before"
    r"|base)|full-?pri"
)
_NOT_PRICE = re.compile(
    r"sav(?:e|ing)|discount-?_?(?:per|amount|val|rate|badge)|shipping|deliver|postage|per-?_?unit"
    r"|unit-?_?pri"
    r"|pri[cx]e-?_?(?:per|unit|range|filter|slider|label|info|alert|match|guarantee|history)"
    r"|base-?_?price-?_?unit"
    r"|instal|monthly|month|financ|credit|loyal|point|reward|coupon|voucher|\btax|\bvat\b|subtotal"
    r"|cart-?_?total"
    r"|basket|deposit|trade-?in|gift|afterpay|klarna|minimum|filter|quantity|amount-?_?(?:input"
    r"|select)|lowest"
    r"|estimat|wasprice-?label|swatch|used-?price|rent|\bmember|subscri(?:be|ption)|omnibus"
)
_FORMER_WORDS = re.compile(
    r"(?:\bwas|\brrp|\bmsrp|list price|regular|original|instead of|\bold|\bbefore|statt|uvp"
    r"|ehemals|vorher"
    r"|au lieu de|prix (?:conseillé|barré)|anzi ?ché|invece di|listino|antes|precio (?:normal"
    r"|lista|regular)"
    r"|\bde\b|původn|pôvodn|bežn|zamiast|цена без|старая|定價|原價|市價|原价|参考価格|정가|\bpvp\b"
    r"|normal"
    r"|adviesprijs"
    r"|ord\.?|v[eé]ase)\W{0,6}\w{0,12}\W{0,4}$",
    re.IGNORECASE,
)
_OTHER_WORDS = re.compile(
    r"(?:save|you save|sparen|ersparnis|économi\w*|risparmi\w*|ahorr\w*|ušetr\w*|shipping|postage"
    r"|delivery"
    r"|versand\w*|livraison|spedizione|envío|doprava|from only|per month|deposit|over|above"
    r"|orders?|up to|bis zu"
    r"|minimum|min\.?|tax|vat|iva|tva|mwst|punkte|points|cuotas?|rate[ns]?|x"
    r"|approx(?:imately|\.)?)\W{0,8}(?:von|de|di|of|a|:)?\W{0,3}$",
    re.IGNORECASE,
)
# the same in a separate element
_OTHER_LABEL = re.compile(r"\W*(?:you save|sie sparen|approx(?:imately|\.)?)\W*", re.IGNORECASE)
# after the amount: a price for a month, a share, a kilo or a number of instalments
_PER = re.compile(
    r"^\W{0,3}(?:/|per\b|pro\b|par\b|al\b|each month|a month|p/m|pm\b|monthly|mtl|x \d|\bkg\b"
    r"|/?100 ?(?:g|ml)"
    r"|off\b|discount|%|rabat|back\b|cuotas|mesi|mois|monat|shipping|postage|delivery"
    r"|de (?:livraison|frais)"
    r"|spedizione|versand|points?|pkt|reviews?|ratings?|stars?|kus(?:ov)?\b|left|x\b)",
    re.IGNORECASE,
)


# before or after an amount that only some buyers pay, or without the tax
_CONDITION = re.compile(
    r"(?:\b(?:members?|mitglieder|subscribe(?:rs)?|subscription)\W{0,4}(?:\w{1,5}\W{0,3}){0,2}$)"
    r"|^\W{0,3}ex(?:cl(?:uding|\.)?)?\W{1,2}(?:of )?(?:vat|tax(?:es)?|gst|mwst|btw|iva|tva|moms)\b",
    re.IGNORECASE,
)
# the price that shops in the EU must name beside a reduced one: the lowest of 30 days
_LOWEST = re.compile(
    r"(?:lowest|niedrigster|günstigster|plus bas|najniższa|nejnižší|najnižšia|più basso|más bajo"
    r"|mais baixo|laagste|lägsta|laveste|alin hinta|legalacsonyabb|cel mai mic)\b.{1,30}\b30\b",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Candidate:
    amount: Decimal
    currency: str | None
    score: float
    former: bool
    struck: bool
    names: str
    order: int
    conditional: bool = False


def price_facts(view: View, *, known: bool) -> Iterator[Fact]:
    """The best price, the list price, and their currency.

    If the price is `known` from the data of the page, not all texts are searched.
    """
    found = _candidates(view)
    if not known and not any(c.score >= 2 and not c.former for c in found):
        found += _text_candidates(view)
    yield from _facts(found)


def _facts(found: list[Candidate]) -> Iterator[Fact]:
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
    yield Fact(FieldName.PRICE, best.amount, _confidence(best.score), f"dom:{_label(best)}")
    if best.currency:
        yield Fact(FieldName.CURRENCY, best.currency, _confidence(best.score) * 0.9, "dom:price")
    former = [c for c in found if c.former and c.amount > best.amount and c.score > -2]
    if former:
        before = max(former, key=lambda c: (c.score, -c.order))
        yield Fact(
            FieldName.LIST_PRICE, before.amount, _confidence(before.score), f"dom:{_label(before)}"
        )


def _totals(found: list[Candidate]) -> list[Candidate]:
    """The best candidate of each amount, a little better for every time it is repeated."""
    best: dict[Decimal, Candidate] = {}
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


def _label(candidate: Candidate) -> str:
    return candidate.names.split()[0][:60] if candidate.names.split() else "text"


# --- elements that are named after prices -----------------------------------------------------


def _candidates(view: View) -> list[Candidate]:
    """The candidates nearest to the heading: a page may have hundreds of other prices."""
    elements = view.elements.prices
    repeats = Counter(e.names for e in elements)
    nearest = sorted(elements, key=view.distance)[:_MAX_CANDIDATES]
    found: list[Candidate] = []
    for element in nearest:
        found.extend(_candidates_of(element, view, repeats[element.names]))
    return found


def _candidates_of(element: Element, view: View, repeats: int) -> Iterator[Candidate]:
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
        for each in _judged(money, text, element, base - (1.0 if several else 0.0), view):
            if each.amount in former:
                each.former = each.struck = True
            yield each


def _former_amounts(node: LexborNode, view: View) -> frozenset[Decimal]:
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


def _score_of_place(element: Element, view: View, repeats: int) -> float | None:
    around = view.surroundings.of(element.node)
    score = 1.0
    score -= 6.0 if around.elsewhere else 0.0
    score -= 2.0 if around.tile else 0.0
    score -= 2.0 if around.hidden else 0.0
    score -= 2.0 if around.linked else 0.0
    score -= 1.5 if repeats > 5 else 0.0
    score += _score_of_names(element.names)
    score += _nearness(element, view)
    return score if score > -2.5 else None


@lru_cache(maxsize=16_384)
def _score_of_names(names: str) -> float:
    score = 1.5 if _CURRENT.search(names) else 0.0
    return score - (3.0 if _NOT_PRICE.search(names) else 0.0)


def _nearness(element: Element, view: View) -> float:
    score = 0.0
    if view.heading is not None:
        score += max(0.0, 2.5 - view.distance(element) / 120)
    if view.buy_button is not None:
        score += max(0.0, 1.5 - abs(element.order - view.buy_button.element.order) / 80)
    return score


def _judged(
    money: Money, text: str, element: Element, base: float, view: View
) -> Iterator[Candidate]:
    before, after = text[max(0, money.start - 40) : money.start], text[money.end : money.end + 30]
    if _PER.match(after) or _OTHER_WORDS.search(before):
        return
    if not before.strip():
        before = _text_before(element.node)
        if _OTHER_LABEL.fullmatch(before):
            return
    # its number of days is no price either
    named_lowest = before if money.symbol else before + text[money.start : money.end]
    if _LOWEST.search(named_lowest):
        return
    struck = view.surroundings.of(element.node).struck
    named = _FORMER.search(element.names) or _FORMER_WORDS.search(before)
    score = base + (1.5 if money.symbol else -0.5) + (0.5 if len(text) < 25 else -0.3)
    conditional = bool(_CONDITION.search(before) or _CONDITION.match(after))
    score -= 2.0 if conditional else 0.0
    yield Candidate(
        money.amount, money.currency, score, struck or bool(named), struck, element.names,
        element.order, conditional,
    )  # fmt: skip


def _text_before(node: LexborNode) -> str:
    """The end of the text before an element: its label may be a separate element."""
    for each in (node, node.parent):
        beside = each.prev if each is not None else None
        while beside is not None:
            if text := " ".join(beside.text(separator=" ")[:200].split()):
                if _LOWEST.search(text):
                    return text
                return text[-40:] if len(text) < 60 and not _DIGIT.search(text) else ""
            beside = beside.prev
    return ""


# --- any text, where no element was named after a price ---------------------------------------

# elements before and after the heading in which a price without a name is accepted
_BEFORE, _AFTER = 150, 1_200
_NUMBER_ALONE = re.compile(r"\s*\d[\d.,'’\s]{0,15}\s*(?:[.,][-–—]{1,2})?\s*")
_LOUD_STYLE = re.compile(r"bold|(?:[2-9]\d|1[89])\s?p[xt]|[2-9](?:\.\d+)?r?em")
_LOUD_TAGS = frozenset(["b", "strong", "big", "em", "h2", "h3", "h4", "ins"])


def _text_candidates(view: View) -> list[Candidate]:
    start = view.start
    found: list[Candidate] = []
    for order, node, text in view.texts:
        if start - _BEFORE <= order <= start + _AFTER and _DIGIT.search(text):
            found.extend(_in_text(" ".join(text.split()), node.parent or node, order, view))
    return found


def _in_text(text: str, parent: LexborNode, order: int, view: View) -> Iterator[Candidate]:
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
        if money.symbol:
            yield from _judged(money, text, element, base - 1.0, view)


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
