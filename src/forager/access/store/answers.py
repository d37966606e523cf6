"""Statements on requests that were answered once and are answered again."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    request_hash: bytes
    status: int
    answer: bytes
    sealed: bool


async def reserve_answer(
    connection: Connection, user_id: UUID, key: str, request_hash: bytes, *, kept_for: float
) -> bool:
    """Take a key for this transaction; False if it was answered already.

    While another transaction has it, this waits for that one to end.
    """
    cursor = await connection.execute(
        """
        INSERT INTO idempotency_keys AS k (user_id, key, request_hash)
        VALUES (%(user_id)s, %(key)s, %(request_hash)s)
        ON CONFLICT (user_id, key) DO UPDATE
           SET request_hash = excluded.request_hash, status = NULL, answer = NULL,
               sealed = false, created_at = now()
         WHERE k.created_at < now() - %(kept_for)s * interval '1 second'
        """,
        {"user_id": user_id, "key": key, "request_hash": request_hash, "kept_for": kept_for},
    )
    return cursor.rowcount == 1


async def insert_answer(
    connection: Connection, user_id: UUID, key: str, *, status: int, answer: bytes, sealed: bool
) -> None:
    await connection.execute(
        """
        UPDATE idempotency_keys SET status = %s, answer = %s, sealed = %s
         WHERE user_id = %s AND key = %s
        """,
        (status, answer, sealed, user_id, key),
    )


async def select_answer(connection: Connection, user_id: UUID, key: str) -> StoredAnswer | None:
    cursor = connection.cursor(row_factory=class_row(StoredAnswer))
    await cursor.execute(
        """
        SELECT request_hash, status, answer, sealed
          FROM idempotency_keys
         WHERE user_id = %s AND key = %s
        """,
        (user_id, key),
    )
    return await cursor.fetchone()


async def delete_expired_answers(connection: Connection, *, older_than: float, limit: int) -> int:
    cursor = await connection.execute(
        """
        DELETE FROM idempotency_keys
         WHERE ctid IN (
            SELECT ctid FROM idempotency_keys
             WHERE created_at < now() - %s * interval '1 second'
             LIMIT %s
               FOR UPDATE SKIP LOCKED
         )
        """,
        (older_than, limit),
    )
    return cursor.rowcount
