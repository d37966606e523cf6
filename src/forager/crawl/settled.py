"""What became of the URLs of a job, one page of them at a time."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from uuid import UUID

from forager.crawl.export import store
from forager.crawl.settlement import Outcome, SettledUrl
from forager.db.cursor import Page
from forager.db.database import Database
from forager.errors import InvalidInput

MAX_LIST = 1000
KEY_BYTES = 16


async def list_settled(
    database: Database,
    job_id: UUID,
    *,
    outcomes: Sequence[Outcome] = tuple(Outcome),
    cursor: str | None = None,
    limit: int = 50,
) -> Page[SettledUrl]:
    """URLs of a job that are settled, in the order of their keys, which is no order to people."""
    if not 1 <= limit <= MAX_LIST:
        raise InvalidInput(f"a limit must be from 1 to {MAX_LIST}, not {limit}")
    after = b"" if cursor is None else _decode(cursor)
    async with database.connection() as connection:
        found = await store.select_settled(
            connection, job_id, [o.value for o in outcomes], after=after, limit=limit + 1
        )
    more = len(found) > limit
    return Page(found[:limit], _encode(found[limit - 1].url_hash) if more else None)


def _encode(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode()


def _decode(cursor: str) -> bytes:
    try:
        key = base64.urlsafe_b64decode(cursor.encode())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidInput(
            "the cursor is not one that a list gave", hint="Start again without a cursor."
        )
    return key
