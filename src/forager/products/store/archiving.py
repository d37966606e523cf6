"""SQL of archived products: whole rows out of the database, and back into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import sql
from psycopg.types.json import Jsonb

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples, Values

LAST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Row:
    table: str
    id: int
    product_id: int
    row: str


# the tables of a product, the referenced one first
TABLES: tuple[LiteralString, ...] = (
    "products", "price_history", "images", "variant_prices", "product_aliases", "alert_rules",
)  # fmt: skip


# greatest() ignores NULL
_UNSEEN: LiteralString = """
    greatest(p.last_seen_at, p.restored_at) < now() - %(seconds)s * interval '1 second'
"""
# Not tracked any more, or not found by a later visit. Products that wait for a visit are kept,
# however long no worker ran.
_GIVEN_UP: LiteralString = """
    (t.id IS NULL OR t.status = 'failed'
     OR t.status = 'completed' AND t.completed_at > p.last_seen_at)
"""


async def select_ids(connection: Connection) -> tuple[int, int] | None:
    """The first and the last id; None if there are none."""
    cursor = await connection.execute("SELECT min(id), max(id) FROM products")
    row = await cursor.fetchone()
    return None if row is None or row[0] is None else (row[0], row[1])


async def select_last_id(connection: Connection, *, after: int, limit: int) -> int | None:
    """The last of the next `limit` ids; None if there are none."""
    return await Values(connection).first(
        "SELECT max(id) FROM (SELECT id FROM products WHERE id > %s ORDER BY id LIMIT %s) AS next",
        (after, limit),
    )


async def lock_unseen(
    connection: Connection,
    *,
    seconds: float,
    after: int,
    limit: int,
    until: int = LAST_ID,
    given_up: bool = False,
) -> list[int]:
    """The next products that were not seen for this long, locked against new prices.

    `given_up`: only those that are not tracked any more, or that a later visit did not find.
    """
    return await Values(connection).all(
        f"""
        SELECT p.id
          FROM products p
          LEFT JOIN crawl_tasks t ON t.id = p.crawl_task_id
         WHERE {_UNSEEN} AND {_GIVEN_UP if given_up else "true"}
           AND p.id > %(after)s AND p.id <= %(until)s
         ORDER BY p.id
         LIMIT %(limit)s
           FOR UPDATE OF p SKIP LOCKED
        """,
        {"seconds": seconds, "after": after, "until": until, "limit": limit},
    )


async def select_rows(connection: Connection, product_ids: Sequence[int]) -> list[Row]:
    """All rows of these products."""
    rows: list[Row] = []
    for table in TABLES:
        key: LiteralString = "id" if table == "products" else "product_id"
        row_id: LiteralString = "product_id" if table == "product_aliases" else "id"
        rows += await Rows(connection, Row).all(
            f"""
            SELECT '{table}' AS table, {row_id} AS id, {key} AS product_id,
                   to_jsonb(t)::text AS row
              FROM {table} t WHERE {key} = ANY(%s) ORDER BY {key}, {row_id}
            """,
            (list(product_ids),),
        )
    return rows


async def delete_products(connection: Connection, product_ids: Sequence[int]) -> int:
    """Delete products with the rows that refer to them; returns how many."""
    return await Tuples(connection).affected(
        "DELETE FROM products WHERE id = ANY(%s)", (list(product_ids),)
    )


async def select_columns(connection: Connection, table: str) -> set[str]:
    return await Values(connection).as_set(
        "SELECT attname FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
        (table,),
    )


async def insert_rows(
    connection: Connection, table: str, columns: Sequence[str], rows: Sequence[dict[str, Any]]
) -> list[int]:
    """Insert rows, except where a row exists; returns the ids of products of new rows."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL(
        """
        INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE
        SELECT {names} FROM jsonb_populate_recordset(NULL::{table}, %s)
        ON CONFLICT DO NOTHING
        RETURNING {key}
        """
    ).format(
        table=sql.Identifier(table),
        names=names,
        key=sql.Identifier("id" if table == "products" else "product_id"),
    )
    return await Values(connection).all(statement, (Jsonb(list(rows)),))


async def mark_restored(connection: Connection, product_ids: Sequence[int]) -> None:
    """Count products as seen now; otherwise they would be archived again at once."""
    await connection.execute(
        "UPDATE products SET restored_at = now() WHERE id = ANY(%s)", (list(product_ids),)
    )


async def select_known(connection: Connection, table: str, ids: Sequence[int]) -> set[int]:
    """The ids that exist in a table; the rows are locked until the transaction ends."""
    statement = sql.SQL("SELECT id FROM {} WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE")
    return await Values(connection).as_set(statement.format(sql.Identifier(table)), (list(ids),))
