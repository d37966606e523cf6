"""Exchange rates with dates, which the user supplies; amounts are never converted without one."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from forager.db.database import Connection, Database
from forager.errors import InvalidInput
from forager.extract.product.currency import ISO_CODES
from forager.products.items import store
from forager.products.items.tables import amount_in, read_table

MAX_LINES = 100_000
_COLUMNS = ("date", "from", "to", "rate")


@dataclass(frozen=True, slots=True)
class Rate:
    """One of `from_currency` is worth `rate` of `to_currency` from this day on."""

    from_currency: str
    to_currency: str
    valid_from: date
    rate: Decimal


class Rates:
    """Converts with the latest rate that was valid: direct, reversed, or over a third currency."""

    def __init__(self, rates: Iterable[Rate] = ()) -> None:
        self._known: dict[tuple[str, str], list[tuple[date, Decimal]]] = defaultdict(list)
        for rate in sorted(rates, key=lambda each: each.valid_from):
            pair = (rate.from_currency, rate.to_currency)
            self._known[pair].append((rate.valid_from, rate.rate))
            self._known[pair[::-1]].append((rate.valid_from, 1 / rate.rate))
        self._currencies = sorted({currency for currency, _ in self._known})

    def convert(
        self, amount: Decimal | None, currency: str | None, to: str | None, on: date
    ) -> Decimal | None:
        """The amount in the other currency; None without a rate."""
        if amount is None or currency is None or to is None:
            return None
        if currency == to:
            return amount
        factor = self.factor(currency, to, on)
        return None if factor is None else (amount * factor).quantize(Decimal("0.01"))

    def factor(self, currency: str, to: str, on: date) -> Decimal | None:
        if currency == to:
            return Decimal(1)
        if direct := self._valid(currency, to, on):
            return direct
        for between in self._currencies:
            first, second = self._valid(currency, between, on), self._valid(between, to, on)
            if first and second:
                return first * second
        return None

    def _valid(self, currency: str, to: str, on: date) -> Decimal | None:
        dated = self._known.get((currency, to), [])
        place = bisect_right(dated, on, key=lambda each: each[0])
        return dated[place - 1][1] if place else None


async def load_rates(connection: Connection) -> Rates:
    return Rates(Rate(*row) for row in await store.select_rates(connection))


async def import_rates(database: Database, text: str) -> int:
    """Add the rates of a CSV file with the columns date, from, to and rate; returns their number.

    A rate of the same day is replaced.
    """
    rows = read_table(text, _COLUMNS, required=_COLUMNS, limit=MAX_LINES)
    rates = [_rate(line, row) for line, row in rows]
    async with database.transaction() as connection:
        await store.save_rates(
            connection,
            list({(r.from_currency, r.to_currency, r.valid_from): r for r in rates}.values()),
        )
    return len(rates)


def _rate(line: int, row: dict[str, str]) -> Rate:
    codes = [row[name].upper() for name in ("from", "to")]
    for code in codes:
        if code not in ISO_CODES:
            raise InvalidInput(f"line {line}: {code[:20]!r} is not a currency")
    if codes[0] == codes[1]:
        raise InvalidInput(f"line {line}: both currencies are {codes[0]}")
    try:
        day = date.fromisoformat(row["date"])
    except ValueError:
        raise InvalidInput(f"line {line}: {row['date'][:20]!r} is not a date") from None
    return Rate(codes[0], codes[1], day, amount_in(line, row["rate"], least="0.0000000001"))
