"""Many claims, one product: for each field the value that the page supports best."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from forager.extract.product.likeness import likeness
from forager.extract.product.page import ProductPage
from forager.extract.product.price import MAX_PRICE
from forager.extract.product.product import GONE, Availability, Evidence, Fact, FieldName, Product
from forager.extract.product.wording import code_key

# the share of the remaining doubt that each further place with the same value removes
_AGREEMENT = 0.4
_CERTAIN = 0.99
_PARSER = "parser"
# places that machines write
_DATA = frozenset(["json-ld", "microdata", "rdfa", "opengraph", "meta", "script"])
_AMOUNTS = frozenset({FieldName.PRICE, FieldName.LIST_PRICE})
# a site parser declares a confidence below this for a guess
_PARSER_SURE = 0.5


@dataclass(frozen=True, slots=True)
class FieldClaim:
    """One value of one field, and all the places that state it."""

    value: Any
    confidence: float
    origin: str
    places: frozenset[str]


def merge(facts: Iterable[Fact], page: ProductPage, *, calibrate: bool = True) -> Product:
    """The product that the facts of one page describe, with the evidence for every field.

    Scores decide between claims; the confidences of the result are calibrated from them.
    """
    known = [fact for fact in facts if not _names_shop(fact, page)]
    chosen = {
        name: claim for name, of_field in _by_field(known).items()
        if (claim := choose(name, of_field))
    }  # fmt: skip
    _settle_sku(chosen, known)
    _spell_brand(chosen, page)
    _settle_price(chosen, known)
    _settle_availability(chosen, known)
    _doubt_price(chosen)
    evidence = {
        str(name): Evidence(round(claim.confidence, 3), claim.origin)
        for name, claim in chosen.items()
    }
    values = {str(name): claim.value for name, claim in chosen.items()}
    product = replace(Product(evidence=evidence), **values)
    product = replace(product, confidence=likeness(product, known, page))
    return replace(product, evidence=_calibrated(evidence)) if calibrate else product


def _calibrated(evidence: Mapping[str, Evidence]) -> dict[str, Evidence]:
    return {
        name: replace(each, confidence=round(calibrated(name, each.confidence), 3))
        for name, each in evidence.items()
    }


def _by_field(facts: list[Fact]) -> dict[FieldName, list[Fact]]:
    """The facts of each field that has any, in the order of the fields."""
    groups: dict[FieldName, list[Fact]] = {}
    for fact in facts:
        groups.setdefault(fact.field, []).append(fact)
    return {name: groups[name] for name in FieldName if name in groups}


def choose(name: FieldName, facts: list[Fact]) -> FieldClaim | None:
    """The best claim for a field."""
    claims = claims_for(name, facts)
    if name in _AMOUNTS:
        # an impossible price is kept only if there is no other
        claims = [claim for claim in claims if claim.value < MAX_PRICE] or claims
    parsed = [c for c in claims if _PARSER in c.places and c.confidence >= _PARSER_SURE]
    return max(parsed or claims, key=lambda claim: claim.confidence, default=None)


def claims_for(name: FieldName, facts: list[Fact]) -> list[FieldClaim]:
    """The claims about a field, with equal values combined; agreement raises the confidence."""
    groups: dict[Any, list[Fact]] = {}
    for fact in facts:
        if fact.field is name:
            groups.setdefault(_key(name, fact.value), []).append(fact)
    return [_claim(group) for group in groups.values()]


def _claim(facts: list[Fact]) -> FieldClaim:
    best = max(facts, key=lambda fact: fact.confidence)
    by_place: dict[str, float] = {}
    for fact in facts:
        place = _place(fact)
        by_place[place] = max(by_place.get(place, 0.0), fact.confidence)
    confidence = best.confidence
    for place, other in by_place.items():
        if place != _place(best):
            confidence += (_CERTAIN - confidence) * other * _AGREEMENT
    return FieldClaim(best.value, min(confidence, 1.0), best.origin, frozenset(by_place))


def _place(fact: Fact) -> str:
    return fact.origin.partition(":")[0]


def _key(name: FieldName, value: Any) -> Any:
    """The key under which different spellings of a value are the same."""
    if name in (FieldName.SKU, FieldName.BRAND, FieldName.NAME) and isinstance(value, str):
        return code_key(value)
    if name is FieldName.GTIN and isinstance(value, str):
        return value.lstrip("0")
    return value


# --- fields that depend on each other ---------------------------------------------------------


_LABELED = 0.7
_CODES = (FieldName.SKU, FieldName.GTIN, FieldName.MPN, FieldName.PRODUCT_ID, FieldName.VARIANT_ID)


def _settle_sku(chosen: dict[FieldName, FieldClaim], facts: list[Fact]) -> None:
    """A code that visitors see beside a label is the SKU; that of the data is the shop's own ID."""
    known = chosen.get(FieldName.SKU)
    labels = {
        code_key(f.value): f for f in sorted(facts, key=lambda f: f.confidence)
        if f.field is FieldName.SKU and _place(f) == "label" and f.confidence >= _LABELED
    }  # fmt: skip
    if known is not None and labels and _PARSER not in known.places:
        claims = [c for c in claims_for(FieldName.SKU, facts) if code_key(c.value) in labels]
        best = max(claims, key=lambda claim: claim.confidence)
        shown = labels[code_key(best.value)]
        chosen[FieldName.SKU] = replace(best, value=shown.value, origin=shown.origin)
        data = [c for c in claims_for(FieldName.SKU, facts) if c.places & _DATA]
        others = [c for c in data if code_key(c.value) not in labels]
        if others:
            chosen[FieldName.PRODUCT_ID] = max(others, key=lambda claim: claim.confidence)
    taken: set[str] = set()
    for name in _CODES:
        if name in chosen:
            key = code_key(str(chosen[name].value))
            if key in taken and name is not FieldName.GTIN:
                del chosen[name]
            taken.add(key)


