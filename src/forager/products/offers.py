"""Offers: the same article in different shops, matched by GTIN, then by brand and part number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal

from forager.db.database import Connection, Database
from forager.errors import NotFound
from forager.extract.product.product import GONE
from forager.extract.product.wording import gtin_of
from forager.hints import Hint, action
from forager.products.lookup import find_product
from forager.products.price_history import percent
from forager.products.product import ListedProduct
from forager.products.store import lists
from forager.products.store import offers as store
from forager.products.store.offers import select_offer_tasks

__all__ = ["select_offer_tasks"]

MAX_OFFERS = 200


@dataclass(frozen=True, slots=True)
class ShopOffer:
    """One offer of an article. `percent`: above the cheapest in this currency."""

    product_id: int
    url: str
    domain: str
    name: str
    price: Decimal | None
    list_price: Decimal | None
    currency: str | None
    availability: str | None
    brand: str | None
    gtin: str | None
    # gtin, or mpn with the brand; None for the requested offer
    matched_by: str | None
    percent: float | None
    last_seen_at: datetime
    price_changed_at: datetime | None


async def compare_offers(database: Database, which: str) -> list[ShopOffer]:
    """The offers of an article by GTIN, or by the ID or URL of one offer; cheapest first.

    Offers that cannot be bought, or have no price, come last.
    """
    async with database.connection() as connection:
        matched = await _matched(connection, which)
        found = await lists.select_listed(connection, list(matched))
    cheapest = _cheapest(found.values())
    offers = [_offer(product, matched[id_], cheapest) for id_, product in found.items()]
    return sorted(offers, key=_rank)


async def _matched(connection: Connection, which: str) -> dict[int, str | None]:
    """The requested products, and the others with the criterion of their match."""
    gtin = gtin_of(which.strip())
    named = (
        await store.select_with_gtin(connection, gtin, limit=MAX_OFFERS) if gtin is not None else []
    )
    if not named:
        named = [await _product(connection, which, gtin)]
    matched: dict[int, str | None] = dict.fromkeys(named)
    for pair in await store.select_pairs(connection, named, limit=MAX_OFFERS):
        matched.setdefault(pair.offer_id, pair.matched_by)
    return dict(list(matched.items())[:MAX_OFFERS])


async def _product(connection: Connection, which: str, gtin: str | None) -> int:
    try:
        return await find_product(connection, which)
    except NotFound:
        if gtin is None:
            raise
        raise NotFound(
            f"no product has the GTIN {gtin}",
            hint=Hint("{} lists products.", action("products list")),
        ) from None


def _cheapest(products: Iterable[ListedProduct]) -> dict[str | None, Decimal]:
    """The lowest price by currency, preferably of offers that can be bought."""
    cheapest: dict[str | None, Decimal] = {}
    priced = [each for each in products if each.price is not None]
    available = [each for each in priced if each.availability not in GONE]
    for product in available or priced:
        assert product.price is not None
        known = cheapest.get(product.currency, product.price)
        cheapest[product.currency] = min(known, product.price)
    return cheapest


def _offer(
    product: ListedProduct, matched_by: str | None, cheapest: dict[str | None, Decimal]
) -> ShopOffer:
    shared = {each.name for each in fields(ShopOffer)} & {each.name for each in fields(product)}
    return ShopOffer(
        product_id=product.id,
        matched_by=matched_by,
        percent=percent(cheapest.get(product.currency), product.price),
        **{name: getattr(product, name) for name in shared},
    )


def _rank(offer: ShopOffer) -> tuple[bool, bool, str, Decimal, int]:
    unavailable = offer.availability in GONE
    price = offer.price or Decimal(0)
    return (offer.price is None, unavailable, offer.currency or "", price, offer.product_id)
