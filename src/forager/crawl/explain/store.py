"""The SQL of explanations: one URL in the tables of one or several crawls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Rows, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """A row of the visited or the frontier table; the outcome of a pending one is `pending`."""

    job_id: UUID
    url: str
    outcome: str
    reason: str | None
    detail: str | None
    duplicate_of: str | None
    carried_over: bool
    http_status: int | None
    depth: int
    parent: bytes | None
    via: str
    attempts: int
    settled_at: datetime | None
    rendering: str | None
    not_before: datetime | None


async def select_recent_crawls(
    connection: Connection, user_id: UUID | None, *, limit: int
) -> list[UUID]:
    of_user: LiteralString = "AND user_id = %(user_id)s" if user_id is not None else ""
    return await Values(connection).all(
        f"""
        SELECT id FROM crawl_jobs
         WHERE kind = 'crawl' {of_user}
         ORDER BY created_at DESC, id DESC
         LIMIT %(limit)s
        """,
        {"user_id": user_id, "limit": limit},
    )


async def select_settled(connection: Connection, jobs: Sequence[UUID], key: bytes) -> list[Fate]:
    return await Rows(connection, Fate).all(
        """
        SELECT job_id, url, outcome, reason, detail, duplicate_of, carried_over, http_status,
               depth, parent, via, attempts, settled_at, rendering, NULL::timestamptz AS not_before
          FROM crawl_visited
         WHERE job_id = ANY(%s) AND url_hash = %s
        """,
        (list(jobs), key),
    )


async def select_waiting(connection: Connection, jobs: Sequence[UUID], key: bytes) -> list[Fate]:
    """Reads through the frontiers of these crawls: they have no index by URL, to stay cheap."""
    return await Rows(connection, Fate).all(
        """
        SELECT job_id, url, 'pending' AS outcome, NULL::text AS reason, NULL::text AS detail,
               NULL::text AS duplicate_of, false AS carried_over, NULL::smallint AS http_status,
               depth, parent, via, attempts, NULL::timestamptz AS settled_at,
               NULL::text AS rendering, not_before
          FROM crawl_frontier
         WHERE job_id = ANY(%s) AND url_hash = %s
        """,
        (list(jobs), key),
    )


async def select_ancestors(
    connection: Connection, job_id: UUID, parent: bytes, *, limit: int
) -> list[tuple[str, str]]:
    """The URLs that led to a page, nearest first, and how each was found itself."""
    cursor = await connection.execute(
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
    return await cursor.fetchall()
