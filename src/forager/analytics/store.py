"""SQL of the lake: the time up to which rows are complete, and rows as CSV."""

from __future__ import annotations

from datetime import datetime
from typing import Any, BinaryIO, LiteralString
from uuid import UUID

from forager.analytics.dataset import Dataset, micro
from forager.db.database import Connection
from forager.db.rows import Tuples, Values

# more than a session needs to show that its transaction has begun
LAG_SECONDS = 5


async def select_horizon(connection: Connection) -> tuple[datetime, int]:
    """When the oldest transaction that may still write began; how many sessions are hidden.

    Rows are dated by the database, at or after the start of the transaction that writes them. So
    no row dated before the oldest start can be added any more. Vacuum writes no rows, and
    Forager prepares no transactions.
    """
    return await Tuples(connection, tuple[datetime, int]).one(
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


async def select_identity(connection: Connection) -> str:
    """The identity of this database; a restored copy has another one."""
    return await Values(connection, str).one(
        """
        SELECT system_identifier || '/' || oid
          FROM pg_control_system(), pg_database
         WHERE datname = current_database()
        """
    )


async def copy_rows(
    connection: Connection,
    dataset: Dataset,
    file: BinaryIO,
    *,
    after: tuple[datetime, int],
    before: datetime,
    limit: int,
) -> None:
    """Write the next rows of a dataset as CSV; rows of one time are in the order of their IDs."""
    time = dataset.time
    values = ", ".join(expression for _, expression in dataset.values.values())
    # the bare comparison of times lets PostgreSQL skip partitions
    query: LiteralString = f"""
        SELECT t.id, {micro(time)}, {values}
          {dataset.source}
         WHERE ({time}, t.id) > (%(at)s, %(id)s)
           AND {time} >= %(at)s AND {time} < %(before)s AND {dataset.condition}
         ORDER BY {time}, t.id
         LIMIT %(limit)s
    """
    parameters = {"at": after[0], "id": after[1], "before": before, "limit": limit}
    await _copy(connection, query, parameters, file)


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
    parameters = {"job": job, "after": after, "last": last, "since": since, "until": until}
    await _copy(connection, _SITE_PAGES, parameters, file)
