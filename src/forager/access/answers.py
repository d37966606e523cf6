"""Answers that are given again: one for each key that a caller thought of.

All of it happens in the transaction that does the work, so that there is either both or neither.
"""

from __future__ import annotations

from uuid import UUID

import psycopg

from forager.access import store
from forager.access.errors import OtherRequest, StillAnswering
from forager.access.store.answers import StoredAnswer
from forager.db.database import Connection, Database
from forager.services.chunks import in_chunks

__all__ = ["StoredAnswer", "delete_expired", "remember", "reserve"]

KEPT_FOR = 24 * 3600.0
CHUNK = 5_000

_SOON = "Send it again in a moment."


async def reserve(
    connection: Connection, user_id: UUID, key: str, request_hash: bytes
) -> StoredAnswer | None:
    """Take the key for this transaction (None), or find what was answered before.

    Whoever comes while the first is still at work waits for it.
    """
    try:
        if await store.reserve_answer(connection, user_id, key, request_hash, kept_for=KEPT_FOR):
            return None
    except psycopg.errors.LockNotAvailable:
        raise StillAnswering(hint=_SOON) from None
    stored = await store.select_answer(connection, user_id, key)
    if stored is None:  # a day old, it went between the two statements
        raise StillAnswering(hint=_SOON)
    if stored.request_hash != request_hash:
        raise OtherRequest(hint="Use a new key for each request, and the same only to repeat it.")
    return stored


async def remember(
    connection: Connection, user_id: UUID, key: str, *, status: int, answer: bytes, sealed: bool
) -> None:
    await store.insert_answer(connection, user_id, key, status=status, answer=answer, sealed=sealed)


async def delete_expired(database: Database) -> int:
    """Delete answers that are no longer repeated; return their number."""
    return await in_chunks(database, store.delete_expired_answers, older_than=KEPT_FOR, limit=CHUNK)
