"""Corrected price histories: what another parser version reads from the archived pages.

Each archived visit is validated as it was then: after the visit before it, by the same rules.
Entries without an archived page, such as those of withdrawn products, stay as they are. A page that
shows another product has no part in a history.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

import orjson

from forager.db.database import Connection
from forager.events.event import EventKind, NewEvent
from forager.events.service import record_events
from forager.index.kind import PRODUCTS, enqueue_rows
from forager.products.json_columns import problems_json, unconfirmed_values
from forager.products.price_history import percent
from forager.products.store import corrections as store
from forager.products.store.corrections import (
    ArchivedVisit,
    CorrectedProduct,
    HistoryEntry,
    select_entries,
    select_products,
    select_visits,
)
from forager.products.validation.identity import Identity, identity_of, is_from_url, is_same_product
from forager.products.validation.plausibility import Offer, Past
from forager.products.visit import ParsedPage, ProductVisit, visit_of

__all__ = ["ArchivedVisit", "CorrectedProduct", "select_products", "select_visits"]

# an entry that was written this long after its page was read belongs to that visit
SAME_VISIT = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ReadVisit:
    """An archived page as a version reads it now; None if its entries stay as they are."""

    read_at: datetime
    page: ParsedPage | None


@dataclass(frozen=True, slots=True)
class Correction:
    """A price history that differs from the stored one."""

    product: CorrectedProduct
    old: tuple[HistoryEntry, ...]
    new: tuple[HistoryEntry, ...]
    parser: str
    version: str

    @property
    def removed(self) -> int:
        return len(self.old) - sum(entry.id is not None for entry in self.new)

    @property
    def added(self) -> int:
        return sum(entry.id is None for entry in self.new)

    @property
    def old_range(self) -> tuple[Decimal | None, Decimal | None]:
        return _range(self.old)

    @property
    def new_range(self) -> tuple[Decimal | None, Decimal | None]:
        return _range(self.new)

    @property
    def price(self) -> Decimal | None:
        return self.new[-1].price


def _range(entries: Sequence[HistoryEntry]) -> tuple[Decimal | None, Decimal | None]:
    prices = [entry.price for entry in entries if entry.price is not None]
    return min(prices, default=None), max(prices, default=None)


async def correct_product(
    connection: Connection, product: CorrectedProduct, visits: Sequence[ReadVisit], *, write: bool
) -> Correction | None:
    """What the readings of its pages, oldest first, change in the history; None for nothing."""
    last = next((visit.page for visit in reversed(visits) if visit.page is not None), None)
    if last is None:
        return None
    load = store.lock_history if write else select_entries
    old = await load(connection, product.id)
    new = _corrected(product, old, visits)
    if not new or [entry.id for entry in old] == [entry.id for entry in new]:
        return None
    correction = Correction(product, tuple(old), tuple(new), last.parser, last.version)
    if write:
        await _write(connection, correction)
    return correction


async def _write(connection: Connection, correction: Correction) -> None:
    product, current = correction.product, correction.new[-1]
    await store.replace_entries(connection, product.id, correction.new)
    await store.set_offer(
        connection,
        product.id,
        current,
        price_changed_at=_price_changed_at(correction.new),
        parser=correction.parser,
        version=correction.version,
    )
    await enqueue_rows(connection, PRODUCTS, [product.id])
    if (product.price, product.currency) != (current.price, current.currency):
        await record_events(connection, [_event(correction)])


def _price_changed_at(entries: Sequence[HistoryEntry]) -> datetime:
    current = entries[-1]
    since = current.recorded_at
    for entry in reversed(entries):
        if (entry.price, entry.currency) != (current.price, current.currency):
            break
        since = entry.recorded_at
    return since


def _event(correction: Correction) -> NewEvent:
    product, current = correction.product, correction.new[-1]
    comparable = product.currency == current.currency
    payload = {
        "name": product.product_name,
        "url": product.url,
        "old": product.price,
        "new": current.price,
        "currency": current.currency or product.currency,
        **({} if comparable else {"old_currency": product.currency}),
        "percent": percent(product.price, current.price) if comparable else None,
        "old_availability": product.availability,
        "availability": current.availability,
        "old_parser": f"{product.parser} {product.parser_version}",
        "parser": correction.parser,
        "version": correction.version,
    }
    return NewEvent(EventKind.REREAD, product.id, product.domain_id, payload)


# --- the history that the readings make ----------------------------------------------------------


def _corrected(
    product: CorrectedProduct, entries: Sequence[HistoryEntry], visits: Sequence[ReadVisit]
) -> list[HistoryEntry]:
    """The changes of the offer over all visits, with the entries that no visit explains."""
    by_visit, others = _by_visit(entries, [visit.read_at for visit in visits])
    moments: list[tuple[datetime, HistoryEntry | ReadVisit]] = [
        *((entry.recorded_at, entry) for entry in others),
        *((visit.read_at, visit) for visit in visits),
    ]
    past = Past(rejected=frozenset(product.rejected or ()))
    found: list[HistoryEntry] = []
    for at, each in sorted(moments, key=lambda moment: moment[0]):
        written = list(by_visit.get(at, ()))
        if isinstance(each, HistoryEntry):
            written, past = [each], replace(past, offer=each.offer, unconfirmed={})
        elif each.page is not None and (visit := _product_visit(product, each.page)):
            if not _shows(product, each.page):
                continue
            past = _after(visit, past)
            written = [_entry(past.offer, at, written)]
        for entry in written:
            past = replace(past, offer=entry.offer)
            if not found or found[-1].offer != entry.offer:
                found.append(entry)
    return found


def _by_visit(
    entries: Sequence[HistoryEntry], times: Sequence[datetime]
) -> tuple[dict[datetime, list[HistoryEntry]], list[HistoryEntry]]:
    """The entries that each visit wrote, and all others."""
    by_visit: dict[datetime, list[HistoryEntry]] = {}
    others = []
    times = sorted(times)
    for entry in entries:
        before = bisect_right(times, entry.recorded_at)
        if before and entry.recorded_at - times[before - 1] <= SAME_VISIT:
            by_visit.setdefault(times[before - 1], []).append(entry)
        else:
            others.append(entry)
    return by_visit, others


def _product_visit(product: CorrectedProduct, page: ParsedPage) -> ProductVisit | None:
    """The reading of a page; None if the version could not read it, so that its entries stay."""
    visit = visit_of(page, product.domain_currency, product.currency)
    return visit if visit.is_product else None


def _shows(product: CorrectedProduct, page: ParsedPage) -> bool:
    """Whether a page shows this product, and no other."""
    seen = identity_of(page.product)
    sku = None if is_from_url(product.sku_origin) else product.sku
    known = Identity(product.product_name, sku, product.gtin)
    return seen is not None and is_same_product(known, seen)


def _after(visit: ProductVisit, past: Past) -> Past:
    """The state after a visit."""
    validated = visit.seen_after(past)
    assert validated.offer_check is not None
    offer = validated.offer_check.offer
    said = visit.checked.product.evidence.get("price")
    accepted = said is not None and visit.checked.product.price == offer.price
    return replace(
        past,
        offer=offer,
        unconfirmed=unconfirmed_values(orjson.loads(problems_json(validated.problems))),
        variants=validated.offer_check.variants,
        price_origin=said.origin if said is not None and accepted else past.price_origin,
    )


def _entry(offer: Offer, at: datetime, written: Sequence[HistoryEntry]) -> HistoryEntry:
    """The entry of an offer: the one that is there, if it has the same offer."""
    same = (entry for entry in written if entry.offer == offer)
    time = written[0].recorded_at if written else at
    new = HistoryEntry(
        None, offer.price, offer.list_price, offer.currency, offer.availability, time
    )
    return next(same, new)
