"""SQL of archived products: whole rows out of the database, and back into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import sql
from psycopg.rows import class_row, scalar_row
from psycopg.types.json import Jsonb

from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class Row:
    """A row of `products`, `price_history` or `images`, as it was."""

    table: str
    id: int
    product_id: int
    row: str


_PRODUCTS: LiteralString = """
    SELECT 'products' AS table, id, id AS product_id, to_jsonb(p)::text AS row
      FROM products p WHERE id = ANY(%s) ORDER BY id
"""
_PRICES: LiteralString = """
    SELECT 'price_history' AS table, id, product_id, to_jsonb(h)::text AS row
      FROM price_history h WHERE product_id = ANY(%s) ORDER BY product_id, id
"""
_IMAGES: LiteralString = """
    SELECT 'images' AS table, id, product_id, to_jsonb(i)::text AS row
      FROM images i WHERE product_id = ANY(%s) ORDER BY product_id, id
"""


async def lock_unseen(connection: Connection, *, days: float, after: int, limit: int) -> list[int]:
    """The next products that were not seen for so long; nobody adds a price to them meanwhile."""
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(
            """
            SELECT id FROM products
             WHERE id > %s AND last_seen_at < now() - %s * interval '1 day'
             ORDER BY id
             LIMIT %s
               FOR UPDATE SKIP LOCKED
            """,
            (after, days, limit),
        )
        return await cursor.fetchall()


async def select_rows(connection: Connection, product_ids: Sequence[int]) -> list[Row]:
    """Everything that is kept of these products."""
    rows: list[Row] = []
    for statement in (_PRODUCTS, _PRICES, _IMAGES):
        async with connection.cursor(row_factory=class_row(Row)) as cursor:
            await cursor.execute(statement, (list(product_ids),))
            rows += await cursor.fetchall()
    return rows


async def delete_products(connection: Connection, product_ids: Sequence[int]) -> int:
    """With their prices and images; how many there were."""
    done = await connection.execute("DELETE FROM products WHERE id = ANY(%s)", (list(product_ids),))
    return done.rowcount


async def select_columns(connection: Connection, table: str) -> set[str]:
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(
            "SELECT attname FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            (table,),
        )
        return set(await cursor.fetchall())


async def insert_rows(
    connection: Connection, table: str, columns: Sequence[str], rows: Sequence[dict[str, Any]]
) -> list[int]:
    """Put rows back under their ids; those whose place is taken stay out. The ids of the others."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL(
        """
        INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE
        SELECT {names} FROM jsonb_populate_recordset(NULL::{table}, %s)
        ON CONFLICT DO NOTHING
        RETURNING id
        """
    ).format(table=sql.Identifier(table), names=names)
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(statement, (Jsonb(list(rows)),))
        return await cursor.fetchall()


async def select_known(connection: Connection, table: str, ids: Sequence[int]) -> set[int]:
    """Which of these ids a table has; the rows stay until the transaction ends."""
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(
            sql.SQL("SELECT id FROM {} WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE").format(
                sql.Identifier(table)
            ),
            (list(ids),),
        )
        return set(await cursor.fetchall())
