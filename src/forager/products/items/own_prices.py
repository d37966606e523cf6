"""The own price list, which shops are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from forager.db.database import Database
from forager.errors import InvalidInput
from forager.extract.product.currency import ISO_CODES
from forager.extract.product.wording import gtin_of
from forager.extract.text import collapse, storable
from forager.products.items import store
from forager.products.items.tables import amount_in, read_table

MAX_LINES = 100_000
_COLUMNS = ("gtin", "brand", "mpn", "name", "price", "currency")


@dataclass(frozen=True, slots=True)
class OwnPrice:
    """A line of the price list; the article has a GTIN, or a brand and a part number."""

    gtin: str | None
    brand: str | None
    mpn: str | None
    name: str | None
    price: Decimal
    currency: str


async def import_own_prices(database: Database, text: str) -> int:
    """Replace the price list by a CSV file with the columns gtin, or brand and mpn, and price,
    currency and name; returns the number of prices.
    """
    rows = read_table(text, _COLUMNS, required=("price", "currency"), limit=MAX_LINES)
    prices = [_price(line, row) for line, row in rows]
    async with database.transaction() as connection:
        return await store.replace_own_prices(connection, prices)


def _price(line: int, row: dict[str, str]) -> OwnPrice:
    gtin = gtin_of(row["gtin"]) if row["gtin"] else None
    if row["gtin"] and gtin is None:
        raise InvalidInput(f"line {line}: {row['gtin'][:40]!r} is not a GTIN")
    brand, mpn, name = (
        collapse(storable(row[key]))[:500] or None for key in ("brand", "mpn", "name")
    )
    if gtin is None and (brand is None or not any(map(str.isalnum, mpn or ""))):
        raise InvalidInput(f"line {line} has no GTIN", hint="Or give `brand` and `mpn`.")
    currency = row["currency"].upper()
    if currency not in ISO_CODES:
        raise InvalidInput(f"line {line}: {currency[:20]!r} is not a currency")
    return OwnPrice(gtin, brand, mpn, name, amount_in(line, row["price"]), currency)
