"""The writer of products: stores a batch of parsed pages, and reports what has changed.

A batch is one statement per table, inside the transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from forager.db.database import Connection
from forager.events.event import EventKind, NewEvent
from forager.events.service import record_events
from forager.extract.product.places import STATING
from forager.images.writer import record_images, renew_images
from forager.index.kind import PRODUCTS, enqueue_rows
from forager.parsers.rates import GOOD_OUTCOMES, ParseCount, check_rates, count_parses
from forager.products.alerts.rules import triggered_alerts
from forager.products.change import (
    ProductChange,
    change_events,
    event_of,
    separate_changes,
    variant_events,
)
from forager.products.json_columns import unconfirmed_values
from forager.products.redirects import Redirected, follow_redirects, record_redirects
from forager.products.store import prices
from forager.products.store import products as extractions
from forager.products.store import writes as store
from forager.products.store.alerts import OfferKey
from forager.products.store.prices import VariantChange
from forager.products.store.redirects import delete_aliases
from forager.products.store.writes import KeptFields, KnownProduct, ProductRow
from forager.products.validation.fields import FieldViolation
from forager.products.validation.plausibility import Offer
from forager.products.validation.withheld import record_withheld
from forager.products.visit import (
    ParsedPage,
    ProductVisit,
    extraction_of,
    has_ambiguous_currency,
    past_of,
    row_of,
    visit_of,
)
from forager.settings import Settings

__all__ = ["ParsedPage"]

ACTIVE = "active"
# products with a currency that decide about a domain, and the share that must agree
LEAST_PRODUCTS = 3
USUAL_SHARE = 0.9
NO_VARIANTS = "[]"


@dataclass(frozen=True, slots=True)
class Written:
    """What storing a visit has changed."""

    task_id: int
    # of the extraction: ok, suspect, incomplete, failed
    outcome: str
    product_id: int | None
    is_new: bool
    content_changed: bool
    price_changed: bool
    availability_changed: bool
    # a price was withheld, and none before
    is_doubted: bool
    problems: tuple[FieldViolation, ...]
    # for incomplete and failed
    reason: str | None


async def write_pages(
    connection: Connection, pages: Sequence[ParsedPage], *, settings: Settings
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
    usual = await _usual_currencies(connection, pages)
    visits = [
        visit_of(page, currencies.get(page.domain_id), usual.get(page.domain_id)) for page in pages
    ]
    changes = await _write_products(connection, _lasting(visits))
    await _write_aliases(connection, redirected, changes)
    checked = [_validated(visit, changes.get(visit.page.url_hash)) for visit in visits]
    variants = await _variant_changes(connection, changes.values())
    alerts = await _triggered_alerts(connection, changes.values(), variants)
    await _write_history(connection, list(changes.values()), variants)
    await record_withheld(connection, changes.values())
    await _show_images(connection, list(changes.values()), limit=settings.images_per_product)
    written = [_written(visit, changes.get(visit.page.url_hash)) for visit in checked]
    await extractions.insert_extractions(
        connection, [extraction_of(v, w.product_id) for v, w in zip(checked, written, strict=True)]
    )
    degraded = await _count(connection, checked, settings)
    changed = [event for change in changes.values() for event in change_events(change)]
    of_variants = variant_events(changes.values(), variants)
    await record_events(connection, [*changed, *of_variants, *alerts, *degraded])
    return written


async def _usual_currencies(
    connection: Connection, pages: Sequence[ParsedPage]
) -> Mapping[int, str]:
    """The currencies of domains with a page whose price has none, or only a sign.

    Structured data elsewhere on the domain says what a sign means; other pages say it where the
    price has no sign.
    """
    unsigned, signed = set(), set()
    for page in pages:
        if page.product is not None and page.product.price is not None:
            if page.product.currency is None:
                unsigned.add(page.domain_id)
            elif has_ambiguous_currency(page.product):
                signed.add(page.domain_id)
    found: dict[int, str] = {}
    for domains, origins in ((unsigned, None), (unsigned | signed, sorted(STATING))):
        if domains:
            found |= await store.select_usual_currencies(
                connection,
                sorted(domains),
                least=LEAST_PRODUCTS,
                share=USUAL_SHARE,
                origins=origins,
            )
    return found


async def touch_unchanged(connection: Connection, task_ids: Sequence[int]) -> None:
    """Mark products as seen whose pages the server reports as unchanged."""
    if task_ids:
        await renew_images(connection, await store.touch_products(connection, task_ids))


# --- products ------------------------------------------------------------------------------------


def _lasting(visits: Sequence[ProductVisit]) -> list[ProductVisit]:
    """The visits that write products: the last one of each URL."""
    active = [visit for visit in visits if visit.is_product and visit.page.role == ACTIVE]
    return list({visit.page.url_hash: visit for visit in active}.values())


async def _write_products(
    connection: Connection, visits: Sequence[ProductVisit]
) -> dict[bytes, ProductChange]:
    """The changes by URL; each product is locked before the decision about it."""
    if not visits:
        return {}
    first = {visit.page.url_hash: row_of(visit) for visit in visits}
    known = await store.visit_products(connection, list(first.values()))
    kept = await _kept_fields(connection, visits, known)
    changes = {
        visit.page.url_hash: _change(
            visit, first[visit.page.url_hash], known[visit.page.url_hash], kept
        )
        for visit in visits
    }
    await _update(connection, list(changes.values()))
    payload = [c.known.id for c in changes.values() if c.must_be_indexed]
    if payload:
        await enqueue_rows(connection, PRODUCTS, payload)
    return changes


async def _kept_fields(
    connection: Connection, visits: Sequence[ProductVisit], known: Mapping[bytes, KnownProduct]
) -> Mapping[int, KeptFields]:
    """Known fields of the products whose parser could not read all of its fields."""
    ids = [known[visit.page.url_hash].id for visit in visits if visit.page.withheld]
    return await store.select_kept_fields(connection, ids) if ids else {}


def _change(
    visit: ProductVisit, row: ProductRow, known: KnownProduct, kept: Mapping[int, KeptFields]
) -> ProductChange:
    if known.is_new:
        return ProductChange(visit, row, known)
    complete = visit.keeping(kept[known.id]) if known.id in kept else visit
    is_reread = (known.parser, known.parser_version) != (row.parser, row.version)
    if not is_reread:  # another version may know that these are no codes
        complete = complete.with_codes(known.sku, known.gtin)
    is_reread = is_reread or complete.is_decided_again(known.offer, known.price_origin)
    checked = complete.seen_after(replace(past_of(known), is_reread=is_reread))
    # most prices are accepted, and then the row that was built without a past is valid
    return ProductChange(checked, row if checked == visit else row_of(checked), known)


async def _update(connection: Connection, changes: Sequence[ProductChange]) -> None:
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


def _marks_differ(change: ProductChange) -> bool:
    return bool(orjson.loads(change.row.problems) != change.known.problems)


# --- what follows from them ----------------------------------------------------------------------


async def _variant_changes(
    connection: Connection, changes: Iterable[ProductChange]
) -> list[VariantChange]:
    with_variants = [
        change.known.id
        for change in changes
        if change.row.content.variants != NO_VARIANTS
        and (change.known.is_new or change.content_changed)
    ]
    return await prices.select_variant_changes(connection, with_variants) if with_variants else []


async def _write_history(
    connection: Connection, changes: Sequence[ProductChange], variants: Sequence[VariantChange]
) -> None:
    offers = {change.known.id: change.new for change in changes if change.offer_changed}
    if offers:
        await prices.insert_changes(connection, offers)
    if variants:
        await prices.insert_variant_changes(connection, variants)


async def _show_images(
    connection: Connection, changes: Sequence[ProductChange], *, limit: int
) -> None:
    shown = {
        change.known.id: change.visit.checked.product.images
        for change in changes
        if "images" not in change.visit.page.withheld
    }
    if shown:
        await record_images(connection, shown, limit=limit)


async def _write_aliases(
    connection: Connection, redirected: Sequence[Redirected], changes: Mapping[bytes, ProductChange]
) -> None:
    new = [url_hash for url_hash, change in changes.items() if change.known.is_new]
    if new:
        await delete_aliases(connection, new)
    written = {url_hash: change.known.id for url_hash, change in changes.items()}
    await record_redirects(connection, redirected, written)


async def _triggered_alerts(
    connection: Connection, changes: Iterable[ProductChange], variants: Sequence[VariantChange]
) -> list[NewEvent]:
    by_id = {change.known.id: change for change in changes}
    offers: dict[OfferKey, Offer] = {
        (product_id, None): change.new
        for product_id, change in by_id.items()
        if change.offer_changed
    }
    offers = {key: offer for key, offer in offers.items() if not by_id[key[0]].is_reread}
    offers |= {
        (variant.product_id, variant.variant): variant.new
        for variant in separate_changes(by_id, variants)
    }
    return [
        event_of(by_id[product_id], EventKind.ALERT, payload)
        for product_id, payload in await triggered_alerts(connection, offers)
    ]


async def _count(
    connection: Connection, visits: Sequence[ProductVisit], settings: Settings
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


# --- answers -------------------------------------------------------------------------------------


def _validated(visit: ProductVisit, change: ProductChange | None) -> ProductVisit:
    """The visit as it was judged; one that another replaced is judged by the same past."""
    if change is None or change.visit.page is visit.page:
        return visit if change is None else change.visit
    return visit if change.known.is_new else visit.seen_after(past_of(change.known))


def _is_newly_doubted(change: ProductChange) -> bool:
    doubted = any(p.unconfirmed and p.field in ("price", "currency") for p in change.visit.problems)
    return doubted and "price" not in unconfirmed_values(change.known.problems)


def _written(visit: ProductVisit, change: ProductChange | None) -> Written:
    own = change if change is not None and change.visit.page is visit.page else None
    return Written(
        task_id=visit.page.task_id,
        outcome=visit.outcome.value,
        product_id=change.known.id if change is not None else None,
        is_new=own is not None and own.known.is_new,
        content_changed=own is not None and own.content_changed,
        price_changed=own is not None and own.price_changed,
        availability_changed=own is not None and own.availability_changed,
        is_doubted=own is not None and _is_newly_doubted(own),
        problems=visit.problems,
        reason=visit.reason,
    )
