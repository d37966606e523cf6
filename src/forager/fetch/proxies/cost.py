"""What a proxy costs, and what each domain's share of it is. Pure arithmetic."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from enum import StrEnum
from fractions import Fraction

from forager.errors import InvalidInput

DEFAULT_CURRENCY = "USD"
# providers count so, and not in powers of two
GB = 10**9
MOST = Decimal(1_000_000)
CENT_OF_A_CENT = Decimal("0.0001")
"""Money is reported in these, so that shares can add up to the whole exactly."""

_AMOUNT = re.compile(r"\d{1,7}(?:\.\d{1,8})?")
_CURRENCY = re.compile("[A-Z]{3}")
_HINT = "Write it as 0.002/request, 3.50/GB or 50/month."


class CostUnit(StrEnum):
    REQUEST = "request"
    GB = "GB"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class ProxyCost:
    """So much money for each request, each GB, or each month."""

    amount: Decimal
    unit: CostUnit
    currency: str = DEFAULT_CURRENCY

    def __str__(self) -> str:
        plain = f"{self.amount:f}"
        short = plain.rstrip("0").rstrip(".") if "." in plain else plain
        return f"{short} {self.currency}/{self.unit}"


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one domain sent through one proxy; None: all the others together."""

    domain: str | None
    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Share:
    """What one domain has to pay of one proxy; None: what nobody used and is paid all the same."""

    domain: str | None
    requests: int
    bytes: int
    cost: Decimal


def parse_cost(text: str, currency: str | None = None) -> ProxyCost:
    """A price as people write it."""
    amount, slash, unit = text.strip().partition("/")
    known = {each.value.lower(): each for each in CostUnit}
    found = known.get(unit.strip().lower())
    if not slash or found is None or not _AMOUNT.fullmatch(amount.strip()):
        raise InvalidInput(f"{text[:40]!r} is not what a proxy can cost", hint=_HINT)
    cost = ProxyCost(Decimal(amount.strip()), found, (currency or DEFAULT_CURRENCY).upper())
    check_cost(cost)
    return cost


def check_cost(cost: ProxyCost) -> None:
    if not (cost.amount.is_finite() and 0 <= cost.amount <= MOST):
        raise InvalidInput(f"a proxy can cost 0 to {MOST:,} of its unit", hint=_HINT)
    if not _CURRENCY.fullmatch(cost.currency):
        raise InvalidInput(
            f"{cost.currency[:20]!r} is not a currency",
            hint="Write it in three letters, as EUR or USD.",
        )


def shares(cost: ProxyCost, traffic: Sequence[Traffic], first: date, last: date) -> list[Share]:
    """What each domain has to pay of a proxy that was there on all these days.

    A month's price is owed whether or not the proxy is used, a part of it for each day, and is
    shared by bytes; where no bytes were counted, by requests.
    """
    if cost.unit is CostUnit.MONTH:
        whole = Fraction(cost.amount) * months(first, last)
        weights = _weights(traffic)
        if not any(weights):
            return [Share(None, 0, 0, _rounded(whole))]
        owed = [whole * weight / sum(weights) for weight in weights]
    elif cost.unit is CostUnit.GB:
        owed = [Fraction(cost.amount) * each.bytes / GB for each in traffic]
    else:
        owed = [Fraction(cost.amount) * each.requests for each in traffic]
    return [
        Share(each.domain, each.requests, each.bytes, money)
        for each, money in zip(traffic, rounded_together(owed), strict=True)
    ]


def months(first: date, last: date) -> Fraction:
    """How many months these days are, each a part of its own month."""
    parts = Fraction(0)
    day = first
    while day <= last:
        length = monthrange(day.year, day.month)[1]
        end = min(last, day.replace(day=length))
        parts += Fraction((end - day).days + 1, length)
        day = end + timedelta(days=1)
    return parts


def rounded_together(amounts: Sequence[Fraction]) -> list[Decimal]:
    """Each amount rounded, so that together they are the rounded sum: no part is lost or made."""
    rounded: list[Decimal] = []
    exact, given = Fraction(0), Decimal(0)
    for amount in amounts:
        exact += amount
        rounded.append(_rounded(exact) - given)
        given += rounded[-1]
    return rounded


def _weights(traffic: Sequence[Traffic]) -> list[int]:
    by_bytes = [each.bytes for each in traffic]
    return by_bytes if any(by_bytes) else [each.requests for each in traffic]


def _rounded(amount: Fraction) -> Decimal:
    with localcontext(prec=60):
        exact = Decimal(amount.numerator) / Decimal(amount.denominator)
        return exact.quantize(CENT_OF_A_CENT, rounding=ROUND_HALF_EVEN)
