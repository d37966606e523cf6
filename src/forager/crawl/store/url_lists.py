"""SQL of the lists of a job's URLs. Every statement reads a bounded number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, LiteralString
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from forager.archive.segment import ArchiveRef
from forager.crawl.settlement import PendingUrl, SettledUrl
from forager.db.cursor import unknown_cursor
from forager.db.database import Connection
from forager.db.rows import Made, Rows, Tuples, Values

if TYPE_CHECKING:
    from forager.crawl.results.url_lists import UrlFilter

_COLUMNS: LiteralString = """
    v.url_hash, v.url, v.outcome, v.reason, v.detail, v.duplicate_of, v.http_status, v.depth,
    p.url AS parent_url, v.via, v.content_type, v.title, v.size, v.settled_at, v.content_hash,
    v.segment, v.segment_offset, v.segment_length
"""
_WITH_PARENT: LiteralString = """
    LEFT JOIN crawl_visited p ON p.job_id = v.job_id AND p.url_hash = v.parent
"""
# expression and type of each sort order
_SORTS: dict[str, tuple[LiteralString, LiteralString]] = {
    "url": ('url COLLATE "C"', "text"),
    "status": ("coalesce(http_status, 0)", "int"),
    "depth": ("depth", "int"),
    "size": ("coalesce(size, 0)", "int"),
    "time": ("settled_at", "timestamptz"),
}


# the condition of each field of a filter
_FILTERS: dict[str, LiteralString] = {
    "outcomes": "outcome = ANY(%(outcomes)s)",
    "reason": "reason = %(reason)s",
    "http_status": "http_status = %(http_status)s",
    "text": "position(lower(%(text)s) IN lower(url)) > 0",
    "min_size": "size >= %(min_size)s",
    "since": "settled_at >= %(since)s",
}


def _conditions(wanted: UrlFilter) -> LiteralString:
    return " AND ".join(
        condition for name, condition in _FILTERS.items() if getattr(wanted, name) is not None
    )


def _of_index(wanted: UrlFilter) -> LiteralString:
    """A condition in the text of the statement, so that failed URLs are found by their index."""
    return "AND outcome = 'failed'" if list(wanted.outcomes) == ["failed"] else ""


def _values(job_id: UUID, wanted: UrlFilter) -> dict[str, Any]:
    return {**asdict(wanted), "outcomes": list(wanted.outcomes), "job_id": job_id}


async def select_in_key_order(
    connection: Connection, job_id: UUID, wanted: UrlFilter, *, after: bytes, scan: int, limit: int
) -> list[SettledUrl]:
    """Matching URLs among the next `scan` ones after a key."""
    return await Rows(connection, SettledUrl).all(
        f"""
        SELECT {_COLUMNS}
          FROM (
            SELECT *
              FROM (
                SELECT *
                  FROM crawl_visited
                 WHERE job_id = %(job_id)s AND url_hash > %(after)s {_of_index(wanted)}
                 ORDER BY url_hash
                 LIMIT %(scan)s
              ) AS scanned
             WHERE {_conditions(wanted)}
             ORDER BY url_hash
             LIMIT %(limit)s
          ) AS v
          {_WITH_PARENT}
         ORDER BY v.url_hash
        """,
        {**_values(job_id, wanted), "after": after, "scan": scan, "limit": limit},
    )


async def select_key_after(
    connection: Connection, job_id: UUID, wanted: UrlFilter, *, after: bytes, count: int
) -> bytes | None:
    """The key that is `count` keys after another one; None if there are fewer."""
    return await Values(connection).first(
        f"""
        SELECT url_hash
          FROM crawl_visited
         WHERE job_id = %(job_id)s AND url_hash > %(after)s {_of_index(wanted)}
         ORDER BY url_hash
        OFFSET %(skip)s
         LIMIT 1
        """,
        {"job_id": job_id, "after": after, "skip": count - 1},
    )


async def select_sorted(
    connection: Connection,
    job_id: UUID,
    wanted: UrlFilter,
    sort: str,
    *,
    descending: bool,
    after: tuple[Any, bytes] | None,
    limit: int,
) -> list[SettledUrl]:
    """Matching URLs in an order; reads all URLs of the job, or all that failed."""
    expression, kind = _SORTS[sort]
    direction: LiteralString = "DESC" if descending else "ASC"
    beyond: LiteralString = "<" if descending else ">"
    behind: LiteralString = (
        f"AND ({expression}, url_hash) {beyond} (%(value)s::{kind}, %(key)s)" if after else ""
    )
    value, key = after or (None, b"")
    cursor = connection.cursor(row_factory=class_row(SettledUrl))
    try:
        await cursor.execute(
            f"""
            SELECT {_COLUMNS}
              FROM (
                SELECT *, {expression} AS place
                  FROM crawl_visited
                 WHERE job_id = %(job_id)s AND {_conditions(wanted)} {_of_index(wanted)} {behind}
                 ORDER BY {expression} {direction}, url_hash {direction}
                 LIMIT %(limit)s
              ) AS v
              {_WITH_PARENT}
             ORDER BY v.place {direction}, v.url_hash {direction}
            """,
            {**_values(job_id, wanted), "value": value, "key": key, "limit": limit},
        )
    except psycopg.DataError:  # the cursor belongs to a list in another order
        raise unknown_cursor() from None
    return await cursor.fetchall()


async def count_by_outcome(
    connection: Connection, job_id: UUID, wanted: UrlFilter
) -> dict[str, int]:
    """Matching URLs by outcome."""
    return await Tuples(connection).as_dict(
        f"""
        SELECT outcome, count(*) FROM crawl_visited
         WHERE job_id = %(job_id)s AND {_conditions(wanted)}
         GROUP BY outcome
        """,
        _values(job_id, wanted),
    )


async def select_totals(connection: Connection, job_id: UUID) -> tuple[int, int]:
    """Processed URLs of a job, and how many of them failed."""
    cursor = await connection.execute(
        """
        SELECT fetched + unchanged + duplicate + failed + excluded, failed
          FROM crawl_states
         WHERE job_id = %s
        """,
        (job_id,),
    )
    return await cursor.fetchone() or (0, 0)


async def select_pending(
    connection: Connection, job_id: UUID, *, after: tuple[int, int], limit: int
) -> list[PendingUrl]:
    """Pending URLs in the order of the crawl, after a place in it."""
    return await Rows(connection, PendingUrl).all(
        """
        SELECT f.depth, f.seq, f.url, f.via, f.attempts, f.not_before, p.url AS parent_url
          FROM (
            SELECT *
              FROM crawl_frontier
             WHERE job_id = %s AND (depth, seq) > (%s, %s)
             ORDER BY depth, seq
             LIMIT %s
          ) AS f
          LEFT JOIN crawl_visited p ON p.job_id = f.job_id AND p.url_hash = f.parent
         ORDER BY f.depth, f.seq
        """,
        (job_id, *after, limit),
    )


async def select_response(
    connection: Connection, job_id: UUID, url_hash: bytes
) -> ArchiveRef | None:
    """The reference to the archived response of a processed URL."""
    return await Made(connection, ArchiveRef).first(
        """
        SELECT segment, segment_offset, segment_length
          FROM crawl_visited
         WHERE job_id = %s AND url_hash = %s AND segment IS NOT NULL
        """,
        (job_id, url_hash),
    )


async def count_paths(
    connection: Connection, job_id: UUID, prefix: str, *, sample: int, limit: int
) -> list[tuple[str, str, int]]:
    """Processed URLs below a prefix by the next part of their path and outcome, of a sample.

    Keys are hashes, so the first URLs by key are a random sample.
    """
    part: LiteralString = (
        "substring(substr(url, length(%(prefix)s) + 1) FROM '^[^/?#]*/?')"
        if prefix
        else "substring(url FROM '^[a-z]+://[^/]+/')"
    )
    return await Tuples(connection).all(
        f"""
        WITH counted AS (
            SELECT {part} AS part, outcome, count(*) AS urls
              FROM (
                SELECT url, outcome
                  FROM crawl_visited
                 WHERE job_id = %(job_id)s
                 ORDER BY url_hash
                 LIMIT %(sample)s
              ) AS sampled
             WHERE starts_with(url, %(prefix)s)
             GROUP BY 1, 2
        ), shown AS (
            SELECT part
              FROM counted
             GROUP BY part
             ORDER BY right(part, 1) <> '/', part COLLATE "C"
             LIMIT %(limit)s
        )
        SELECT part, outcome, urls
          FROM counted
          JOIN shown USING (part)
         ORDER BY right(part, 1) <> '/', part COLLATE "C"
        """,
        {"job_id": job_id, "prefix": prefix, "sample": sample, "limit": limit},
    )


PAGE_ROWS = 1000


async def count_settled(
    connection: Connection, job_id: UUID, outcomes: Sequence[str], *, archived: bool
) -> int:
    """Number of settled URLs with one of the outcomes; `archived`: only those with a response."""
    return await Values(connection, int).one(
        """
        SELECT count(*)
          FROM crawl_visited
         WHERE job_id = %s AND outcome = ANY(%s) AND (segment IS NOT NULL OR NOT %s)
        """,
        (job_id, list(outcomes), archived),
    )


async def select_refs(
    connection: Connection, job_id: UUID, outcomes: Sequence[str], *, after: bytes, limit: int
) -> list[tuple[bytes, ArchiveRef]]:
    """Keys of URLs and their archived responses, in the order of the keys."""
    return await Made(connection, lambda key, *ref: (key, ArchiveRef(*ref))).all(
        """
        SELECT url_hash, segment, segment_offset, segment_length
          FROM crawl_visited
         WHERE job_id = %s AND url_hash > %s AND outcome = ANY(%s) AND segment IS NOT NULL
         ORDER BY url_hash
         LIMIT %s
        """,
        (job_id, after, list(outcomes), limit),
    )
