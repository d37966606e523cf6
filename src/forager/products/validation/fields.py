"""Validation of product fields: invalid values are rejected, held, or marked."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

from forager.extract.product.currency import ISO_CODES
from forager.extract.product.product import Availability, Product, ProductImage, Variant
from forager.extract.product.wording import gtin_of
from forager.extract.softerror import soft_error
from forager.extract.text import clip, collapse, readable

# the least confidence of a page without price and SKU
MIN_CONFIDENCE = 0.3
# the largest numeric(14,4)
MAX_AMOUNT = Decimal("9999999999.9999")
# smaller amounts would be stored as zero
_SMALLEST = Decimal("0.0001")
MAX_COUNT = 2**63 - 1
_AVAILABILITIES = frozenset(Availability)
# the longest quoted value
_QUOTED = 80


class Severity(StrEnum):
    """The consequence for a value that breaks a rule."""

    # impossible: the value is rejected
    ERROR = "error"
    # implausible: the value is rejected until a later visit confirms it
    DOUBT = "doubt"
    # odd: the product is only marked
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class UnconfirmedValue:
    """A value that waits for confirmation; `page` is where it was first seen."""

    value: str | None
    page: str | None


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One violation of a rule."""

    field: str
    rule: str
    message: str
    severity: Severity
    unconfirmed: UnconfirmedValue | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """A product without its impossible values, and the problems."""

    product: Product
    problems: tuple[FieldViolation, ...] = ()
    # why the page is not a product
    incomplete: str | None = None


def check(product: Product) -> Checked:
    """Check every field; never raises an error."""
    problems: list[FieldViolation] = []
    for field, rule in _RULES:
        value = getattr(product, field)
        if value is None:
            continue
        kept, problem = rule(value)
        if problem is not None:
            problems.append(problem)
        if kept is not value:
            product = replace(product, **{field: kept})
    images, refused = _check_images(product.images)
    product, crossed = _check_list_price(replace(product, images=images))
    problems += [*refused, *crossed, *_check_variants(product.variants)]
    incomplete, about_name = _check_name(product)
    return Checked(product, (*about_name, *problems), incomplete)


_Verdict = tuple[Any, FieldViolation | None]


def _amount(field: str) -> Callable[[object], _Verdict]:
    def rule(value: object) -> _Verdict:
        if not isinstance(value, Decimal) or not value.is_finite():
            return None, _error(field, "format", f"{_quote(value)} is not an amount")
        if value < _SMALLEST:
            return None, _error(field, "positive", f"{_quote(value)} is not above zero")
        if value > MAX_AMOUNT:
            return None, _error(field, "size", f"{_quote(value)} is too large to be an amount")
        return value, None

    return rule


def _currency(value: object) -> _Verdict:
    if isinstance(value, str) and value in ISO_CODES:
        return value, None
    return None, _error("currency", "known", f"{_quote(value)} is no ISO 4217 currency in use")


def _availability(value: object) -> _Verdict:
    if isinstance(value, str) and value in _AVAILABILITIES:
        return Availability(value), None
    return None, _error("availability", "known", f"{_quote(value)} is not an availability")


def _rating(value: object) -> _Verdict:
    if isinstance(value, Decimal) and value.is_finite() and 0 <= value <= 5:
        return value, None
    return None, _error("rating", "range", f"{_quote(value)} is not between 0 and 5")


def _review_count(value: object) -> _Verdict:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT:
        return value, None
    return None, _error("review_count", "range", f"{_quote(value)} is not a number of reviews")


def _gtin(value: object) -> _Verdict:
    kept = gtin_of(value)
    if kept is not None:
        return kept, None
    return None, _warning("gtin", "check_digit", f"{_quote(value)} is not a GTIN")


_RULES: tuple[tuple[str, Callable[[object], _Verdict]], ...] = (
    ("price", _amount("price")),
    ("list_price", _amount("list_price")),
    ("currency", _currency),
    ("availability", _availability),
    ("rating", _rating),
    ("review_count", _review_count),
    ("gtin", _gtin),
)


def _check_list_price(product: Product) -> tuple[Product, list[FieldViolation]]:
    price, list_price = product.price, product.list_price
    if price is None or list_price is None or list_price >= price:
        return product, []
    message = f"the list price {_quote(list_price)} is below the price {_quote(price)}"
    return replace(product, list_price=None), [_warning("list_price", "order", message)]


