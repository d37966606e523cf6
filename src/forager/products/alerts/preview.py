"""What an alert rule would have done: the recorded prices of the last days, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import groupby

from forager.db.cursor import check_limit
from forager.db.database import Connection, Database
from forager.extract.product.product import GONE
from forager.products.alerts.conditions import NO_RIVALS, AlertKind, crosses
from forager.products.alerts.rules import NewAlert, checked_alert, selection_of
from forager.products.filters import Filters
from forager.products.lookup import find_product
from forager.products.offers import MAX_OFFERS
from forager.products.product import AlertRule, ListedProduct
from forager.products.service import resolved
from forager.products.store import lists, prices
from forager.products.store.alerts import PastOffer
from forager.products.store.offers import CompetingOffers, OfferPair, select_pairs, select_rivals
from forager.products.store.prices import PriceEntry
from forager.products.validation.plausibility import Offer

# products in memory at a time, and those that are replayed
CHUNK = 200
MAX_PRODUCTS = 5_000
EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class WouldTrigger:
    """A recorded offer that would have triggered the rule."""

    product_id: int
    url: str
    name: str
    old: Decimal | None
    new: Decimal | None
    currency: str | None
    availability: str | None
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class AlertPreview:
    """How often a rule would have triggered; `is_complete` if all matching products were read."""

    times: int
    products: int
    days: int
    is_complete: bool
    # the latest ones
    examples: list[WouldTrigger]


async def preview_alert(database: Database, new: NewAlert, *, days: int = 30) -> AlertPreview:
    """Replay the price histories of the products of a rule; variants are left out.

    The own price list is that of today.
    """
    check_limit(days, 3650)
    new = checked_alert(new)
    now = datetime.now(UTC)
    rule = AlertRule(
        0, new.kind, new.percent, new.amount, new.currency, new.days, None, None, {}, now
    )
    found: list[WouldTrigger] = []
    read, after, more = 0, 0, True
    while more and read < MAX_PRODUCTS:
        async with database.connection() as connection:
            products = await _products(connection, new, after)
            found += await _replayed(connection, rule, products, now - timedelta(days=days))
        read, more = read + len(products), len(products) == CHUNK
        after = products[-1].id if products else after
    found.sort(key=lambda each: (each.recorded_at, each.product_id), reverse=True)
    affected = len({each.product_id for each in found})
    return AlertPreview(len(found), affected, days, not more, found[:EXAMPLES])


async def _products(connection: Connection, new: NewAlert, after: int) -> list[ListedProduct]:
    if new.product is not None:
        named = await find_product(connection, new.product)
        return [] if after else [*(await lists.select_listed(connection, [named])).values()]
    filters = await resolved(connection, Filters(**selection_of(new)))
    return await lists.select_by_id(connection, filters, after=after, limit=CHUNK)


async def _replayed(
    connection: Connection, rule: AlertRule, products: Sequence[ListedProduct], since: datetime
) -> list[WouldTrigger]:
    ids = [product.id for product in products]
    compares = rule.kind in (AlertKind.BEST_OFFER, AlertKind.UNDERCUT)
    pairs = await select_pairs(connection, ids, limit=MAX_OFFERS) if compares else []
    own = await select_rivals(connection, ids) if compares else {}
    wanted = sorted({*ids, *(pair.offer_id for pair in pairs)})
    entries = await prices.select_histories(connection, wanted, since=None)
    histories = {id_: [*each] for id_, each in groupby(entries, lambda entry: entry.product_id)}
    by_id = {product.id: product for product in products}
    return [
        _trigger(by_id[id_], entry, past)
        for id_ in ids
        for past, entry in _steps(histories.get(id_, []), rule.days)
        if entry.recorded_at >= since
        and crosses(
            rule,
            _offer(entry),
            past,
            0,
            _rivals_at(entry, pairs, histories, own.get(id_, NO_RIVALS)),
        )
    ]


def _steps(
    history: Sequence[PriceEntry], days: int | None
) -> Iterator[tuple[PastOffer, PriceEntry]]:
    """Each recorded offer with the past that it was compared with."""
    for place, entry in enumerate(history):
        before = history[:place]
        same = [e for e in before if e.currency == entry.currency and e.price is not None]
        stock = next((e.availability for e in reversed(before) if e.availability), None)
        valid = _valid_prices(before, entry, days)
        yield (
            PastOffer(
                entry.product_id,
                None,
                same[-1].price if same else None,
                stock,
                [min(valid, default=None)],
                [max(valid, default=None)],
            ),
            entry,
        )


def _valid_prices(
    before: Sequence[PriceEntry], entry: PriceEntry, days: int | None
) -> list[Decimal]:
    """The prices that were valid at any time within the days before an offer."""
    if days is None or not before:
        return []
    start = entry.recorded_at - timedelta(days=days)
    ends = [*(e.recorded_at for e in before[1:]), entry.recorded_at]
    return [
        e.price
        for e, end in zip(before, ends, strict=True)
        if end > start and e.price is not None and e.currency == entry.currency
    ]


def _rivals_at(
    entry: PriceEntry,
    pairs: Sequence[OfferPair],
    histories: Mapping[int, Sequence[PriceEntry]],
    own: CompetingOffers,
) -> CompetingOffers:
    """The other offers as they were at the time of an offer."""
    lowest: dict[str | None, Decimal] = {}
    for pair in pairs:
        if pair.product_id == entry.product_id:
            known = [
                e for e in histories.get(pair.offer_id, ()) if e.recorded_at <= entry.recorded_at
            ]
            if known and known[-1].price is not None and known[-1].availability not in GONE:
                price, currency = known[-1].price, known[-1].currency
                lowest[currency] = min(lowest.get(currency, price), price)
    return CompetingOffers(lowest, own.own_price, own.own_currency)


def _offer(entry: PriceEntry) -> Offer:
    return Offer(entry.price, entry.list_price, entry.currency, entry.availability)


def _trigger(product: ListedProduct, entry: PriceEntry, past: PastOffer) -> WouldTrigger:
    return WouldTrigger(
        product.id, product.url, product.name, past.price, entry.price, entry.currency,
        entry.availability, entry.recorded_at,
    )  # fmt: skip
