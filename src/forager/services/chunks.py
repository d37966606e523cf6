"""Long clean-ups in chunks, so that no statement and no connection is held for long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from forager.db.database import Database


async def in_chunks(
    database: Database, statement: Callable[..., Awaitable[int]], *, limit: int, **arguments: Any
) -> int:
    """Repeat a statement of at most `limit` rows until it affects fewer; return the total."""
    total = 0
    while True:
        async with database.connection() as connection:
            rows = await statement(connection, limit=limit, **arguments)
        total += rows
        if rows < limit:
            return total