_PLATFORMS = frozenset(
    ["shopify", "woocommerce", "magento", "prestashop", "bigcommerce", "opencart", "shopware",
     "squarespace", "ecwid", "wordpress", "salesforcecommercecloud"]
)  # fmt: skip
# places in which a shop names its own brand
_ITEM_PLACES = frozenset(["json-ld", "microdata", "rdfa", "title", _PARSER])


def _names_shop(fact: Fact, page: ProductPage) -> bool:
    """Whether a brand is only the name of the shop, or of the software that it runs on."""
    if fact.field is not FieldName.BRAND or _place(fact) == _PARSER:
        return False
    key = code_key(fact.value)
    if key in _PLATFORMS:
        return True
    return _place(fact) not in _ITEM_PLACES and key in page.shop_names


def _spell_brand(chosen: dict[FieldName, FieldClaim], page: ProductPage) -> None:
    """Use the spelling of the title: its data may have TP Link for TP-Link."""
    brand = chosen.get(FieldName.BRAND)
    if brand is None or not brand.places <= _DATA or not brand.value[-1].isalnum():
        return
    if len(key := code_key(brand.value)) > 40:
        return
    spelled = re.compile(r"[\W_]{0,2}".join(map(re.escape, key)), re.IGNORECASE)
    titles = (spelled.search(title) for title in page.titles)
    found = next((match[0] for match in titles if match), brand.value)
    if found.casefold() != brand.value.casefold() or brand.value.isupper() > found.isupper():
        chosen[FieldName.BRAND] = replace(brand, value=found)


def _settle_price(chosen: dict[FieldName, FieldClaim], facts: list[Fact]) -> None:
    """A price that the page shows struck through, beside a lower one, is the list price."""
    price, before = chosen.get(FieldName.PRICE), chosen.get(FieldName.LIST_PRICE)
    if price is None or before is None:
        return
    if price.value == before.value and _PARSER not in price.places:
        shown = [
            c for c in claims_for(FieldName.PRICE, facts)
            if isinstance(c.value, Decimal) and c.value < price.value and "dom" in c.places
        ]  # fmt: skip
        if shown:
            chosen[FieldName.PRICE] = max(shown, key=lambda claim: claim.confidence)
            return
    if before.value <= price.value:
        del chosen[FieldName.LIST_PRICE]


# a product with a price is available, unless something contradicts it
_INFERRED = 0.35
_SEEN = 0.85


def _settle_availability(chosen: dict[FieldName, FieldClaim], facts: list[Fact]) -> None:
    """A visible "sold out" overrides the data of the page, which may be outdated."""
    price = chosen.get(FieldName.PRICE)
    known = chosen.get(FieldName.AVAILABILITY)
    if known is not None and _PARSER in known.places:
        return
    for claim in claims_for(FieldName.AVAILABILITY, facts):
        if claim.value is Availability.ON_REQUEST and price is None:
            chosen[FieldName.AVAILABILITY] = claim
            return
        if claim.value in GONE and "dom" in claim.places and claim.confidence >= _SEEN:
            chosen[FieldName.AVAILABILITY] = claim
            return
    unsure = known is None or known.confidence < _INFERRED
    if unsure and price is not None and price.confidence >= 0.5:
        chosen[FieldName.AVAILABILITY] = FieldClaim(
            Availability.IN_STOCK, _INFERRED, f"inferred:{price.origin}", frozenset()
        )


_UNSURE_PRICE = 0.5
# of an amount in a text that no element or data marks as the price
ANY_TEXT = "dom:text"


def _doubt_price(chosen: dict[FieldName, FieldClaim]) -> None:
    """Drop an uncertain price of a product that is unavailable: it is another product's."""
    price, stock = chosen.get(FieldName.PRICE), chosen.get(FieldName.AVAILABILITY)
    if price is None or stock is None or stock.value not in GONE:
        return
    is_unsure = price.confidence < _UNSURE_PRICE or price.origin == ANY_TEXT
    if is_unsure and price.places == {"dom"}:
        del chosen[FieldName.PRICE]
        for name in (FieldName.LIST_PRICE, FieldName.CURRENCY):
            claim = chosen.get(name)
            if claim is not None and claim.places == {"dom"}:
                del chosen[name]


# --- confidences as probabilities -------------------------------------------------------------

# `confidence.json` is written by `benchmarks/calibrate_products.py`. No reading is certain.
_LEAST, _MOST = 0.02, 0.99


@cache
def _model() -> dict[str, Any]:
    model: dict[str, Any] = json.loads(files(__package__).joinpath("confidence.json").read_bytes())
    return model


def calibrated(field: str, score: float) -> float:
    """The probability that a value of this score is right; the score itself without a model."""
    model = _model()
    if field not in model["offsets"]:
        return score
    logit = model["slope"] * log_odds(score) + model["offsets"][field]
    return min(_MOST, 1 / (1 + math.exp(-logit)))


def log_odds(score: float) -> float:
    bounded = min(max(score, _LEAST), _MOST)
    return math.log(bounded / (1 - bounded))
