"""SQL of the lake: what may be read by now, and rows as CSV in the order of their times."""

from __future__ import annotations

from datetime import datetime
from typing import Any, BinaryIO, LiteralString
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Values

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


async def select_horizon(connection: Connection) -> tuple[datetime, int]:
    """When the oldest transaction that may still write began; how many sessions are hidden.

    Rows are dated by the database, at or after the start of the transaction that writes them. So
    no row dated before the oldest start can be added any more. Vacuum writes no rows, and
    Forager prepares no transactions.
    """
    cursor = await connection.execute(
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
    return found[0], int(found[1])


async def select_identity(connection: Connection) -> str:
    """The identity of this database; a restored copy has another one."""
    identity: str = await Values(connection).one(
        """
        SELECT system_identifier || '/' || oid
          FROM pg_control_system(), pg_database
         WHERE datname = current_database()
        """
    )
    return identity


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
    await _copy(connection, _ROWS[dataset], asked, file)


async def _copy(
    connection: Connection, query: LiteralString, values: dict[str, Any], file: BinaryIO
) -> None:
    statement: LiteralString = "COPY (" + query + ") TO STDOUT (FORMAT csv)"
    async with connection.cursor() as cursor, cursor.copy(statement, values) as copy:
        async for data in copy:
            file.write(data)


# A URL that was excluded without a request is not a page. The id is part of the URL's hash:
# these rows have no number. A host is named by the row of `domains` that covers it, as for tasks.
_SITE_PAGES: LiteralString = """
    WITH page AS MATERIALIZED (
        SELECT v.url_hash, v.settled_at, v.outcome, v.reason, v.http_status, v.attempts,
               v.duration_ms, v.size, v.content_type, left(v.url, 4000) AS url,
               split_part(v.url, '/', 3) AS host
          FROM crawl_visited v
         WHERE v.job_id = %(job)s AND v.url_hash > %(after)s AND v.url_hash <= %(last)s
           AND v.settled_at >= %(since)s AND v.settled_at < %(until)s
           AND (v.outcome <> 'excluded' OR v.http_status IS NOT NULL)
    ), host AS (
        SELECT h.host, coalesce(d.domain_name, h.host) AS domain
          FROM (SELECT DISTINCT host FROM page) AS h
          LEFT JOIN LATERAL (
              SELECT domain_name FROM domains
               WHERE domain_name = h.host
                  OR domain_name LIKE '%%.%%'  -- one without a dot covers itself alone
                     AND right(h.host, length(domain_name) + 1) = '.' || domain_name
               ORDER BY length(domain_name) DESC
               LIMIT 1
          ) AS d ON true
    )
    SELECT ('x' || encode(substring(p.url_hash FROM 1 FOR 8), 'hex'))::bit(64)::bigint,
           (extract(epoch FROM p.settled_at) * 1000000)::bigint, NULL, h.domain,
           regexp_replace(j.payload->>'proxy', '//[^@]*@', '//'), p.outcome,
           CASE WHEN p.outcome = 'failed' THEN p.reason END, p.http_status, p.attempts + 1,
           p.duration_ms, p.size, %(job)s, p.url, left(p.content_type, 200)
      FROM page p
      JOIN host h ON h.host = p.host
      LEFT JOIN crawl_jobs j ON j.id = %(job)s
"""


async def select_next_job(connection: Connection, *, since: datetime, job: UUID) -> UUID | None:
    """This job or the next after it that settled something since then."""
    return await Values(connection).first(
        """
        SELECT job_id FROM crawl_states
         WHERE job_id >= %s AND updated_at >= %s
         ORDER BY job_id
         LIMIT 1
        """,
        (job, since),
    )


async def select_keys(
    connection: Connection, job: UUID, *, after: bytes, limit: int
) -> tuple[bytes | None, int]:
    """The last of a job's next keys, and how many they are; None if there are none."""
    cursor = await connection.execute(
        """
        SELECT url_hash, number
          FROM (SELECT url_hash, row_number() OVER (ORDER BY url_hash) AS number
                  FROM crawl_visited
                 WHERE job_id = %s AND url_hash > %s
                 ORDER BY url_hash
                 LIMIT %s) AS next
         ORDER BY number DESC
         LIMIT 1
        """,
        (job, after, limit),
    )
    row = await cursor.fetchone()
    return (None, 0) if row is None else (bytes(row[0]), row[1])


async def copy_pages(
    connection: Connection,
    file: BinaryIO,
    *,
    job: UUID,
    after: bytes,
    last: bytes,
    since: datetime,
    until: datetime,
) -> None:
    """Pages between two keys of a job that were settled in a time, as CSV."""
    asked = {"job": job, "after": after, "last": last, "since": since, "until": until}
    await _copy(connection, _SITE_PAGES, asked, file)
