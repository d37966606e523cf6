"""SQL of the lake: what may be read by now, and rows as CSV in the order of their times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, LiteralString

from psycopg.rows import class_row, scalar_row

from forager.db.database import Connection

# how long a session needs at most to show that its transaction has begun, and more
LAG_SECONDS = 5

# Texts are cut, so that no row outgrows what the reader of CSV takes at a time. Times are whole
# microseconds: a number is the same in every zone and every style of dates.
_PRODUCTS: LiteralString = """
    SELECT t.id, (extract(epoch FROM t.updated_at) * 1000000)::bigint, d.domain_name,
           left(t.url, 4000), left(t.product_name, 1000), left(t.brand, 500),
           left(t.category, 1000), left(t.sku, 200), left(t.gtin, 200), t.price, t.list_price,
           t.currency, t.availability, t.rating, t.review_count, jsonb_array_length(t.problems),
           t.parser, t.parser_version, (extract(epoch FROM t.created_at) * 1000000)::bigint
      FROM products t
      JOIN domains d ON d.id = t.domain_id
     WHERE (t.updated_at, t.id) > (%(at)s, %(id)s) AND t.updated_at < %(before)s
     ORDER BY t.updated_at, t.id
     LIMIT %(limit)s
"""
_PRICE_HISTORY: LiteralString = """
    SELECT t.id, (extract(epoch FROM t.recorded_at) * 1000000)::bigint, t.product_id, t.price,
           t.list_price, t.currency, t.availability
      FROM price_history t
     WHERE (t.recorded_at, t.id) > (%(at)s, %(id)s)
       AND t.recorded_at >= %(at)s AND t.recorded_at < %(before)s
     ORDER BY t.recorded_at, t.id
     LIMIT %(limit)s
"""
_PAGES: LiteralString = """
    SELECT t.id, (extract(epoch FROM t.finished_at) * 1000000)::bigint, t.task_id, d.domain_name,
           p.proxy_protocol || '://' || p.proxy_url || ':' || p.proxy_port, t.outcome,
           t.error_kind, t.http_status, t.attempt, t.duration_ms, t.size, NULL, NULL, NULL
      FROM task_attempts t
      LEFT JOIN domains d ON d.id = t.domain_id
      LEFT JOIN proxies p ON p.id = t.proxy_id
     WHERE (t.finished_at, t.id) > (%(at)s, %(id)s)
       AND t.finished_at >= %(at)s AND t.finished_at < %(before)s
       AND t.stage = 'download'
     ORDER BY t.finished_at, t.id
     LIMIT %(limit)s
"""
_EXTRACTIONS: LiteralString = """
    SELECT t.id, (extract(epoch FROM t.created_at) * 1000000)::bigint, t.task_id, t.product_id,
           d.domain_name, t.parser, t.parser_version, t.role, t.outcome, t.confidence,
           jsonb_array_length(t.problems)
      FROM extractions t
      LEFT JOIN domains d ON d.id = t.domain_id
     WHERE (t.created_at, t.id) > (%(at)s, %(id)s)
       AND t.created_at >= %(at)s AND t.created_at < %(before)s
     ORDER BY t.created_at, t.id
     LIMIT %(limit)s
"""
_PROXIES: LiteralString = """
    SELECT t.id, (extract(epoch FROM t.updated_at) * 1000000)::bigint,
           t.proxy_protocol || '://' || t.proxy_url || ':' || t.proxy_port, t.region,
           t.cost_amount::float8, t.cost_unit, t.cost_currency,
           (extract(epoch FROM t.created_at) * 1000000)::bigint
      FROM proxies t
     WHERE (t.updated_at, t.id) > (%(at)s, %(id)s) AND t.updated_at < %(before)s
     ORDER BY t.updated_at, t.id
     LIMIT %(limit)s
"""
# What changed lately is of a late day; without that there would have to be an index of a time
# that moves every few seconds.
_PROXY_USAGE: LiteralString = """
    SELECT t.id, (extract(epoch FROM t.updated_at) * 1000000)::bigint, t.domain_name, t.proxy_id,
           t.requests, t.bytes
      FROM proxy_usage t
     WHERE (t.updated_at, t.id) > (%(at)s, %(id)s) AND t.updated_at < %(before)s
       AND t.day >= (%(at)s::timestamptz AT TIME ZONE 'UTC')::date - 1
     ORDER BY t.updated_at, t.id
     LIMIT %(limit)s
"""
_ROWS: dict[str, LiteralString] = {
    "products": _PRODUCTS,
    "price_history": _PRICE_HISTORY,
    "pages": _PAGES,
    "extractions": _EXTRACTIONS,
    "proxies": _PROXIES,
    "proxy_usage": _PROXY_USAGE,
}


@dataclass(frozen=True, slots=True)
class Horizon:
    """Before `at`, every row that will ever be is there; `hidden` sessions cannot be looked at."""

    at: datetime
    hidden: int


async def select_horizon(connection: Connection) -> Horizon:
    """When the oldest transaction that may still write began.

    Rows are dated by the database, at or after the start of the transaction that writes them. So
    nobody can add a row dated before the oldest start any more. Vacuum writes no rows, and
    Forager prepares no transactions.
    """
    async with connection.cursor(row_factory=class_row(Horizon)) as cursor:
        await cursor.execute(
            """
            SELECT least(
                       now() - %s * interval '1 second', min(a.xact_start)
                   ) AS at,
                   count(*) FILTER (WHERE a.query = '<insufficient privilege>') AS hidden
              FROM pg_stat_activity a
             WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
               AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
            """,
            (LAG_SECONDS,),
        )
        found = await cursor.fetchone()
    assert found is not None
    return found


async def select_identity(connection: Connection) -> str:
    """What tells this database from all others, also from a restored copy of it."""
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(
            """
            SELECT system_identifier || '/' || oid
              FROM pg_control_system(), pg_database
             WHERE datname = current_database()
            """
        )
        return str(await cursor.fetchone())


async def copy_rows(
    connection: Connection,
    dataset: str,
    file: BinaryIO,
    *,
    after: tuple[datetime, int],
    before: datetime,
    limit: int,
) -> None:
    """The next rows of a dataset as CSV, those with the same time by id."""
    asked = {"at": after[0], "id": after[1], "before": before, "limit": limit}
    statement: LiteralString = "COPY (" + _ROWS[dataset] + ") TO STDOUT (FORMAT csv)"
    async with connection.cursor() as cursor, cursor.copy(statement, asked) as copy:
        async for data in copy:
            file.write(data)
