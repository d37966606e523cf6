"""Statements that count jobs over time."""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

from forager.db.database import Connection


async def count_by_minute(
    connection: Connection, *, minutes: int, user_id: UUID | None
) -> list[tuple[int, int, int]]:
    """(minutes ago, jobs added, jobs finished) of each minute that had any."""
    of_user: LiteralString = "AND user_id = %(user_id)s" if user_id else ""
    cursor = await connection.execute(
        f"""
        SELECT floor(extract(epoch FROM now() - at) / 60)::int, sum(added)::int, sum(finished)::int
          FROM (
            SELECT created_at AS at, 1 AS added, 0 AS finished
              FROM crawl_jobs
             WHERE created_at > now() - %(minutes)s * interval '1 minute' {of_user}
            UNION ALL
            SELECT completed_at, 0, 1
              FROM crawl_jobs
             WHERE completed_at > now() - %(minutes)s * interval '1 minute'
               AND status IN ('completed', 'failed', 'cancelled') {of_user}
          ) AS moves
         GROUP BY 1
        """,
        {"minutes": minutes, "user_id": user_id},
    )
    return await cursor.fetchall()


async def select_recent(
    connection: Connection, *, minutes: int, limit: int, user_id: UUID | None
) -> list[UUID]:
    """Jobs that were at work lately: those that hold a worker, are paused, or just finished."""
    of_user: LiteralString = "AND user_id = %(user_id)s" if user_id else ""
    cursor = await connection.execute(
        f"""
        (SELECT id FROM crawl_jobs
          WHERE status IN ('processing', 'paused') {of_user}
          ORDER BY created_at DESC LIMIT %(limit)s)
        UNION
        (SELECT id FROM crawl_jobs
          WHERE status IN ('completed', 'failed', 'cancelled')
            AND completed_at > now() - %(minutes)s * interval '1 minute' {of_user}
          ORDER BY completed_at DESC LIMIT %(limit)s)
        """,
        {"minutes": minutes, "limit": limit, "user_id": user_id},
    )
    return [row[0] for row in await cursor.fetchall()]
