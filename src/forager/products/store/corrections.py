"""SQL that corrects price histories from archived pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from forager.archive.segment import ArchiveRef
from forager.db.database import Connection
from forager.db.rows import RowArrays, Rows
from forager.products.store.prices import CHANGE_TO
from forager.products.validation.plausibility import Offer


@dataclass(frozen=True, slots=True)
class CorrectedProduct:
    """A product whose archived pages can be read again."""

    id: int
    task_id: int
    domain_id: int
    url: str
    url_hash: bytes
    product_name: str
    sku: str | None
    sku_origin: str | None
    gtin: str | None
    parser: str
    parser_version: str
    price: Decimal | None
    currency: str | None
    availability: str | None
    domain_currency: str | None
    rejected: list[Decimal] | None


@dataclass(frozen=True, slots=True)
class ArchivedVisit:
    """A visit whose page is in the archive, at the time of its first reading."""

    product_id: int
    segment: str
    segment_offset: int
    segment_length: int
    read_at: datetime
    # where the stored price was read
    price_origin: str | None

    @property
    def ref(self) -> ArchiveRef:
        """The place of the response in the archive."""
        return ArchiveRef(self.segment, self.segment_offset, self.segment_length)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """An offer from this time on; a new entry has no ID."""

    id: int | None
    price: Decimal | None
    list_price: Decimal | None
    currency: str | None
    availability: str | None
    recorded_at: datetime

    @property
    def offer(self) -> Offer:
        """The offer that was recorded."""
        return Offer(self.price, self.list_price, self.currency, self.availability)


async def select_products(
    connection: Connection, *, after: int, domain_ids: list[int] | None, limit: int
) -> list[CorrectedProduct]:
    """Products with their tasks after an ID, with what a new reading is compared with."""
    return await Rows(connection, CorrectedProduct).all(
        """
        SELECT p.id, t.id AS task_id, p.domain_id, p.url, p.url_hash, p.product_name, p.sku,
               p.evidence -> 'sku' ->> 'origin' AS sku_origin, p.gtin, p.parser, p.parser_version,
               p.price, p.currency, p.availability, d.currency AS domain_currency,
               (SELECT array_agg(w.price) FROM withheld_prices w
                 WHERE w.product_id = p.id AND w.outcome = 'wrong') AS rejected
          FROM products p
          JOIN crawl_tasks t ON t.id = p.crawl_task_id
          JOIN domains d ON d.id = p.domain_id
         WHERE p.id > %(after)s
           AND (%(domain_ids)s::bigint[] IS NULL OR p.domain_id = ANY(%(domain_ids)s))
         ORDER BY p.id
         LIMIT %(limit)s
        """,
        {"after": after, "domain_ids": domain_ids, "limit": limit},
    )


async def select_visits(connection: Connection, product_ids: Sequence[int]) -> list[ArchivedVisit]:
    """The visits of products whose pages were archived, oldest first."""
    return await Rows(connection, ArchivedVisit).all(
        """
        SELECT p.id AS product_id, e.segment, e.segment_offset, min(e.segment_length)
               AS segment_length, min(e.created_at) AS read_at,
               max(e.evidence -> 'price' ->> 'origin') AS price_origin
          FROM products p
          JOIN extractions e ON e.task_id = p.crawl_task_id
         WHERE p.id = ANY(%s) AND e.role = 'active' AND e.segment IS NOT NULL
           AND (e.product_id IS NULL OR e.product_id = p.id)
         GROUP BY p.id, e.segment, e.segment_offset
         ORDER BY p.id, min(e.id)
        """,
        (list(product_ids),),
    )


async def lock_history(connection: Connection, product_id: int) -> list[HistoryEntry]:
    """The price history of a product, oldest first; it does not change until the end."""
    await connection.execute(
        "SELECT id FROM products WHERE id = %s FOR NO KEY UPDATE", (product_id,)
    )
    return await select_entries(connection, product_id)


async def select_entries(connection: Connection, product_id: int) -> list[HistoryEntry]:
    """The price history of a product, oldest first."""
    return await Rows(connection, HistoryEntry).all(
        """
        SELECT id, price, list_price, currency, availability, recorded_at
          FROM price_history WHERE product_id = %s ORDER BY recorded_at, id
        """,
        (product_id,),
    )


_ENTRIES = RowArrays(
    "e", price="numeric", list_price="numeric", currency="text", availability="text",
    recorded_at="timestamptz",
)  # fmt: skip


async def replace_entries(
    connection: Connection, product_id: int, entries: Sequence[HistoryEntry]
) -> None:
    """Delete all entries of a locked product but these, and insert those that are new."""
    await connection.execute(
        "DELETE FROM price_history WHERE product_id = %s AND id <> ALL(%s)",
        (product_id, [entry.id for entry in entries if entry.id is not None]),
    )
    await connection.execute(
        f"""
        INSERT INTO price_history (product_id, price, list_price, currency, availability,
                                   recorded_at)
        SELECT %(product)s, price, list_price, currency, availability, recorded_at
          FROM {_ENTRIES} ORDER BY recorded_at
        """,
        {
            **_ENTRIES.values([entry for entry in entries if entry.id is None]),
            "product": product_id,
        },
    )


async def set_offer(
    connection: Connection,
    product_id: int,
    current: HistoryEntry,
    *,
    price_changed_at: datetime,
    parser: str,
    version: str,
) -> None:
    """Store the last offer of a corrected history, and the parser version that read it.

    The content hash becomes one that no page has: whatever is read next is a change.
    """
    change = CHANGE_TO.format(price="%(price)s::numeric", currency="%(currency)s")
    await connection.execute(
        f"""
        UPDATE products p
           SET price = %(price)s, list_price = %(list_price)s, currency = %(currency)s,
               price_change = {change},
               availability = %(availability)s, price_changed_at = %(changed)s,
               parser = %(parser)s, parser_version = %(version)s,
               content_hash = sha256(content_hash), updated_at = now()
         WHERE id = %(id)s
        """,
        {
            "id": product_id,
            "price": current.price,
            "list_price": current.list_price,
            "currency": current.currency,
            "availability": current.availability,
            "changed": price_changed_at,
            "parser": parser,
            "version": version,
        },
    )
