"""Price histories: one entry for each change, and the largest changes of all products."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from forager.db.cursor import Page, check_limit, page_of
from forager.db.database import Database
from forager.extract.text import storable
from forager.products.filters import (
    Filters,
    ListPlace,
    PriceDirection,
    PriceMeasure,
    decode_place,
    encode_place,
)
from forager.products.lookup import find_product
from forager.products.service import resolved
from forager.products.store import prices as store
from forager.products.store.prices import PriceEntry, PriceMove

__all__ = ["PriceEntry", "PriceMove"]


async def price_history(
    database: Database,
    which: str,
    *,
    variant: str | None = None,
    withheld: bool = False,
    since: datetime | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Page[PriceEntry]:
    """The changes of one product by its ID or URL, or of one of its variants; newest first.

    A variant is named by its SKU, or its GTIN, URL or name if it has none. `withheld`: also prices
    that a page showed and that are not in the history.
    """
    check_limit(limit)
    async with database.connection() as connection:
        product_id = await find_product(connection, which)
        before = None if cursor is None else _moment(cursor, product_id, variant, since, withheld)
        found = await store.select_history(
            connection,
            product_id,
            variant=None if variant is None else storable(variant)[:200],
            withheld=withheld,
            since=since,
            before=before,
            limit=limit + 1,
        )
    return page_of(
        found,
        limit,
        lambda last: encode_place(
            ListPlace(last.recorded_at, last.id), product_id, variant, since, withheld
        ),
    )


async def largest_changes(
    database: Database,
    since: datetime,
    filters: Filters | None = None,
    *,
    direction: PriceDirection | None = None,
    by: PriceMeasure = PriceMeasure.PERCENT,
    limit: int = 20,
) -> list[PriceMove]:
    """Products whose price differs from that at a time; the largest change first."""
    check_limit(limit)
    async with database.connection() as connection:
        wanted = await resolved(connection, filters)
        return await store.select_moves(
            connection, wanted, since=since, direction=direction, by=by, limit=limit
        )


async def recent_prices(
    database: Database, product_ids: Sequence[int], *, limit: int = 30
) -> dict[int, list[Decimal]]:
    """The last prices of some products, oldest first; products without a price are left out."""
    return await database.run(store.select_recent_prices, product_ids, limit=limit)


def percent(old: Decimal | None, new: Decimal | None) -> float | None:
    """The change of a price in percent."""
    if not old or new is None:
        return None
    return round(float((new - old) / old * 100), 2)


def _moment(cursor: str, *question: object) -> tuple[datetime, int]:
    place = decode_place(cursor, *question, kinds=(datetime,))
    assert isinstance(place.value, datetime)
    return place.value, place.id
