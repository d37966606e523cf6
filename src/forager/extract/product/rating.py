"""Ratings on a scale of 0 to 5, whatever the scale they were given on."""

from __future__ import annotations

import re
from decimal import Decimal

from forager.extract.product.price import machine_amount

_BEST = Decimal(5)
_CENT = Decimal("0.01")
_OUT_OF = re.compile(
    r"(\d{1,3}(?:[.,]\d{1,15})?)\s{0,3}(?:/|out of|von|sur|su|de|av|van|z|из|of)\s{0,3}"
    r"(\d{1,3})(?!\d)",
    re.IGNORECASE,
)


def rating_of(value: object, best: object = None, worst: object = None) -> Decimal | None:
    """`value` on a scale from `worst` to `best` (5 where nothing is said), as 0 to 5."""
    if isinstance(value, str) and (pair := _OUT_OF.search(value[:200])):
        value, best = pair[1], best if best is not None else pair[2]
    amount = _number(value)
    top = _number(best) or _BEST
    if amount is None or not 0 <= amount <= top or top > 1000:
        return None
    low = _number(worst) or Decimal(0)
    # a scale from 1 to 5 is read as it is written; only another top changes the number
    if top != _BEST and low <= 1 < top:
        amount = amount * _BEST / top
    return amount.quantize(_CENT) if 0 <= amount <= _BEST else None


def _number(value: object) -> Decimal | None:
    if isinstance(value, str):
        value = value.strip().replace(",", ".").rstrip("%")
    return machine_amount(value)


def count_of(value: object) -> int | None:
    """A number of reviews: '1,234 ratings' is 1234."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        value = int(value) if value == value and abs(value) < 1e9 else None
    if isinstance(value, str):
        found = re.search(r"\d[\d.,\s\u00a0]{0,12}", value[:100])
        digits = re.sub(r"\D", "", found[0]) if found else ""
        value = int(digits) if digits else None
    return value if isinstance(value, int) and 0 <= value < 10**9 else None
