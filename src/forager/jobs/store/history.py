"""Statements that count jobs over time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Rows, Values


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
    return await Values(connection).all(
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


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One move, and what the job is called."""

    id: int
    job_id: UUID
    kind: str
    source_id: str | None
    at: datetime
    move: str
    from_status: str | None
    to_status: str
    actor: str
    reason: str | None


async def select_moves(
    connection: Connection,
    *,
    move: str | None,
    user_id: UUID | None,
    before: int | None,
    among: int,
    limit: int,
) -> list[TimelineRow]:
    """Moves of one kind and owner among the newest of them, newest first."""
    earlier: LiteralString = "WHERE id < %(before)s" if before is not None else ""
    of_move: LiteralString = "AND e.move = %(move)s" if move is not None else ""
    of_user: LiteralString = "AND j.user_id = %(user_id)s" if user_id is not None else ""
    return await Rows(connection, TimelineRow).all(
        f"""
        SELECT e.id, e.job_id, j.kind, j.source_id, e.at, e.move, e.from_status::text,
               e.to_status::text, e.actor, e.reason
          FROM (
            SELECT * FROM job_events {earlier} ORDER BY id DESC LIMIT %(among)s
          ) AS e
          JOIN crawl_jobs j ON j.id = e.job_id
         WHERE true {of_move} {of_user}
         ORDER BY e.id DESC
         LIMIT %(limit)s
        """,
        {"move": move, "user_id": user_id, "before": before, "among": among, "limit": limit},
    )


async def select_reach(connection: Connection, *, before: int | None, among: int) -> int | None:
    """The oldest of the newest moves up to a limit; None if there are fewer."""
    earlier: LiteralString = "WHERE id < %(before)s" if before is not None else ""
    return await Values(connection).first(
        f"SELECT id FROM job_events {earlier} ORDER BY id DESC OFFSET %(skipped)s LIMIT 1",
        {"before": before, "skipped": among - 1},
    )
