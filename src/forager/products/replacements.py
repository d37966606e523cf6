"""Replacements: a page that shows another product than before is withheld.

The known product keeps its name, codes and price until its page shows it again, or until the other
product is accepted: by a user, or by the setting `replacement_accepted` after a number of visits.
An accepted product begins a new history. The former one is discontinued, and is found by its
ID; its URL gets a fragment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from forager.db.cursor import Page, check_limit, decode_number, page_of
from forager.db.database import Connection, Database
from forager.errors import NotFound
from forager.events.event import EventKind, NewEvent
from forager.events.service import record_events
from forager.extract.keys import url_hash
from forager.extract.product.product import Availability
from forager.hints import Hint, action
from forager.index.kind import PRODUCTS, enqueue_rows
from forager.products.lookup import find_product
from forager.products.store import replacements as store
from forager.products.store import writes
from forager.products.store.replacements import (
    ListedReplacement,
    Replacement,
    SeenReplacement,
    delete_replacements_of_domain,
)
from forager.products.validation.identity import Identity, is_from_url, is_same_product
from forager.settings import Settings

__all__ = ["ListedReplacement", "Replacement", "delete_replacements_of_domain"]


@dataclass(frozen=True, slots=True)
class SeenIdentity:
    """What the page of a task shows."""

    task_id: int
    domain_id: int
    identity: Identity
    url: str
    page: str | None = None


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Which of the pages have another name than the known product, and which show another one."""

    renamed: frozenset[int]
    replaced: dict[int, Replaced]


@dataclass(frozen=True, slots=True)
class Replaced:
    """A page that shows another product, for this number of visits in a row."""

    product_id: int
    visits: int
    # whether the visit before showed yet another product
    is_unstable: bool
    # whether the rule of the settings accepts it
    is_accepted: bool


async def find_replaced(
    connection: Connection, seen: Sequence[SeenIdentity], settings: Settings
) -> KnownNames:
    """Compare pages with the known products, by task, and count visits that show another one."""
    known = await store.select_task_products(connection, [each.task_id for each in seen])
    others: dict[int, SeenIdentity] = {}
    renamed: set[int] = set()
    returned: set[int] = set()
    for each in seen:
        product = known.get(each.task_id)
        if product is None:
            continue
        if product.name != each.identity.name:
            renamed.add(each.task_id)
        if not is_same_product(_identity(product), each.identity):
            others[each.task_id] = each
        elif product.is_replaced:
            returned.add(product.product_id)
    if returned:
        await store.delete_replacements(connection, sorted(returned))
    noted = await _note(connection, known, others)
    replaced = {
        task_id: _replaced(noted[known[task_id].product_id], each, settings)
        for task_id, each in others.items()
    }
    await _announce(connection, known, others, replaced, settings)
    return KnownNames(frozenset(renamed), replaced)


def _identity(product: store.TaskProduct) -> Identity:
    sku = None if is_from_url(product.sku_origin) else product.sku
    return Identity(product.name, sku, product.gtin)


async def _note(
    connection: Connection, known: dict[int, store.TaskProduct], others: dict[int, SeenIdentity]
) -> dict[int, store.NotedReplacement]:
    shown = {
        known[task_id].product_id: SeenReplacement(
            known[task_id].product_id, each.identity.name, each.identity.sku, each.identity.gtin,
            each.url, each.page,
        )
        for task_id, each in others.items()
    }  # fmt: skip
    return await store.note_replacements(connection, list(shown.values())) if shown else {}


def _replaced(noted: store.NotedReplacement, seen: SeenIdentity, settings: Settings) -> Replaced:
    is_unstable = noted.former_name not in (None, seen.identity.name)
    enough = noted.visits >= settings.replacement_visits
    return Replaced(
        noted.product_id, noted.visits, is_unstable, settings.replacement_accepted and enough
    )


async def _announce(
    connection: Connection,
    known: dict[int, store.TaskProduct],
    others: dict[int, SeenIdentity],
    replaced: dict[int, Replaced],
    settings: Settings,
) -> None:
    """Tell subscribers once that a page has shown another product for long enough."""
    events = [
        NewEvent(
            EventKind.REPLACED,
            known[task_id].product_id,
            each.domain_id,
            _payload(known[task_id], each, replaced[task_id].visits),
        )
        for task_id, each in others.items()
        if replaced[task_id].visits == settings.replacement_visits
    ]
    if events:
        await record_events(connection, events)


def _payload(known: store.TaskProduct, seen: SeenIdentity, visits: int) -> dict[str, Any]:
    return {
        "name": known.name,
        "url": seen.url,
        "shown_name": seen.identity.name,
        "shown_sku": seen.identity.sku,
        "shown_gtin": seen.identity.gtin,
        "visits": visits,
    }


async def list_replacements(
    database: Database, *, cursor: str | None = None, limit: int = 100
) -> Page[ListedReplacement]:
    check_limit(limit)
    after = decode_number(cursor) or 0
    found = await database.run(store.select_replacements, after=after, limit=limit + 1)
    return page_of(found, limit, lambda last: last.product_id)


async def replacement_of(connection: Connection, which: str) -> Replacement:
    """The product that the page of a product shows instead; NotFound if there is none."""
    product_id = await find_product(connection, which)
    found = await store.select_replacement(connection, product_id)
    if found is None:
        raise NotFound(
            f"the page of product {product_id} shows no other product",
            hint=Hint("{} lists pages that do.", action("products replaced")),
        )
    return found


async def give_up_products(connection: Connection, product_ids: Sequence[int]) -> list[int]:
    """Free the pages of products for others; returns their tasks.

    The products are discontinued and keep their history.
    """
    given_up = await store.lock_products(connection, product_ids)
    places = [(each.id, f"{each.url}#product-{each.id}") for each in given_up]
    await store.detach_products(
        connection,
        [(product_id, url, url_hash(url)) for product_id, url in places],
        Availability.DISCONTINUED,
    )
    await enqueue_rows(connection, PRODUCTS, [each.id for each in given_up])
    events = [_discontinued(each) for each in given_up if each.availability != "discontinued"]
    await record_events(connection, events)
    return [each.task_id for each in given_up if each.task_id is not None]


async def withdraw_products(connection: Connection, task_ids: Sequence[int]) -> None:
    """Mark the products of tasks as discontinued; their next visit is unconditional."""
    if not task_ids:
        return
    withdrawn = await writes.withdraw_products(connection, task_ids, Availability.DISCONTINUED)
    await enqueue_rows(connection, PRODUCTS, [product.id for product in withdrawn])
    await record_events(connection, [_discontinued(product) for product in withdrawn])


def _discontinued(product: store.DetachedProduct | writes.WithdrawnProduct) -> NewEvent:
    payload = {
        "name": product.product_name,
        "url": product.url,
        "old": product.availability,
        "new": Availability.DISCONTINUED.value,
    }
    return NewEvent(EventKind.AVAILABILITY_CHANGED, product.id, product.domain_id, payload)
