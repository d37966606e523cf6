"""SQL of schedules: when sources are refreshed."""

from __future__ import annotations

from datetime import datetime

from psycopg.rows import scalar_row

from forager.db.database import Connection
from forager.documents.schedule import Schedule


async def select_now(connection: Connection) -> datetime:
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute("SELECT now()")
    now = await cursor.fetchone()
    assert isinstance(now, datetime)
    return now


async def set_schedule(
    connection: Connection, source_id: str, schedule: Schedule, first: datetime | None
) -> None:
    await connection.execute(
        """
        UPDATE sources
           SET refresh_every = %s, refresh_cron = %s, next_refresh_at = %s, updated_at = now()
         WHERE id = %s
        """,
        (schedule.every, schedule.cron, first, source_id),
    )


async def select_due(connection: Connection, limit: int) -> list[tuple[str, datetime]]:
    """Sources whose refresh is due, and since when."""
    cursor = await connection.execute(
        """
        SELECT id, next_refresh_at
          FROM sources
         WHERE next_refresh_at <= now() AND deleted_at IS NULL
         ORDER BY next_refresh_at
         LIMIT %s
        """,
        (limit,),
    )
    return [(row[0], row[1]) for row in await cursor.fetchall()]


async def advance(
    connection: Connection, source_id: str, due: datetime, following: datetime | None
) -> bool:
    """Move on to the next time, unless somebody else did, or changed the schedule."""
    cursor = await connection.execute(
        "UPDATE sources SET next_refresh_at = %s WHERE id = %s AND next_refresh_at = %s",
        (following, source_id, due),
    )
    return cursor.rowcount > 0
