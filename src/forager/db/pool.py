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
from typing import Any, LiteralString, NamedTuple, Self

import psycopg
from psycopg import AsyncConnection, AsyncTransaction, sql
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import TupleRow

from forager.db.timestamps import bound_timestamps

Connection = AsyncConnection[TupleRow]

# a connection that was idle for longer may be dead, and is asked before it is given out
IDLE_TRUST = 1.0
# one that was idle for longer is closed when another one comes back: a session costs 2 to 7 MB
IDLE_LIMIT = 60.0
CHECK_LIMIT = 3.0
TURN_LIMIT = 30.0


class ServerSession(NamedTuple):
    """A connection, and what identifies it on the server."""

    connection: Connection
    process_id: int
    opened_at: float


class Pool:
    """Up to `size` connections; `connect` makes one.

    With `owns_sessions`, a connection is a session of the server, and the session of one that broke
    is ended by the next user of the pool: with half a batch received, the server waits for the rest
    without a time limit, and holds its locks.
    """

    def __init__(
        self, connect: Callable[[], Awaitable[Connection]], size: int, *, owns_sessions: bool
    ) -> None:
        self._connect = connect
        self._size = size
        self._owns_sessions = owns_sessions
        self._turns = asyncio.Semaphore(size)
        self._idle: list[tuple[float, ServerSession]] = []
        self._broken: list[ServerSession] = []

    @asynccontextmanager
    async def connection(self, limit: float) -> AsyncIterator[Connection]:
        """A dedicated connection; it is closed after `limit` seconds without a response."""
        await self._wait_for_turn()
        try:
            session = await self._living()
            try:
                with cut_after(session.connection, limit):
                    yield session.connection
            finally:
                await self._take_back(session)
        finally:
            self._turns.release()

    async def close(self) -> None:
        """Close what is idle. What is in use is closed by its user's end."""
        while self._idle:
            await self._idle.pop()[1].connection.close()

    async def _wait_for_turn(self) -> None:
        if not self._turns.locked():  # a time limit costs more than a free turn
            await self._turns.acquire()
            return
        try:
            # not wait_for: in Python 3.11 it can lose a cancellation, and with it a pause
            async with asyncio.timeout(TURN_LIMIT):
                await self._turns.acquire()
        except TimeoutError:
            raise psycopg.OperationalError(
                f"all {self._size} connections were in use for {TURN_LIMIT:g} s"
            ) from None

    async def _living(self) -> ServerSession:
        session = await self._living_idle()
        if session is None:
            connection = await self._connect()
            session = ServerSession(connection, connection.info.backend_pid, time.monotonic())
        if self._broken:
            await self._end_broken(session)
        return session

    async def _living_idle(self) -> ServerSession | None:
        if not self._idle:
            return None
        since, session = self._idle.pop()
        if time.monotonic() - since >= IDLE_TRUST:
            try:
                await self._check(session, "")
            except psycopg.Error:
                await self.close()  # they died together: the server restarted, or the line is gone
                return None
        return session

    async def _end_broken(self, session: ServerSession) -> None:
        broken, self._broken = self._broken, []
        now = time.monotonic()
        try:
            # a later session may have the same process id
            await self._check(
                session,
                """
                SELECT pg_terminate_backend(s.pid)
                  FROM pg_stat_activity s
                  JOIN unnest(%s::int[], %s::float[]) AS broken (pid, age) USING (pid)
                 WHERE s.usename = current_user
                   AND s.backend_start < clock_timestamp() - age * interval '1 s'
                """,
                [each.process_id for each in broken],
                [now - each.opened_at for each in broken],
            )
        except psycopg.errors.InsufficientPrivilege:
            pass  # an administrator revoked it; the server's own timeouts end them
        except BaseException:
            self._broken += broken
            raise

    async def _check(
        self, session: ServerSession, statement: LiteralString, *values: object
    ) -> None:
        """Run a short statement; the connection is dropped if it fails, unless it is refused."""
        try:
            with cut_after(session.connection, CHECK_LIMIT):
                await session.connection.execute(statement, values or None)
        except psycopg.errors.InsufficientPrivilege:
            raise
        except BaseException:
            await self._drop(session)
            raise

    async def _take_back(self, session: ServerSession) -> None:
        if session.connection.info.transaction_status is TransactionStatus.IDLE:
            now = time.monotonic()
            self._idle.append((now, session))
            while now - self._idle[0][0] > IDLE_LIMIT:  # the most recent ones are used first
                await self._idle.pop(0)[1].connection.close()
            return
        if session.connection.closed:
            await self.close()
        await self._drop(session)

    async def _drop(self, session: ServerSession) -> None:
        await session.connection.close()
        if self._owns_sessions:
            self._broken.append(session)


@contextmanager
def cut_after(connection: Connection, seconds: float) -> Iterator[None]:
    """Cut the line if the block takes longer: a half-open connection never answers.

    Cancelling would not do, because the driver then waits for the server to confirm.
    """
    timer = asyncio.get_running_loop().call_later(seconds, _cut, connection)
    try:
        yield
    finally:
        timer.cancel()


def _cut(connection: Connection) -> None:
    with (
        contextlib.suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as line,
    ):
        line.shutdown(socket.SHUT_RDWR)


def limits_transactions(connection: Connection) -> bool:
    """Whether the server knows `transaction_timeout`."""
    return connection.info.server_version >= 170_000


class PooledConnection(AsyncConnection[TupleRow]):
    """A connection of which only transactions are one's own."""

    _limits: tuple[sql.Composed, ...]

    @classmethod
    async def open(cls, url: str, limits: dict[str, int], **arguments: Any) -> Self:
        """`limits`: milliseconds by setting."""
        connection = await cls.connect(url, prepare_threshold=None, **arguments)
        bound_timestamps(connection)
        connection._limits = tuple(
            sql.SQL("SET LOCAL {} = {}").format(sql.Identifier(name), limit)
            for name, limit in limits.items()
            if name != "transaction_timeout" or limits_transactions(connection)
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
