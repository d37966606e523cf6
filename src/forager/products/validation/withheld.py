"""Withheld prices: those that pages showed, and their outcome.

A doubtful price waits for another visit, and a user can mark a stored price as wrong. Neither is
in the price history; both are kept, so that nothing that a shop showed is invisible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from forager.amounts import amount_text
from forager.db.database import Connection, Database
from forager.errors import InvalidInput, NotFound
from forager.hints import Hint, action
from forager.index.kind import PRODUCTS, enqueue_rows
from forager.products.change import ProductChange
from forager.products.json_columns import unconfirmed_values
from forager.products.lookup import find_product
from forager.products.store import withheld as store
from forager.products.store.withheld import WithheldPrice


async def record_withheld(connection: Connection, changes: Iterable[ProductChange]) -> None:
    """Record new doubts about prices of a batch, and the end of earlier ones."""
    changes = [change for change in changes if not change.known.is_new]
    doubted = {each.product_id: each for change in changes for each in _doubts(change)}
    ended = {
        change.known.id: change.new
        for change in changes
        if "price" in (before := unconfirmed_values(change.known.problems))
        and before["price"].value != _value(doubted.get(change.known.id))
    }
    if ended:
        await store.close_withheld(connection, ended)
    if doubted:
        await store.insert_withheld(connection, list(doubted.values()))


def _doubts(change: ProductChange) -> Iterator[WithheldPrice]:
    for problem in change.visit.problems:
        if problem.unconfirmed is not None and problem.field in ("price", "currency"):
            price, _, currency = (problem.unconfirmed.value or "").partition(" ")
            yield WithheldPrice(
                change.known.id,
                Decimal(price) if price else None,
                currency or None,
                problem.message,
            )


def _value(withheld: WithheldPrice | None) -> str | None:
    """As the problems of a product have it; another text without one."""
    if withheld is None:
        return ""
    if withheld.price is None:
        return None
    return f"{withheld.price.normalize():f} {withheld.currency or ''}".strip()


async def reject_price(database: Database, which: str, price: Decimal) -> int:
    """Mark a price of a product as wrong; returns how many entries of its history it had.

    It leaves the history, so that lowest and highest prices are right, and is not stored when the
    page shows it again. A current price that is wrong is replaced by the one before.
    """
    if not (price.is_finite() and 0 < price < 10**10):
        raise InvalidInput(f"{price} is not a price")
    async with database.transaction() as connection:
        product_id = await find_product(connection, which)
        await store.lock_product(connection, product_id)
        entries = await store.reject_price(connection, product_id, price)
        if not entries:
            raise NotFound(
                f"product {product_id} never had the price {amount_text(price)}",
                hint=Hint("{} lists its prices.", action("products history", product_id)),
            )
        await store.delete_repeated(connection, product_id)
        if await store.restore_price(connection, product_id, price):
            await store.insert_current(connection, product_id)
        await enqueue_rows(connection, PRODUCTS, [product_id])
        return entries


async def allow_price(database: Database, which: str, price: Decimal) -> None:
    """Accept a price again that was marked as wrong; the next visit that shows it stores it."""
    async with database.transaction() as connection:
        product_id = await find_product(connection, which)
        if not await store.delete_rejected(connection, product_id, price):
            raise NotFound(f"{amount_text(price)} is not marked as wrong for product {product_id}")
