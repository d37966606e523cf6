"""Connections through PgBouncer in transaction mode: what a session keeps is kept by nobody there.

Each transaction may run in another session of the server. So nothing is prepared, and the limits
of a session, which cannot be its own, are set by each transaction for itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

from psycopg import AsyncConnection, AsyncTransaction
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

_LIMIT = """
SELECT set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true),
       set_config('idle_in_transaction_session_timeout', %s, true)
"""


class PooledConnection(AsyncConnection[TupleRow]):
    """A connection of which only transactions are one's own."""

    _limits: tuple[str, str, str]

    @classmethod
    async def open(cls, url: str, limits: tuple[int, int, int], **arguments: Any) -> Self:
        """`limits`: milliseconds for a statement, a lock, and an idle moment in a transaction."""
        connection = await cls.connect(url, prepare_threshold=None, **arguments)
        connection._limits = (str(limits[0]), str(limits[1]), str(limits[2]))
        return connection

    @asynccontextmanager
    async def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> AsyncIterator[AsyncTransaction]:
        outermost = self.info.transaction_status is TransactionStatus.IDLE
        async with super().transaction(savepoint_name, force_rollback) as transaction:
            if outermost:
                await self.execute(_LIMIT, self._limits)
            yield transaction
