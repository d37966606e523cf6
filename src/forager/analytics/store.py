"""SQL of the lake: rows as CSV."""

from __future__ import annotations

from datetime import datetime
from typing import Any, BinaryIO, LiteralString
from uuid import UUID

from forager.analytics.dataset import Dataset, micro
from forager.db.database import Connection
from forager.db.rows import Values


async def select_identity(connection: Connection) -> str:
    """The identity of this database; a restored copy has another one."""
    return await Values(connection, str).one(
        """
        SELECT system_identifier || '/' || oid
          FROM pg_control_system(), pg_database
         WHERE datname = current_database()
        """
    )


async def select_first(connection: Connection, dataset: Dataset) -> datetime | None:
    """The time of the oldest row of a dataset."""
    return await Values(connection).first(f"SELECT min({dataset.time}) {dataset.source}")


async def copy_rows(
    connection: Connection, dataset: Dataset, file: BinaryIO, *, since: datetime, until: datetime
) -> None:
    """Write the rows of a time as CSV."""
    values = ", ".join(expression for _, expression in dataset.values.values())
    query: LiteralString = f"""
        SELECT t.id, {micro(dataset.time)}, {values}
          {dataset.source}
         WHERE {dataset.time} >= %(since)s AND {dataset.time} < %(until)s AND {dataset.condition}
    """
    await _copy(connection, query, {"since": since, "until": until}, file)


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
         WHERE v.job_id = %(job)s AND v.settled_at >= %(since)s AND v.settled_at < %(until)s
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


async def select_jobs(connection: Connection, *, since: datetime) -> list[UUID]:
    """Site crawls that settled pages since then."""
    return await Values(connection).all(
        "SELECT job_id FROM crawl_states WHERE updated_at >= %s ORDER BY job_id", (since,)
    )


async def copy_pages(
    connection: Connection, file: BinaryIO, *, job: UUID, since: datetime, until: datetime
) -> None:
    """Pages of a site crawl that were settled in a time, as CSV."""
    parameters = {"job": job, "since": since, "until": until}
    await _copy(connection, _SITE_PAGES, parameters, file)
