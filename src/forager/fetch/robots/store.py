"""The SQL of robots.txt files."""

from __future__ import annotations

from datetime import datetime

from forager.db.database import Connection
from forager.fetch.robots.cache import CachedRobots


async def select_robots(
    connection: Connection, origin: str
) -> tuple[CachedRobots | None, datetime]:
    """The stored robots.txt of an origin, and the current time."""
    cursor = await connection.execute(
        """
        SELECT clock_timestamp(), r.body, r.fetched_at, r.expires_at, r.status
          FROM (VALUES (%s::text)) AS wanted (origin)
          LEFT JOIN robots_files r ON r.origin = wanted.origin
        """,
        (origin,),
    )
    row = await cursor.fetchone()
    assert row is not None
    now, *kept = row
    return (CachedRobots(*kept) if kept[0] is not None else None), now


async def upsert_robots(connection: Connection, origin: str, kept: CachedRobots) -> None:
    """Store a robots.txt for all processes."""
    await connection.execute(
        """
        INSERT INTO robots_files AS known (origin, status, body, fetched_at, expires_at)
        VALUES (%(origin)s, %(status)s, %(body)s, %(fetched_at)s, %(expires_at)s)
        ON CONFLICT (origin) DO UPDATE
           SET status = excluded.status,
               body = excluded.body,
               fetched_at = excluded.fetched_at,
               expires_at = excluded.expires_at
        """,
        {
            "origin": origin,
            "status": kept.status,
            "body": kept.body,
            "fetched_at": kept.fetched_at,
            "expires_at": kept.expires_at,
        },
    )
