"""The SQL of explanations: one URL in the tables of one or several crawls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from forager.crawl.settlement import PastOutcome, UrlRecord
from forager.db.database import Connection
from forager.db.rows import Rows, Tuples


async def select_recent_crawls(
    connection: Connection, user_id: UUID | None, *, per_source: int
) -> list[tuple[UUID, str]]:
    """The newest crawls of each source, newest first, and the URL at which its source begins."""
    of_user: LiteralString = "AND user_id = %(user_id)s" if user_id is not None else ""
    return await Tuples(connection).all(
        f"""
        SELECT j.id, coalesce(s.base_url, '')
          FROM (SELECT id, source_id, created_at,
                       row_number() OVER (PARTITION BY source_id
                                          ORDER BY created_at DESC, id DESC) AS place
                  FROM crawl_jobs
                 WHERE kind = 'crawl' {of_user}) j
          LEFT JOIN sources s ON s.id = j.source_id
         WHERE j.place <= %(per_source)s
         ORDER BY j.created_at DESC, j.id DESC
        """,
        {"user_id": user_id, "per_source": per_source},
    )


async def select_history(
    connection: Connection, jobs: Sequence[UUID], key: bytes
) -> list[PastOutcome]:
    """The outcomes of a URL in these crawls, in their order."""
    return await Rows(connection, PastOutcome).all(
        """
        SELECT job_id, outcome, reason, detail, http_status, attempts, settled_at
          FROM crawl_visited
         WHERE job_id = ANY(%(jobs)s) AND url_hash = %(key)s
         ORDER BY array_position(%(jobs)s::uuid[], job_id)
        """,
        {"jobs": list(jobs), "key": key},
    )


async def select_settled(
    connection: Connection, jobs: Sequence[UUID], key: bytes
) -> UrlRecord | None:
    """The URL in the first of these crawls that has settled it."""
    return await Rows(connection, UrlRecord).first(
        """
        SELECT job_id, url, outcome, reason, detail, duplicate_of, carried_over, http_status,
               depth, parent, via, attempts, rendering, NULL::timestamptz AS not_before
          FROM crawl_visited
         WHERE job_id = ANY(%(jobs)s) AND url_hash = %(key)s
         ORDER BY array_position(%(jobs)s::uuid[], job_id)
         LIMIT 1
        """,
        {"jobs": list(jobs), "key": key},
    )


async def select_pending(
    connection: Connection, jobs: Sequence[UUID], key: bytes
) -> UrlRecord | None:
    """The entry of a pending URL; reads whole frontiers, which have no index by URL."""
    return await Rows(connection, UrlRecord).first(
        """
        SELECT job_id, url, 'pending' AS outcome, NULL::text AS reason, NULL::text AS detail,
               NULL::text AS duplicate_of, false AS carried_over, NULL::smallint AS http_status,
               depth, parent, via, attempts, NULL::text AS rendering, not_before
          FROM crawl_frontier
         WHERE job_id = ANY(%(jobs)s) AND url_hash = %(key)s
         ORDER BY array_position(%(jobs)s::uuid[], job_id)
         LIMIT 1
        """,
        {"jobs": list(jobs), "key": key},
    )


async def select_ancestors(
    connection: Connection, job_id: UUID, parent: bytes | None, *, limit: int
) -> list[tuple[str, str]]:
    """The URLs that led to a page, nearest first, and how each was found itself."""
    return await Tuples(connection).all(
        """
        WITH RECURSIVE way AS (
            SELECT url, via, parent, 1 AS step
              FROM crawl_visited WHERE job_id = %(job_id)s AND url_hash = %(parent)s
            UNION ALL
            SELECT v.url, v.via, v.parent, way.step + 1
              FROM way
              JOIN crawl_visited v ON v.job_id = %(job_id)s AND v.url_hash = way.parent
             WHERE way.step < %(limit)s
        )
        SELECT url, via FROM way ORDER BY step
        """,
        {"job_id": job_id, "parent": parent, "limit": limit},
    )
