"""Which products are wanted, in which order, and where a list continues."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from hashlib import sha256
from typing import Any

import orjson

from forager.db.cursor import unknown_cursor
from forager.errors import InvalidInput
from forager.extract.product.record import Availability
from forager.extract.product.wording import gtin_of
from forager.extract.text import collapse, storable
from forager.products.content import CATEGORY_SEPARATOR

MAX_CURSOR = 10_000
_LARGEST_ID = 2**63 - 1


class Order(StrEnum):
    NEWEST = "newest"
    UPDATED = "updated"
    NAME = "name"
    CHEAPEST = "cheapest"
    DEAREST = "dearest"


@dataclass(frozen=True, slots=True)
class Filters:
    """What must hold of a product; what is not set, or empty, does not matter."""

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
    has_problems: bool | None = None
    sku: str | None = None
    gtin: str | None = None
    # those that `domain` means, once that was looked up
    domain_ids: tuple[int, ...] = ()


def checked(filters: Filters) -> Filters:
    """Filters that PostgreSQL understands, or an error that says which one is wrong."""
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
    """What a person typed; a name that is too long for any product simply finds none."""
    return None if value is None else collapse(storable(value))[:1000]


def _path(value: str | None) -> str | None:
    """A category as it is stored, however the steps were set apart."""
    steps = [step.strip() for step in (_text(value) or "").split(">")]
    return CATEGORY_SEPARATOR.join(filter(None, steps)) or None


def _gtin(value: str) -> str:
    gtin = gtin_of(value)
    if gtin is None:
        raise InvalidInput(
            f"{value[:40]!r} is not a GTIN", hint="8, 12, 13 or 14 digits; the last one must fit."
        )
    return gtin


# --- cursors ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """The last row of a page: the value it was ordered by, and its id."""

    value: datetime | Decimal | str | float | None
    id: int


_KINDS: dict[str, Any] = {
    "t": datetime.fromisoformat,
    "d": Decimal,
    "s": str,
    "f": float.fromhex,
    "n": lambda _: None,
}


def encode_place(place: Place, *question: object) -> str:
    """An opaque text, good for the same question only."""
    content = (_digest(question), *_spelled(place.value), place.id)
    return base64.urlsafe_b64encode(orjson.dumps(content)).decode().rstrip("=")


def decode_place(cursor: str, *question: object, kinds: tuple[type, ...]) -> Place:
    """The place that a list gave for this question; its value is of one of these types."""
    try:
        if len(cursor) > MAX_CURSOR:
            raise ValueError("too long")
        padded = cursor + "=" * (-len(cursor) % 4)
        digest, kind, value, row_id = orjson.loads(base64.urlsafe_b64decode(padded.encode()))
        place = Place(_KINDS[kind](value), _row_id(row_id))
        _check_value(place.value, kinds)
    except (ValueError, TypeError, KeyError, OverflowError, InvalidOperation, binascii.Error):
        raise unknown_cursor() from None
    if digest != _digest(question):
        raise InvalidInput(
            "the cursor belongs to another list",
            hint="Give the same filters and order, or start again without a cursor.",
        )
    return place


def _spelled(value: object) -> tuple[str, str]:
    if isinstance(value, datetime):
        return "t", value.isoformat()
    if isinstance(value, Decimal):
        return "d", str(value)
    if isinstance(value, float):
        return "f", value.hex()
    return ("n", "") if value is None else ("s", str(value))


def _check_value(value: object, kinds: tuple[type, ...]) -> None:
    if not isinstance(value, kinds):
        raise ValueError("a place in another order")
    if isinstance(value, datetime) and value.tzinfo is None:
        raise ValueError("no time zone")
    if isinstance(value, Decimal) and not (value.is_finite() and abs(value) < Decimal("1e11")):
        raise ValueError("no price")
    if isinstance(value, str) and storable(value) != value:
        raise ValueError("no text")


def _row_id(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= _LARGEST_ID:
        raise ValueError("not an id of ours")
    return value


def _digest(question: Sequence[object]) -> str:
    parts = [_plain(part) for part in question]
    return sha256(orjson.dumps(parts, default=str)).hexdigest()[:16]


def _plain(part: object) -> object:
    if isinstance(part, Filters):
        # a list continues although a new host of the domain was added
        names = [field.name for field in fields(part) if field.name != "domain_ids"]
        return [getattr(part, name) for name in names]
    return part
