"""The price of a proxy, per request or per GB."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from forager.errors import InvalidInput

DEFAULT_CURRENCY = "USD"
MAX_AMOUNT = Decimal(1_000_000)

_AMOUNT = re.compile(r"\d{1,7}(?:\.\d{1,8})?")
_CURRENCY = re.compile("[A-Z]{3}")
_HINT = "Write the price as 0.002/request or 3.50/GB."


class CostUnit(StrEnum):
    REQUEST = "request"
    GB = "GB"


@dataclass(frozen=True, slots=True)
class ProxyCost:
    """An amount of money per request or per GB (10^9 bytes, as providers count)."""

    amount: Decimal
    unit: CostUnit
    currency: str = DEFAULT_CURRENCY

    def __str__(self) -> str:
        plain = f"{self.amount:f}"
        short = plain.rstrip("0").rstrip(".") if "." in plain else plain
        return f"{short} {self.currency}/{self.unit}"


def parse_cost(text: str, currency: str | None = None) -> ProxyCost:
    """Parse a price such as `3.50/GB`."""
    amount, slash, unit = text.strip().partition("/")
    known = {each.value.lower(): each for each in CostUnit}
    found = known.get(unit.strip().lower())
    if not slash or found is None or not _AMOUNT.fullmatch(amount.strip()):
        raise InvalidInput(f"{text[:40]!r} is not a valid proxy price", hint=_HINT)
    cost = ProxyCost(Decimal(amount.strip()), found, (currency or DEFAULT_CURRENCY).upper())
    check_cost(cost)
    return cost


def check_cost(cost: ProxyCost) -> None:
    if not (cost.amount.is_finite() and 0 <= cost.amount <= MAX_AMOUNT):
        raise InvalidInput(f"a proxy price must be 0 to {MAX_AMOUNT:,} per unit", hint=_HINT)
    if not _CURRENCY.fullmatch(cost.currency):
        raise InvalidInput(
            f"{cost.currency[:20]!r} is not a currency code",
            hint="Use three letters, such as EUR or USD.",
        )
