"""SQL of the products that a search engine is told of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from psycopg.rows import class_row, scalar_row

from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class IndexedProduct:
    """A product with the words that PostgreSQL finds it by."""

    id: int
    domain_id: int
    domain_name: str
    product_name: str
    description: str | None
    brand: str | None
    category: str | None
    price: Decimal | None
    currency: str | None
    availability: str | None
    rating: Decimal | None
    created_at: datetime
    updated_at: datetime
    words: str


async def select_sizes(connection: Connection, ids: Sequence[int]) -> dict[int, int]:
    """About how many bytes each product is; those that are gone are left out."""
    cursor = await connection.execute(
        """
        SELECT id, pg_column_size(tsv) + coalesce(octet_length(description), 0) + 1000
          FROM products WHERE id = ANY(%s) ORDER BY id
        """,
        (list(ids),),
    )
    return dict(await cursor.fetchall())


async def select_indexed(connection: Connection, ids: Sequence[int]) -> list[IndexedProduct]:
    cursor = connection.cursor(row_factory=class_row(IndexedProduct))
    await cursor.execute(
        """
        SELECT p.id, p.domain_id, d.domain_name, p.product_name, p.description, p.brand,
               p.category, p.price, p.currency, p.availability, p.rating, p.created_at,
               p.updated_at, setweight(p.tsv, 'D')::text AS words
          FROM products p
          JOIN domains d ON d.id = p.domain_id
         WHERE p.id = ANY(%s)
         ORDER BY p.id
        """,
        (list(ids),),
    )
    return await cursor.fetchall()


async def select_next_ids(connection: Connection, after: int, limit: int) -> list[int]:
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        "SELECT id FROM products WHERE id > %s ORDER BY id LIMIT %s", (after, limit)
    )
    return await cursor.fetchall()


async def count_after(connection: Connection, after: int) -> int:
    cursor = await connection.execute("SELECT count(*) FROM products WHERE id > %s", (after,))
    row = await cursor.fetchone()
    return 0 if row is None else int(row[0])
