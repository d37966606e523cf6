"""Filters and orders of product lists, and their cursors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from hashlib import sha256
from types import NoneType

import orjson

from forager.db.cursor import LARGEST_ID, decode_values, encode_values, unknown_cursor
from forager.errors import InvalidInput
from forager.extract.product.product import Availability
from forager.extract.product.wording import gtin_of
from forager.extract.text import collapse, storable
from forager.products.content import CATEGORY_SEPARATOR


class ProductOrder(StrEnum):
    """The order of a list of products."""

    NEWEST = "newest"
    UPDATED = "updated"
    NAME = "name"
    CHEAPEST = "cheapest"
    DEAREST = "dearest"
    DROPS = "drops"
    RISES = "rises"


class PriceDirection(StrEnum):
    """Whether prices that fell or those that rose are listed."""

    DROPS = "drops"
    RISES = "rises"


class PriceMeasure(StrEnum):
    """What price changes are ordered by: their share of the price, or their amount."""

    PERCENT = "percent"
    AMOUNT = "amount"


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on products; those that are None or empty do not apply.

    A product must meet all of them. Without `currency`, prices are compared as numbers:

        Filters(brand="Lumina", max_price=Decimal("50"), currency="EUR", availability=("in_stock",))
    """

    min_price: Decimal | None = None
    max_price: Decimal | None = None
    currency: str | None = None
    availability: tuple[str, ...] = ()
    min_rating: Decimal | None = None
    brand: str | None = None
    # one step of the path, or several joined with " > "
    category: str | None = None
    domain: str | None = None
    # content that changed at this time or later
    changed_since: datetime | None = None
    # last seen before this time, and no longer tracked or not found by a later visit
    not_seen_since: datetime | None = None
    has_problems: bool | None = None
    sku: str | None = None
    gtin: str | None = None
    # the ids of `domain`, once it was looked up
    domain_ids: tuple[int, ...] = ()


def checked(filters: Filters) -> Filters:
    """Normalized filters; raises an error for one that is not valid."""
    for name in ("min_price", "max_price", "min_rating"):
        _check_amount(name, getattr(filters, name))
    low, high = filters.min_price, filters.max_price
    if low is not None and high is not None and low > high:
        raise InvalidInput(f"no price is from {low} to {high}")
    for availability in filters.availability:
        if availability not in set(Availability):
            known = ", ".join(Availability)
            raise InvalidInput(f"{availability!r} is not an availability", hint=f"Try: {known}.")
    currency = _text(filters.currency)
    return replace(
        filters,
        currency=currency and currency.upper(),
        brand=_text(filters.brand),
        category=_path(filters.category),
        domain=_text(filters.domain),
        sku=_text(filters.sku),
        gtin=None if filters.gtin is None else _gtin(filters.gtin),
    )


def _check_amount(name: str, value: Decimal | None) -> None:
    if value is not None and not (value.is_finite() and 0 <= value < Decimal("1e10")):
        raise InvalidInput(f"{name.replace('_', ' ')} cannot be {value}")


def _text(value: str | None) -> str | None:
    """A text from a user, cut to a length that no name has."""
    return None if value is None else collapse(storable(value))[:1000]


def _path(value: str | None) -> str | None:
    """A category as it is stored, with one separator between its steps."""
    steps = [step.strip() for step in (_text(value) or "").split(">")]
    return CATEGORY_SEPARATOR.join(filter(None, steps)) or None


def _gtin(value: str) -> str:
    gtin = gtin_of(value)
    if gtin is None:
        raise InvalidInput(
            f"{value[:40]!r} is not a GTIN", hint="8, 12, 13 or 14 digits; the last one must fit."
        )
    return gtin


@dataclass(frozen=True, slots=True)
class ListPlace:
    """The last row of a page: the value that it is ordered by, and its id."""

    value: datetime | Decimal | str | float | None
    id: int


def encode_place(place: ListPlace, *question: object) -> str:
    """A cursor that is valid for the same question only."""
    value = None if place.value is None else str(place.value)
    return encode_values(_digest(question), value, place.id)


def decode_place(cursor: str, *question: object, kinds: tuple[type, ...]) -> ListPlace:
    """The place that a list gave for this question; its value is of one of these types."""
    match decode_values(cursor):
        case [str(digest), str() | None as text, int(row_id)] if 0 <= row_id <= LARGEST_ID:
            place = ListPlace(_value(text, kinds), row_id)
        case _:
            raise unknown_cursor()
    if digest != _digest(question):
        raise InvalidInput(
            "the cursor belongs to another list",
            hint="Give the same filters and order, or start again without a cursor.",
        )
    return place


def _value(text: str | None, kinds: tuple[type, ...]) -> datetime | Decimal | str | float | None:
    if text is None:
        if NoneType in kinds:
            return None
        raise unknown_cursor()
    parse = datetime.fromisoformat if kinds[0] is datetime else kinds[0]
    try:
        value = parse(text)
    except (ValueError, OverflowError, InvalidOperation):
        raise unknown_cursor() from None
    is_naive = isinstance(value, datetime) and value.tzinfo is None
    is_bad = isinstance(value, str) and storable(value) != value
    if isinstance(value, Decimal):
        is_bad = not (value.is_finite() and abs(value) < Decimal("1e11"))
    if is_naive or is_bad:
        raise unknown_cursor()
    return value


def _digest(question: Sequence[object]) -> str:
    parts = [_plain(part) for part in question]
    return sha256(orjson.dumps(parts, default=str)).hexdigest()[:16]


def _plain(part: object) -> object:
    if isinstance(part, Filters):
        names = [field.name for field in fields(part) if field.name != "domain_ids"]
        return [getattr(part, name) for name in names]
    return part