def _check_images(
    images: tuple[ProductImage, ...],
) -> tuple[tuple[ProductImage, ...], list[FieldViolation]]:
    good = tuple(image for image in images if _is_web_address(image.url))
    bad = len(images) - len(good)
    if not bad:
        return images, []
    first = next(image.url for image in images if not _is_web_address(image.url))
    others = f" and {bad - 1} more" if bad > 1 else ""
    return good, [_warning("images", "address", f"{_quote(first)}{others}: not a web address")]


def _check_variants(variants: tuple[Variant, ...]) -> list[FieldViolation]:
    """Invalid prices of variants, which are not stored."""
    bad = [v.price for v in variants if v.price is not None and not _is_amount(v.price)]
    if not bad:
        return []
    others = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
    return [_warning("variants", "size", f"{_quote(bad[0])}{others}: not an amount")]


def _is_amount(value: object) -> bool:
    return isinstance(value, Decimal) and value.is_finite() and _SMALLEST <= value <= MAX_AMOUNT


_WEB_ADDRESS = re.compile(
    r"https?://(?:[^\s/?#@\[\]]*@)?(?:\[[0-9a-f:.]+\]|[^\s/?#@\[\]:]+)", re.IGNORECASE
)


def _is_web_address(url: object) -> bool:
    return isinstance(url, str) and _WEB_ADDRESS.match(url) is not None


_STATUS_WORDS = (
    r"forbidden|unauthorized|too many requests|bad gateway|internal server error"
    r"|service (?:temporarily )?unavailable|gateway time-?out|access denied"
)
# titles of pages that a shop shows to rejected visitors, as the whole name
_BLOCKED = re.compile(
    r"robot check|bot (?:check|verification|detection)|captcha|are you (?:a )?(?:robot|human)\??"
    r"|access (?:to this page (?:has been )?)?(?:is )?(?:denied|blocked|forbidden)"
    rf"|(?:(?:http )?(?:error )?(?:4|5)\d\d\W{{1,3}})?(?:{_STATUS_WORDS})\W*"
    r"|(?:http )?error (?:4|5)\d\d"
    r"|just a moment\W*|one moment,? please\W*|please wait\W*|checking your browser.{0,60}"
    r"|attention required\W*(?:cloudflare)?|pardon our interruption\W*|ddos-guard"
    r"|(?:please )?verify(?:ing)? (?:that )?you(?: are|'re) (?:a )?human.{0,40}"
    r"|human verification|security (?:check|verification).{0,40}|request (?:blocked|rejected)\W*"
    r"|(?:sorry, )?you have been blocked\W*|sorry! something went wrong!?|unusual traffic.{0,60}"
    r"|(?:site )?(?:under|down for) (?:maintenance|construction)\W*",
    re.IGNORECASE,
)
# longer names are those of products
_LONGEST_TITLE = 200
_TITLE_PARTS = re.compile(r"\s+[-|:\u2013\u2014]\s+")


def is_turned_away(name: str) -> bool:
    """Whether a name is the title of an error page or of a rejection."""
    name = name.replace("\u2019", "'").strip()
    parts = (name, *_TITLE_PARTS.split(name))
    blocked = any(_BLOCKED.fullmatch(part.strip()) for part in parts)
    return blocked or soft_error(name, (), 0) is not None


def _check_name(product: Product) -> tuple[str | None, list[FieldViolation]]:
    """Why the page is not a product, and the problems."""
    name = collapse(readable(product.name)) if isinstance(product.name, str) else ""
    known_otherwise = product.price is not None or bool(product.sku)
    if not name:
        message = "the page has no name of a product"
        return message, [_error("name", "required", message)]
    if len(name) <= _LONGEST_TITLE and is_turned_away(name):
        message = f"the page calls itself {_quote(name)}: it refuses, or is an error page"
        if not known_otherwise:
            return message, [_error("name", "page_title", message)]
        return None, [_warning("name", "page_title", message)]
    if not known_otherwise and product.confidence < MIN_CONFIDENCE:
        message = (
            f"the page says neither price nor SKU, and hardly looks like a product's "
            f"({product.confidence:.2f})"
        )
        return message, [_error("name", "confidence", message)]
    return None, []


def _error(field: str, rule: str, message: str) -> FieldViolation:
    return FieldViolation(field, rule, message, Severity.ERROR)


def _warning(field: str, rule: str, message: str) -> FieldViolation:
    return FieldViolation(field, rule, message, Severity.WARNING)


def _quote(value: object) -> str:
    """A value as a message can contain it."""
    shown = str(value) if isinstance(value, str | Decimal) else repr(value)[: _QUOTED * 4]
    text, cut = clip(collapse(readable(shown[: _QUOTED * 4])), _QUOTED)
    return f"{text}…" if cut else text
