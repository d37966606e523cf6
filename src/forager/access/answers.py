"""Stored answers: a request that is repeated with its Idempotency-Key gets the same answer.

The answer is stored in the transaction that does the work, so that both exist or neither does.
"""

from __future__ import annotations

from uuid import UUID

import psycopg

from forager.access import store
from forager.access.caller import OtherRequest, RequestInProgress
from forager.access.store import StoredAnswer as StoredAnswer
from forager.access.store import insert_answer as insert_answer
from forager.db.database import Connection, Database
from forager.db.retention import delete_rows
from forager.services.service import in_chunks

KEPT_FOR = 24 * 3600.0
CHUNK = 5_000

_SOON = "Send it again in a moment."


async def reserve(
    connection: Connection, user_id: UUID, key: str, request_hash: bytes
) -> StoredAnswer | None:
    """Take the key for this transaction (None), or return the stored answer.

    A repetition waits while the first request is still at work.
    """
    try:
        if await store.reserve_answer(connection, user_id, key, request_hash, kept_for=KEPT_FOR):
            return None
    except psycopg.errors.LockNotAvailable:
        raise RequestInProgress(hint=_SOON) from None
    stored = await store.select_answer(connection, user_id, key)
    if stored is None:  # it expired between the two statements
        raise RequestInProgress(hint=_SOON)
    if stored.request_hash != request_hash:
        raise OtherRequest(hint="Use a new key for each request, and the same only to repeat it.")
    return stored


async def delete_expired(database: Database) -> int:
    """Delete expired answers; return their number."""
    return await in_chunks(
        database, delete_rows, rows=store.EXPIRED_ANSWERS, older_than=KEPT_FOR, limit=CHUNK
    )
