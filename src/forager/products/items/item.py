"""Items: offers of the same article in all shops, with the best price of those that can be bought.

Offers are one item by GTIN, then by brand and part number, or because a user linked them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from forager.db.cursor import Page, check_limit, decode_values, encode_values, unknown_cursor
from forager.db.database import Connection, Database
from forager.errors import InvalidInput, NotFound
from forager.extract.product.currency import ISO_CODES
from forager.extract.product.product import GONE
from forager.extract.product.quantity import offered_quantity
from forager.extract.product.wording import gtin_of
from forager.extract.text import storable
from forager.hints import Hint, action
from forager.products.filters import Filters
from forager.products.items import store
from forager.products.items.rates import Rates, load_rates
from forager.products.items.store import (
    IndexPoint,
    ItemNumbers,
    ItemOffer,
    ItemSuggestion,
    OwnListing,
)
from forager.products.lookup import find_product
from forager.products.offers import MAX_OFFERS
from forager.products.price_history import percent
from forager.products.service import resolved
from forager.products.store import prices
from forager.products.store.lists import filtered
from forager.products.store.prices import PriceEntry

__all__ = ["IndexPoint", "ItemNumbers", "ItemSuggestion"]

MAX_POINTS = 60
# items in memory at a time
PORTION = 5_000


@dataclass(frozen=True, slots=True)
class Item:
    """An article, and the best of its offers in one currency."""

    item: str
    name: str
    brand: str | None
    category: str | None
    offers: int
    shops: int
    # offers that can be bought; 0: out of stock everywhere
    available: int
    currency: str | None
    best_price: Decimal | None
    best_shop: str | None
    best_product_id: int | None
    highest_price: Decimal | None
    # percent between the lowest and the highest price
    spread: float | None
    # of the best offer, where its name or page states a quantity
    unit_price: Decimal | None
    unit: str | None
    own_price: Decimal | None
    # share of the shops that are below the own price
    below_own: float | None
    price_changed_at: datetime | None
    days_unchanged: int | None


@dataclass(frozen=True, slots=True)
class ComparedOffer:
    """An offer of an item; `compared_price` is in the currency of the comparison."""

    offer: ItemOffer
    compared_price: Decimal | None
    percent: float | None
    unit_price: Decimal | None
    unit: str | None


@dataclass(frozen=True, slots=True)
class LowestPrice:
    """The lowest price of all offers that could be bought, from this time on."""

    price: Decimal | None
    shop: str | None
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class ItemDetails:
    """An item with its offers, cheapest first, and the history of its lowest price."""

    summary: Item
    offers: list[ComparedOffer]
    lowest: list[LowestPrice]


# --- lists ---------------------------------------------------------------------------------------


async def list_items(
    database: Database,
    filters: Filters | None = None,
    *,
    currency: str | None = None,
    min_shops: int = 1,
    out_of_stock: bool = False,
    undercut: bool = False,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[Item]:
    """Items with an offer that matches, those in most shops first.

    `currency`: compare all offers in it, with today's rates. `out_of_stock`: only items that no
    shop sells at present; `undercut`: only those with an offer below the own price.
    """
    check_limit(limit)
    kept = {"min_shops": min_shops, "out_of_stock": out_of_stock, "undercut": undercut}
    return await _list_items(database, filters, _currency(currency), cursor, limit, **kept)


async def item_portions(
    database: Database, filters: Filters | None = None
) -> AsyncIterator[list[Item]]:
    """All items with an offer that matches, a portion at a time."""
    cursor: str | None = None
    while True:
        kept = {"min_shops": 1, "out_of_stock": False, "undercut": False}
        page = await _list_items(database, filters, None, cursor, PORTION, **kept)
        yield page.items
        if (cursor := page.next_cursor) is None:
            return


async def _list_items(
    database: Database,
    filters: Filters | None,
    to: str | None,
    cursor: str | None,
    limit: int,
    **kept: Any,
) -> Page[Item]:
    async with database.connection() as connection:
        conditions, values = filtered(await resolved(connection, filters))
        found = await store.select_items(
            connection,
            conditions,
            values,
            after=None if cursor is None else _decoded(cursor),
            limit=limit + 1,
            **kept,
        )
        keys = [key for key, _ in found[:limit]]
        items = await _items(connection, keys, to)
    more = encode_values(found[limit - 1][1], found[limit - 1][0]) if len(found) > limit else None
    return Page([items[key] for key in keys if key in items], more)


def _decoded(cursor: str) -> tuple[int, str]:
    match decode_values(cursor):
        case [int(shops), str(item)] if abs(shops) < 2**31 and storable(item) == item:
            return shops, item
    raise unknown_cursor()


def _currency(code: str | None) -> str | None:
    if code is not None and code.upper() not in ISO_CODES:
        raise InvalidInput(f"{code[:20]!r} is not a currency", hint="For example EUR.")
    return code and code.upper()


async def _items(connection: Connection, keys: Sequence[str], to: str | None) -> dict[str, Item]:
    rates = await load_rates(connection)
    own = await store.select_own_prices(connection, keys)
    by_item: dict[str, list[ItemOffer]] = defaultdict(list)
    for offer in await store.select_offers(connection, keys, limit=MAX_OFFERS):
        by_item[offer.item].append(offer)
    return {key: _item(offers, own.get(key), rates, to) for key, offers in by_item.items()}


def _item(
    offers: Sequence[ItemOffer], own: OwnListing | None, rates: Rates, to: str | None
) -> Item:
    currency = to or _usual_currency(offers)
    compared = _compared(offers, rates, currency)
    buyable = [c for c in compared if c.offer.availability not in GONE]
    priced = [c for c in buyable if c.compared_price is not None]
    prices_ = [c.compared_price for c in priced if c.compared_price is not None]
    best = priced[0] if priced else None
    own_price = rates.convert(own.price, own.currency, currency, _today()) if own else None
    changed = max((o.price_changed_at for o in offers if o.price_changed_at), default=None)
    return Item(
        item=offers[0].item,
        name=offers[0].name,
        brand=next((o.brand for o in offers if o.brand), None),
        category=next((o.category for o in offers if o.category), None),
        offers=len(offers),
        shops=len({o.domain for o in offers}),
        available=len(buyable),
        currency=currency,
        best_price=best.compared_price if best else None,
        best_shop=best.offer.domain if best else None,
        best_product_id=best.offer.product_id if best else None,
        highest_price=max(prices_, default=None),
        spread=percent(prices_[0], max(prices_)) if prices_ else None,
        unit_price=best.unit_price if best else None,
        unit=best.unit if best else None,
        own_price=own_price,
        below_own=_share_below(priced, own_price),
        price_changed_at=changed,
        days_unchanged=None if changed is None else (datetime.now(UTC) - changed).days,
    )


def _usual_currency(offers: Iterable[ItemOffer]) -> str | None:
    """The currency of most offers that can be bought, or else of any."""
    known = [o for o in offers if o.price is not None and o.currency is not None]
    usable = [o for o in known if o.availability not in GONE] or known
    counts = Counter(str(o.currency) for o in usable)
    return min(counts, key=lambda code: (-counts[code], code), default=None)


def _compared(
    offers: Iterable[ItemOffer], rates: Rates, currency: str | None
) -> list[ComparedOffer]:
    """Offers with their prices in one currency: those that can be bought first, cheapest first."""
    converted = [(o, rates.convert(o.price, o.currency, currency, _today())) for o in offers]
    converted.sort(
        key=lambda each: (
            each[1] is None, each[0].availability in GONE, each[1] or 0, each[0].product_id
        )
    )  # fmt: skip
    lowest = next((price for _, price in converted), None)
    return [_compared_offer(offer, price, lowest) for offer, price in converted]


def _compared_offer(
    offer: ItemOffer, price: Decimal | None, lowest: Decimal | None
) -> ComparedOffer:
    quantity = None if price is None else offered_quantity(offer.name, offer.quantity)
    unit_price = quantity.unit_price(price) if quantity and price is not None else None
    unit = quantity.unit if quantity else None
    return ComparedOffer(offer, price, percent(lowest, price), unit_price, unit)


def _share_below(priced: Sequence[ComparedOffer], own: Decimal | None) -> float | None:
    lowest: dict[str, Decimal] = {}
    for each in priced:
        if each.compared_price is not None:
            lowest.setdefault(each.offer.domain, each.compared_price)
    if own is None or not lowest:
        return None
    return round(sum(price < own for price in lowest.values()) / len(lowest), 3)


def _today() -> date:
    return datetime.now(UTC).date()


# --- one item ------------------------------------------------------------------------------------


async def show_item(
    database: Database, which: str, *, currency: str | None = None, since: datetime | None = None
) -> ItemDetails:
    """An item by its key, its GTIN, or the ID or URL of one of its offers."""
    to = _currency(currency)
    async with database.connection() as connection:
        key = await find_item(connection, which)
        offers = await store.select_offers(connection, [key], limit=MAX_OFFERS)
        own = await store.select_own_prices(connection, [key])
        rates = await load_rates(connection)
        histories = await prices.select_histories(
            connection, [o.product_id for o in offers], since=None
        )
    if not offers:  # deleted meanwhile
        raise NotFound(f"there is no item {which[:200]}")
    summary = _item(offers, own.get(key), rates, to)
    lowest = _lowest_prices(histories, {o.product_id: o.domain for o in offers}, rates, summary)
    shown = [each for each in lowest if since is None or each.recorded_at >= since]
    return ItemDetails(summary, _compared(offers, rates, summary.currency), shown[::-1])


async def find_item(connection: Connection, which: str) -> str:
    """The key of an existing item."""
    text = storable(which.strip())[:1000]
    gtin = gtin_of(text)
    for key in (text, f"gtin:{gtin.lstrip('0')}" if gtin else None):
        if key and ":" in key and (found := await store.select_key(connection, key)):
            return found
    if gtin is not None or text.startswith(("gtin:", "mpn:", "product:")):
        raise NotFound(f"there is no item {text[:200]}", hint=_LISTS)
    return await store.select_item_of(connection, await find_product(connection, which))


_LISTS = Hint("{} lists items.", action("items list"))


def _lowest_prices(
    histories: Iterable[PriceEntry], shops: dict[int, str], rates: Rates, summary: Item
) -> list[LowestPrice]:
    """The changes of the lowest price, oldest first; each is converted with the rate of its day."""
    current: dict[int, Decimal] = {}
    found: list[LowestPrice] = []
    for entry in sorted(histories, key=lambda each: (each.recorded_at, each.id)):
        price = rates.convert(
            entry.price, entry.currency, summary.currency, entry.recorded_at.date()
        )
        current.pop(entry.product_id, None)
        if price is not None and entry.availability not in GONE:
            current[entry.product_id] = price
        best = min(current, key=lambda id_: (current[id_], id_), default=None)
        lowest = None if best is None else current[best]
        if lowest != (found[-1].price if found else None):
            shop = None if best is None else shops.get(best)
            found.append(LowestPrice(lowest, shop, entry.recorded_at))
    return found


# --- links ---------------------------------------------------------------------------------------


async def link_offers(database: Database, product: str, to: str) -> str:
    """Make a product an offer of another item; returns the key of the item."""
    async with database.transaction() as connection:
        product_id = await find_product(connection, product)
        item = await find_item(connection, to)
        await store.assign_items(connection, [product_id], item)
        return item


async def unlink_offer(database: Database, product: str) -> str:
    """Make a product a separate item; returns the key of the item."""
    async with database.transaction() as connection:
        product_id = await find_product(connection, product)
        item = f"product:{product_id}"
        await store.assign_items(connection, [product_id], item)
        return item


async def suggest_links(
    database: Database, *, cursor: str | None = None, limit: int = 50
) -> Page[ItemSuggestion]:
    """Offers of different shops with the same words in brand and name, to link or to unlink."""
    check_limit(limit)
    after = 0
    if cursor is not None:
        match decode_values(cursor):
            case [int(number)] if 0 <= number < 2**63:
                after = number
            case _:
                raise unknown_cursor()
    found = await database.run(store.select_suggestions, after=after, limit=limit + 1)
    if len(found) <= limit:
        return Page(found, None)
    last = found[limit - 1]
    return Page(found[:limit], encode_values(max(last.product_id, last.other_id)))


# --- numbers -------------------------------------------------------------------------------------


async def item_numbers(database: Database) -> ItemNumbers:
    return await database.run(store.select_numbers)


async def price_index(
    database: Database, filters: Filters | None = None, *, since: datetime | None = None
) -> list[IndexPoint]:
    """The price level by category, 100 on the first day; by default of 90 days.

    Products without a price on the first day are left out.
    """
    async with database.connection() as connection:
        conditions, values = filtered(await resolved(connection, filters))
        first = await store.select_first_day(connection)
        start = max((since or datetime.now(UTC) - timedelta(days=90)).date(), first or _today())
        step = max(1, -(-(_today() - start).days // MAX_POINTS))
        return await store.select_price_index(
            connection, conditions, values, since=start, step=step
        )
