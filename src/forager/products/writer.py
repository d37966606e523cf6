"""The writer of products: stores a batch of parsed pages, and reports what has changed.

A batch is one statement per table, inside the transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from forager.db.database import Connection
from forager.images.recording import record_images, renew_images
from forager.index.kind import PRODUCTS
from forager.index.store import enqueue_rows
from forager.parsers.rates import GOOD_OUTCOMES, ParseCount, check_rates, count_parses
from forager.products.alerts import triggered_alerts
from forager.products.plausibility import Offer
from forager.products.price_history import percent
from forager.products.redirects import Redirected, follow_redirects, record_redirects
from forager.products.store import prices
from forager.products.store import records as extractions
from forager.products.store import writes as store
from forager.products.store.alerts import OfferKey
from forager.products.store.prices import VariantChange
from forager.products.store.redirects import delete_aliases
from forager.products.store.writes import KnownProduct, ProductRow
from forager.products.validation import Problem
from forager.products.visit import (
    ReadPage,
    Visit,
    extraction_of,
    past_of,
    row_of,
    visit_of,
)
from forager.settings import Settings
from forager.webhooks.events import EventKind, NewEvent, record_events

__all__ = ["ReadPage"]

ACTIVE = "active"
NO_VARIANTS = "[]"


@dataclass(frozen=True, slots=True)
class Written:
    task_id: int
    # of the extraction: ok, suspect, incomplete, failed
    outcome: str
    product_id: int | None
    is_new: bool
    content_changed: bool
    price_changed: bool
    availability_changed: bool
    problems: tuple[Problem, ...]
    # for incomplete and failed
    reason: str | None


@dataclass(frozen=True, slots=True)
class _Change:
    visit: Visit
    row: ProductRow
    known: KnownProduct

    @property
    def old(self) -> Offer:
        return self.known.offer

    @property
    def new(self) -> Offer:
        return self.row.content.offer

    @property
    def content_changed(self) -> bool:
        return not self.known.is_new and self.known.content_hash != self.row.content_hash

    @property
    def must_be_written(self) -> bool:
        """A new row was inserted with its content, unless its product was deleted meanwhile."""
        return self.content_changed or (self.known.is_new and not self.known.is_indexed)

    @property
    def must_be_indexed(self) -> bool:
        """Whether the entry of a search engine is outdated."""
        return self.known.is_new or self.known.moved or self.content_changed

    @property
    def offer_changed(self) -> bool:
        return self.known.is_new or self.old != self.new

    @property
    def price_changed(self) -> bool:
        old, new = self.old, self.new
        return not self.known.is_new and (old.price, old.currency) != (new.price, new.currency)

    @property
    def availability_changed(self) -> bool:
        return not self.known.is_new and self.old.availability != self.new.availability


async def write_pages(
    connection: Connection, pages: Sequence[ReadPage], *, settings: Settings
) -> list[Written]:
    """Write a batch inside the transaction of the caller; one result per page, in their order.

    Of several pages with the same URL, the last one is written.
    """
    if not pages:
        return []
    currencies = await store.select_currencies(
        connection, sorted({page.domain_id for page in pages})
    )
    pages, redirected = await follow_redirects(connection, pages)
    visits = [visit_of(page, currencies.get(page.domain_id)) for page in pages]
    changes = await _write_products(connection, _lasting(visits))
    await _write_aliases(connection, redirected, changes)
    judged = [_judged(visit, changes.get(visit.page.url_hash)) for visit in visits]
    variants = await _variant_changes(connection, changes.values())
    alerts = await _triggered_alerts(connection, changes.values(), variants)
    await _write_history(connection, list(changes.values()), variants)
    await _show_images(connection, list(changes.values()), limit=settings.images_per_product)
    written = [_written(visit, changes.get(visit.page.url_hash)) for visit in judged]
    await extractions.insert_extractions(
        connection,
        [extraction_of(v, w.product_id) for v, w in zip(judged, written, strict=True)],
    )
    degraded = await _count(connection, judged, settings)
    changed = [event for change in changes.values() for event in _events(change)]
    of_variants = _variant_events(changes.values(), variants)
    await record_events(connection, [*changed, *of_variants, *alerts, *degraded])
    return written


async def touch_unchanged(connection: Connection, task_ids: Sequence[int]) -> None:
    """Mark products as seen whose pages the server reports as unchanged."""
    if task_ids:
        await renew_images(connection, await store.touch_products(connection, task_ids))


# --- products ------------------------------------------------------------------------------------


def _lasting(visits: Sequence[Visit]) -> list[Visit]:
    """The visits that write products: the last one of each URL."""
    active = [visit for visit in visits if visit.is_product and visit.page.role == ACTIVE]
    return list({visit.page.url_hash: visit for visit in active}.values())


async def _write_products(connection: Connection, visits: Sequence[Visit]) -> dict[bytes, _Change]:
    """The changes by URL; each product is locked before the decision about it."""
    if not visits:
        return {}
    first = {visit.page.url_hash: row_of(visit) for visit in visits}
    known = await store.visit_products(connection, list(first.values()))
    changes = {
        visit.page.url_hash: _change(visit, first[visit.page.url_hash], known[visit.page.url_hash])
        for visit in visits
    }
    await _update(connection, list(changes.values()))
    payload = [c.known.id for c in changes.values() if c.must_be_indexed]
    if payload:
        await enqueue_rows(connection, PRODUCTS, payload)
    return changes


def _change(visit: Visit, row: ProductRow, known: KnownProduct) -> _Change:
    if known.is_new:
        return _Change(visit, row, known)
    judged = visit.seen_after(past_of(known))
    # most prices are accepted, and then the row that was built without a past is valid
    return _Change(judged, row if judged == visit else row_of(judged), known)


async def _update(connection: Connection, changes: Sequence[_Change]) -> None:
    changed = [change for change in changes if change.must_be_written]
    if changed:
        await store.update_content(
            connection,
            [change.row for change in changed],
            money_changed=[change.price_changed for change in changed],
        )
    marked = {
        change.known.id: change.row.problems
        for change in changes
        if not change.must_be_written and not change.known.is_new and _marks_differ(change)
    }
    if marked:
        await store.update_problems(connection, marked)


def _marks_differ(change: _Change) -> bool:
    return bool(orjson.loads(change.row.problems) != change.known.problems)


# --- what follows from them ----------------------------------------------------------------------


async def _variant_changes(
    connection: Connection, changes: Iterable[_Change]
) -> list[VariantChange]:
    with_variants = [
        change.known.id
        for change in changes
        if change.row.content.variants != NO_VARIANTS
        and (change.known.is_new or change.content_changed)
    ]
    return await prices.select_variant_changes(connection, with_variants) if with_variants else []


async def _write_history(
    connection: Connection, changes: Sequence[_Change], variants: Sequence[VariantChange]
) -> None:
    offers = {change.known.id: change.new for change in changes if change.offer_changed}
    if offers:
        await prices.insert_changes(connection, offers)
    if variants:
        await prices.insert_variant_changes(connection, variants)


async def _show_images(connection: Connection, changes: Sequence[_Change], *, limit: int) -> None:
    shown = {change.known.id: change.visit.checked.product.images for change in changes}
    if shown:
        await record_images(connection, shown, limit=limit)


async def _write_aliases(
    connection: Connection, redirected: Sequence[Redirected], changes: Mapping[bytes, _Change]
) -> None:
    new = [url_hash for url_hash, change in changes.items() if change.known.is_new]
    if new:
        await delete_aliases(connection, new)
    written = {url_hash: change.known.id for url_hash, change in changes.items()}
    await record_redirects(connection, redirected, written)


async def _triggered_alerts(
    connection: Connection, changes: Iterable[_Change], variants: Sequence[VariantChange]
) -> list[NewEvent]:
    by_id = {change.known.id: change for change in changes}
    offers: dict[OfferKey, Offer] = {
        (product_id, None): change.new
        for product_id, change in by_id.items()
        if change.offer_changed
    }
    offers |= {
        (variant.product_id, variant.variant): variant.new
        for variant in _separate_changes(by_id, variants)
    }
    return [
        _event(by_id[product_id], EventKind.ALERT, payload)
        for product_id, payload in await triggered_alerts(connection, offers)
    ]


def _separate_changes(
    changes: Mapping[int, _Change], variants: Iterable[VariantChange]
) -> Iterator[VariantChange]:
    """Changes of known variants other than that of the product itself."""
    for variant in variants:
        change = changes[variant.product_id]
        itself = change.offer_changed and _is_same_move(change, variant)
        if not variant.is_new and not change.known.is_new and not itself:
            yield variant


def _is_same_move(change: _Change, variant: VariantChange) -> bool:
    """Whether both changed in the same way; list prices are ignored, because variants have none."""
    before, after = (replace(offer, list_price=None) for offer in (change.old, change.new))
    return (before, after) == (variant.old, variant.new)


def _variant_events(
    changes: Iterable[_Change], variants: Sequence[VariantChange]
) -> list[NewEvent]:
    by_id = {change.known.id: change for change in changes}
    return [
        _event(
            by_id[variant.product_id],
            EventKind.VARIANT_CHANGED,
            {
                "variant": variant.variant,
                **_price_payload(variant.old, variant.new),
                "old_availability": variant.old_availability,
                "availability": variant.availability,
            },
        )
        for variant in _separate_changes(by_id, variants)
    ]


async def _count(
    connection: Connection, visits: Sequence[Visit], settings: Settings
) -> list[NewEvent]:
    """Count parsed pages; returns the alerts of domains whose success rate fell."""
    counts = [
        ParseCount(
            visit.page.domain_id,
            visit.page.parser,
            visit.page.version,
            visit.page.role,
            1,
            int(visit.outcome in GOOD_OUTCOMES),
        )
        for visit in visits
    ]
    await count_parses(connection, counts)
    # a success rate falls only with a bad page
    return await check_rates(connection, {c.domain_id for c in counts if not c.good}, settings)


def _events(change: _Change) -> list[NewEvent]:
    events = []
    if change.known.is_new:
        events.append(_event(change, EventKind.PRODUCT_ADDED, _offer_payload(change.new)))
    if change.price_changed:
        payload = _price_payload(change.old, change.new)
        events.append(_event(change, EventKind.PRICE_CHANGED, payload))
    if change.availability_changed:
        payload = {"old": change.old.availability, "new": change.new.availability}
        events.append(_event(change, EventKind.AVAILABILITY_CHANGED, payload))
    return events


def _event(change: _Change, kind: EventKind, payload: dict[str, Any]) -> NewEvent:
    named = {"name": change.row.content.product_name, "url": change.row.url}
    return NewEvent(kind, change.known.id, change.row.domain_id, {**named, **payload})


def _offer_payload(offer: Offer) -> dict[str, Any]:
    return {
        "price": offer.price,
        "list_price": offer.list_price,
        "currency": offer.currency,
        "availability": offer.availability,
    }


def _price_payload(old: Offer, new: Offer) -> dict[str, Any]:
    payload = {"old": old.price, "new": new.price, "currency": new.currency or old.currency}
    comparable = old.currency == new.currency
    if not comparable:
        payload["old_currency"] = old.currency
    return {**payload, "percent": percent(old.price, new.price) if comparable else None}


# --- answers -------------------------------------------------------------------------------------


def _judged(visit: Visit, change: _Change | None) -> Visit:
    """The visit as it was judged; one that another replaced is judged by the same past."""
    if change is None or change.visit.page is visit.page:
        return visit if change is None else change.visit
    return visit if change.known.is_new else visit.seen_after(past_of(change.known))


def _written(visit: Visit, change: _Change | None) -> Written:
    own = change if change is not None and change.visit.page is visit.page else None
    return Written(
        task_id=visit.page.task_id,
        outcome=visit.outcome.value,
        product_id=change.known.id if change is not None else None,
        is_new=own is not None and own.known.is_new,
        content_changed=own is not None and own.content_changed,
        price_changed=own is not None and own.price_changed,
        availability_changed=own is not None and own.availability_changed,
        problems=visit.problems,
        reason=visit.reason,
    )
