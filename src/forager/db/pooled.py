"""Connections through PgBouncer in transaction mode: what a session keeps is kept by nobody there.

Each transaction may run in another session of the server. So nothing is prepared, and the limits
of a session, which cannot be its own, are set by each transaction for itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

from psycopg import AsyncConnection, AsyncTransaction, sql
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import TupleRow

LIMITS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")


class PooledConnection(AsyncConnection[TupleRow]):
    """A connection of which only transactions are one's own."""

    _limits: tuple[sql.Composed, ...]

    @classmethod
    async def open(cls, url: str, limits: tuple[int, int, int], **arguments: Any) -> Self:
        """`limits`: milliseconds, in the order of LIMITS."""
        connection = await cls.connect(url, prepare_threshold=None, **arguments)
        connection._limits = tuple(
            sql.SQL("SET LOCAL {} = {}").format(sql.Identifier(name), limit)
            for name, limit in zip(LIMITS, limits, strict=True)
        )
        return connection

    @asynccontextmanager
    async def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> AsyncIterator[AsyncTransaction]:
        outermost = self.info.transaction_status is TransactionStatus.IDLE
        async with super().transaction(savepoint_name, force_rollback) as transaction:
            if outermost:
                await self._set_limits()
            yield transaction

    async def _set_limits(self) -> None:
        """In one message. SET, and no query: the isolation level can still be chosen after it."""
        if self.pgconn.pipeline_status is PipelineStatus.OFF:
            await self.execute(sql.SQL("; ").join(self._limits))
        else:  # which takes one statement at a time, and waits for none
            for limit in self._limits:
                await self.execute(limit)
