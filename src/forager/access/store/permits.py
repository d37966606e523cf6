"""Statements on how many requests an owner has left in this minute.

One moment says it all: the one when everything that was taken is given back. It stands beside the
answers that are given again, under a key that no request can have (spaces are not allowed in one),
and is deleted with them when it is old.
"""

from __future__ import annotations

from uuid import UUID

from forager.db.database import Connection

KEY = "requests of a minute"


async def take_permits(connection: Connection, user_id: UUID, *, seconds: float) -> bool:
    """Take as many as are given back in so many seconds; False if fewer than that are left."""
    cursor = await connection.execute(
        """
        INSERT INTO idempotency_keys AS k (user_id, key, request_hash, created_at)
        VALUES (%(user_id)s, %(key)s, '', now() + %(seconds)s * interval '1 second')
        ON CONFLICT (user_id, key) DO UPDATE
           SET created_at = greatest(k.created_at, now()) + %(seconds)s * interval '1 second'
         WHERE greatest(k.created_at, now()) + %(seconds)s * interval '1 second'
               <= now() + interval '60.001 seconds'
        """,
        {"user_id": user_id, "key": KEY, "seconds": seconds},
    )
    return cursor.rowcount == 1


async def select_seconds_taken(connection: Connection, user_id: UUID) -> float:
    """How long it takes until everything is given back."""
    cursor = await connection.execute(
        """
        SELECT greatest(0, extract(epoch FROM created_at - now()))::float8
          FROM idempotency_keys
         WHERE user_id = %s AND key = %s
        """,
        (user_id, KEY),
    )
    row = await cursor.fetchone()
    return 0.0 if row is None else float(row[0])
