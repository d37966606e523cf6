"""Withdrawal: a product whose page is gone is no longer sold there, and that is a change."""

from __future__ import annotations

from collections.abc import Sequence

from forager.db.database import Connection
from forager.extract.product.record import Availability
from forager.index.kind import PRODUCTS
from forager.index.store import enqueue_rows
from forager.products.store import writes as store
from forager.tasks.stages.attempt import Attempt
from forager.webhooks.events import EventKind, NewEvent, record_events

# Not Found and Gone, said at every retry
GONE = frozenset({404, 410})


async def withdraw_gone(connection: Connection, failed: Sequence[Attempt]) -> None:
    """Products of tasks that failed because their pages are gone; in the commit that says so."""
    ids = [attempt.task.id for attempt in failed if attempt.http_status in GONE]
    if not ids:
        return
    withdrawn = await store.withdraw_products(connection, ids, Availability.DISCONTINUED)
    await enqueue_rows(connection, PRODUCTS, [product.id for product in withdrawn])
    await record_events(connection, [_event(product) for product in withdrawn])


def _event(product: store.WithdrawnProduct) -> NewEvent:
    told = {
        "name": product.product_name,
        "url": product.url,
        "old": product.availability,
        "new": Availability.DISCONTINUED.value,
    }
    return NewEvent(EventKind.AVAILABILITY_CHANGED, product.id, product.domain_id, told)
