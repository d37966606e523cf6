"""SQL of the pages of site crawls for the lake: job by job, in the order of their keys."""

from __future__ import annotations

from datetime import datetime
from typing import BinaryIO, LiteralString
from uuid import UUID

from psycopg.rows import scalar_row

from forager.db.database import Connection

# What was excluded before anybody asked for it is no page. The id is part of the URL's hash:
# these rows have no number. A host is told by the row of `domains` that covers it, as tasks are.
_PAGES: LiteralString = """
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
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(
            """
            SELECT job_id FROM crawl_states
             WHERE job_id >= %s AND updated_at >= %s
             ORDER BY job_id
             LIMIT 1
            """,
            (job, since),
        )
        return await cursor.fetchone()


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
    statement: LiteralString = "COPY (" + _PAGES + ") TO STDOUT (FORMAT csv)"
    async with connection.cursor() as cursor, cursor.copy(statement, asked) as copy:
        async for data in copy:
            file.write(data)
