"""Statements on API keys."""

from __future__ import annotations

from datetime import datetime
from typing import LiteralString
from uuid import UUID

from psycopg.rows import class_row

from forager.access.key import ApiKey, FoundKey
from forager.access.quota import Quota
from forager.db.database import Connection

_COLUMNS: LiteralString = """
    id, name, user_id, scope, created_at, expires_at, revoked_at, last_used_at,
    CASE WHEN revoked_at IS NOT NULL THEN 'revoked'
         WHEN expires_at <= now() THEN 'expired'
         ELSE 'active' END AS state
"""


async def insert_key(
    connection: Connection,
    *,
    key_id: str,
    secret_hash: bytes,
    name: str,
    user_id: UUID,
    scope: str,
    expires_in: float | None,
) -> ApiKey:
    cursor = connection.cursor(row_factory=class_row(ApiKey))
    await cursor.execute(
        f"""
        INSERT INTO api_keys (id, secret_hash, name, user_id, scope, expires_at)
        VALUES (%(id)s, %(secret_hash)s, %(name)s, %(user_id)s, %(scope)s,
                now() + %(expires_in)s::float8 * interval '1 second')
        RETURNING {_COLUMNS}
        """,
        {
            "id": key_id,
            "secret_hash": secret_hash,
            "name": name,
            "user_id": user_id,
            "scope": scope,
            "expires_in": expires_in,
        },
    )
    made = await cursor.fetchone()
    assert made is not None
    return made


async def find_key(connection: Connection, key_id: str) -> FoundKey | None:
    """A key with its hash and its owner's quota; notes every few minutes that it was used."""
    cursor = await connection.execute(
        f"""
        WITH used AS (
            UPDATE api_keys
               SET last_used_at = now()
             WHERE id = %(id)s
               AND (last_used_at IS NULL OR last_used_at < now() - interval '5 minutes')
        )
        SELECT {_COLUMNS}, secret_hash, q.active_jobs, q.pages_per_job, q.pages_per_day,
               q.requests_per_minute
          FROM api_keys
          LEFT JOIN owner_quotas q USING (user_id)
         WHERE id = %(id)s
        """,
        {"id": key_id},
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    names = ("id", "name", "user_id", "scope", "created_at", "expires_at", "revoked_at",
             "last_used_at", "state")  # fmt: skip
    key = ApiKey(**dict(zip(names, row, strict=False)))
    return FoundKey(key, row[9], Quota(*row[10:]))


async def select_key(connection: Connection, key_id: str) -> ApiKey | None:
    cursor = connection.cursor(row_factory=class_row(ApiKey))
    await cursor.execute(f"SELECT {_COLUMNS} FROM api_keys WHERE id = %s", (key_id,))
    return await cursor.fetchone()


async def select_keys(
    connection: Connection, *, before: tuple[datetime, str] | None, limit: int
) -> list[ApiKey]:
    older: LiteralString = "WHERE (created_at, id) < (%(at)s, %(id)s)" if before else ""
    at, key_id = before or (None, None)
    cursor = connection.cursor(row_factory=class_row(ApiKey))
    await cursor.execute(
        f"""
        SELECT {_COLUMNS} FROM api_keys {older}
         ORDER BY created_at DESC, id DESC LIMIT %(limit)s
        """,
        {"at": at, "id": key_id, "limit": limit},
    )
    return await cursor.fetchall()


async def revoke_key(connection: Connection, key_id: str) -> ApiKey | None:
    cursor = connection.cursor(row_factory=class_row(ApiKey))
    await cursor.execute(
        f"""
        UPDATE api_keys SET revoked_at = coalesce(revoked_at, now())
         WHERE id = %s RETURNING {_COLUMNS}
        """,
        (key_id,),
    )
    return await cursor.fetchone()


async def any_key(connection: Connection) -> bool:
    cursor = await connection.execute("SELECT FROM api_keys LIMIT 1")
    return await cursor.fetchone() is not None
