"""SQL of withheld prices: those that a page showed and that are not in the price history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from forager.db.database import Connection
from forager.db.rows import RowArrays, Rows, Values
from forager.products.store.prices import CHANGE_TO
from forager.products.validation.plausibility import Offer

_WITHHELD = RowArrays("w", product_id="bigint", price="numeric", currency="text", reason="text")


@dataclass(frozen=True, slots=True)
class WithheldPrice:
    """A price that waits for another visit."""

    product_id: int
    price: Decimal | None
    currency: str | None
    reason: str


async def insert_withheld(connection: Connection, prices: Sequence[WithheldPrice]) -> None:
    """Record new ones; one that is open already was read again from the same page."""
    await connection.execute(
        f"""
        INSERT INTO withheld_prices (product_id, price, currency, reason)
        SELECT product_id, price, currency, reason
          FROM {_WITHHELD}
         WHERE NOT EXISTS (
            SELECT FROM withheld_prices o
             WHERE o.product_id = w.product_id AND o.outcome = 'open'
               AND (o.price, o.currency) IS NOT DISTINCT FROM (w.price, w.currency))
         ORDER BY product_id
        """,
        _WITHHELD.values(prices),
    )


async def close_withheld(connection: Connection, offers: Mapping[int, Offer]) -> None:
    """End what waits at these products, unless it is what their pages show now.

    It was confirmed if it is the stored offer by now.
    """
    await connection.execute(
        """
        UPDATE withheld_prices w
           SET outcome = CASE WHEN ended.confirmed THEN 'confirmed' ELSE 'not_confirmed' END,
               visits = w.visits + ended.confirmed::int,
               last_seen_at = CASE WHEN ended.confirmed THEN now() ELSE w.last_seen_at END
          FROM (SELECT o.id, (o.price, o.currency) IS NOT DISTINCT FROM (n.price, n.currency)
                             AS confirmed
                  FROM unnest(%s::bigint[], %s::numeric[], %s::text[]) AS n (id, price, currency)
                  JOIN withheld_prices o ON o.product_id = n.id AND o.outcome = 'open') AS ended
         WHERE w.id = ended.id
        """,
        (
            list(offers),
            [offer.price for offer in offers.values()],
            [offer.currency for offer in offers.values()],
        ),
    )


async def reject_price(connection: Connection, product_id: int, price: Decimal) -> int:
    """Move a price from the history of a locked product to its wrong ones; returns the entries."""
    return await Values(connection, int).one(
        """
        WITH wrong AS (
            DELETE FROM price_history
             WHERE product_id = %(product)s AND price = %(price)s
            RETURNING currency, recorded_at
        ), stored AS (
            SELECT currency FROM products WHERE id = %(product)s AND price = %(price)s
        ), kept AS (
            INSERT INTO withheld_prices (product_id, price, currency, reason, outcome, visits,
                                         first_seen_at, last_seen_at)
            SELECT %(product)s, %(price)s, currency, 'a user marked it as wrong', 'wrong',
                   greatest(count(recorded_at), 1), coalesce(min(recorded_at), now()),
                   coalesce(max(recorded_at), now())
              FROM (SELECT currency, recorded_at FROM wrong
                     UNION ALL SELECT currency, NULL FROM stored) AS found
             GROUP BY currency
            RETURNING visits
        )
        SELECT coalesce(sum(visits), 0)::int FROM kept
        """,
        {"product": product_id, "price": price},
    )


async def delete_repeated(connection: Connection, product_id: int) -> None:
    """Delete entries that repeat the one before: what was between them is gone."""
    await connection.execute(
        """
        DELETE FROM price_history
         WHERE id IN (
            SELECT id
              FROM (SELECT id,
                           (price, list_price, currency, availability) IS NOT DISTINCT FROM
                           lag((price, list_price, currency, availability))
                               OVER (ORDER BY recorded_at, id) AS repeats,
                           row_number() OVER (ORDER BY recorded_at, id) AS place
                      FROM price_history
                     WHERE product_id = %s) AS entries
             WHERE repeats AND place > 1)
        """,
        (product_id,),
    )


async def restore_price(connection: Connection, product_id: int, wrong: Decimal) -> bool:
    """Replace a wrong price of a product by the last one of its history, or by none.

    The content hash becomes one that no page has: whatever is read next is a change.
    """
    change = CHANGE_TO.format(price="h.price", currency="coalesce(h.currency, p.currency)")
    return await Values(connection).changed(
        f"""
        UPDATE products p
           SET price = h.price, list_price = h.list_price,
               price_change = {change},
               currency = coalesce(h.currency, p.currency), price_changed_at = h.recorded_at,
               content_hash = sha256(p.content_hash), updated_at = now()
          FROM (SELECT 1) AS one
          LEFT JOIN LATERAL (
            SELECT price, list_price, currency, recorded_at
              FROM price_history
             WHERE product_id = %(product)s AND price IS NOT NULL
             ORDER BY recorded_at DESC, id DESC
             LIMIT 1
         ) AS h ON true
         WHERE p.id = %(product)s AND p.price = %(wrong)s
        """,
        {"product": product_id, "wrong": wrong},
    )


async def insert_current(connection: Connection, product_id: int) -> None:
    """Add the offer of a product to its history, unless it is the last entry."""
    await connection.execute(
        """
        INSERT INTO price_history (product_id, price, list_price, currency, availability,
                                   recorded_at)
        SELECT id, price, list_price, currency, availability, statement_timestamp()
          FROM products p
         WHERE p.id = %s
           AND (price, list_price, currency, availability) IS DISTINCT FROM (
            SELECT (h.price, h.list_price, h.currency, h.availability)
              FROM price_history h
             WHERE h.product_id = p.id
             ORDER BY h.recorded_at DESC, h.id DESC
             LIMIT 1)
        """,
        (product_id,),
    )


async def delete_rejected(connection: Connection, product_id: int, price: Decimal) -> bool:
    """Allow a price again that was rejected; whether it was."""
    return await Values(connection).changed(
        "DELETE FROM withheld_prices WHERE product_id = %s AND price = %s AND outcome = 'wrong'",
        (product_id, price),
    )


async def lock_product(connection: Connection, product_id: int) -> bool:
    """Lock a product until the transaction ends; whether it exists."""
    return (
        await Rows(connection, LockedProduct).first(
            "SELECT id FROM products WHERE id = %s FOR NO KEY UPDATE", (product_id,)
        )
        is not None
    )


@dataclass(frozen=True, slots=True)
class LockedProduct:
    """A product that no other transaction changes."""

    id: int
