"""A small pool of connections that fails at once, and with the true reason.

Callers decide how long to wait for an unreachable database. The pool has no background tasks: a
caller gets a live connection or the connection error.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

import psycopg
from psycopg import AsyncConnection, AsyncTransaction, sql
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import TupleRow

Connection = AsyncConnection[TupleRow]

# a connection that was idle for longer may be dead, and is asked before it is given out
IDLE_TRUST = 1.0
CHECK_LIMIT = 3.0
TURN_LIMIT = 30.0


class Pool:
    """Up to `size` connections; `connect` makes one.

    With `owns_sessions`, a connection is a session of the server, and the session of one that was
    cut is ended by the next: with half a batch received the server waits for the rest without a
    time limit, and holds its locks.
    """

    def __init__(
        self, connect: Callable[[], Awaitable[Connection]], size: int, *, owns_sessions: bool
    ) -> None:
        self._connect = connect
        self._size = size
        self._owns_sessions = owns_sessions
        self._turns = asyncio.Semaphore(size)
        self._idle: list[tuple[float, Connection]] = []
        self._cut_at: dict[int, float] = {}  # by the process id of the session

    @asynccontextmanager
    async def connection(self, limit: float) -> AsyncIterator[Connection]:
        """A dedicated connection; it is closed after `limit` seconds without a response."""
        await self._wait_for_turn()
        try:
            connection = await self._living()
            try:
                with cut_after(connection, limit, self._note_cut):
                    yield connection
            finally:
                await self._take_back(connection)
        finally:
            self._turns.release()

    async def close(self) -> None:
        """Close what is idle. What is in use is closed by its user's end."""
        while self._idle:
            await self._idle.pop()[1].close()

    async def _wait_for_turn(self) -> None:
        try:
            # not wait_for: in Python 3.11 it can lose a cancellation, and with it a pause
            async with asyncio.timeout(TURN_LIMIT):
                await self._turns.acquire()
        except TimeoutError:
            raise psycopg.OperationalError(
                f"all {self._size} connections were in use for {TURN_LIMIT:g} s"
            ) from None

    async def _living(self) -> Connection:
        if self._idle:
            since, connection = self._idle.pop()
            if time.monotonic() - since < IDLE_TRUST or await self._answers(connection):
                return connection
            await self.close()  # they died together: the server restarted, or the line is gone
        connection = await self._connect()
        if self._cut_at:
            await self._end_cut_sessions(connection)
        return connection

    async def _answers(self, connection: Connection) -> bool:
        try:
            with cut_after(connection, CHECK_LIMIT, self._note_cut):
                await connection.execute("")
        except psycopg.Error:
            await connection.close()
            return False
        except BaseException:
            await connection.close()
            raise
        return True

    def _note_cut(self, session: int) -> None:
        if self._owns_sessions:
            self._cut_at[session] = time.monotonic()

    async def _end_cut_sessions(self, connection: Connection) -> None:
        cut_at, self._cut_at = self._cut_at, {}
        now = time.monotonic()
        try:
            with cut_after(connection, CHECK_LIMIT, self._note_cut):
                # a later session may have the same process id
                await connection.execute(
                    """
                    SELECT pg_terminate_backend(s.pid)
                      FROM pg_stat_activity s
                      JOIN unnest(%s::int[], %s::float[]) AS cut (pid, seconds_ago) USING (pid)
                     WHERE s.usename = current_user
                       AND s.backend_start < clock_timestamp() - seconds_ago * interval '1 s'
                    """,
                    [list(cut_at), [now - at for at in cut_at.values()]],
                )
        except BaseException:
            self._cut_at = cut_at | self._cut_at
            await connection.close()
            raise

    async def _take_back(self, connection: Connection) -> None:
        if connection.closed:
            await self.close()
        elif connection.info.transaction_status is TransactionStatus.IDLE:
            self._idle.append((time.monotonic(), connection))
        else:
            await connection.close()


@contextmanager
def cut_after(
    connection: Connection, seconds: float, note: Callable[[int], None] | None = None
) -> Iterator[None]:
    """Cut the line if the block takes longer: a half-open connection never answers.

    Cancelling would not do, because the driver then waits for the server to confirm. `note` gets
    the process id of the session.
    """
    timer = asyncio.get_running_loop().call_later(seconds, _cut, connection, note)
    try:
        yield
    finally:
        timer.cancel()


def _cut(connection: Connection, note: Callable[[int], None] | None) -> None:
    with (
        contextlib.suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as line,
    ):
        if note is not None:
            note(connection.info.backend_pid)
        line.shutdown(socket.SHUT_RDWR)


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
        """Set the limits in one message, by SET: it leaves the isolation level open."""
        if self.pgconn.pipeline_status is PipelineStatus.OFF:
            await self.execute(sql.SQL("; ").join(self._limits))
        else:  # which takes one statement at a time, and waits for none
            for limit in self._limits:
                await self.execute(limit)
