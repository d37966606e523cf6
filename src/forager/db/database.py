"""A database that is ready to use: reachable, at this Forager's schema, with a small pool."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import conninfo_to_dict

from forager.clock import wait_for_event
from forager.db import schema
from forager.db.pool import Connection, Pool, PooledConnection, cut_after, limits_transactions
from forager.db.timestamps import bound_timestamps
from forager.errors import (
    DatabaseUnavailable,
    DiskFull,
    ForagerError,
    InvalidInput,
    LeaseLost,
    StatementTimedOut,
    error_text,
)
from forager.hints import Hint, action
from forager.logs import get_logger
from forager.settings import Settings

log = get_logger("db")

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

LEASE_NOT_CURRENT = "FG001"  # raised by hold_lease()

# the driver's own words about lost lines; Forager's errors say the same, once
logging.getLogger("psycopg").addHandler(logging.NullHandler())

# a listener without notifications for this long checks its connection
SILENCE_LIMIT = 30.0
SHORT_LOOK = 0.01

__all__ = [
    "RUNNER_LIMITS",
    "Connection",
    "Database",
    "Server",
    "SessionLimits",
    "open_database",
    "pool_url",
]


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Time limits of a session, in milliseconds.

    A process that is frozen inside a transaction holds its rows until the server ends the
    session, and every SKIP LOCKED query would skip them until then. The keepalives are those of
    the server: a machine that is gone cannot end its sessions. The answer limit is ours: after it,
    the line is cut from this side. From PostgreSQL 17 on, the server limits transactions by it
    too: a process that is frozen in the middle of a batch is not idle to the server.
    """

    statement_ms: int = 60_000
    lock_ms: int = 10_000
    idle_in_transaction_ms: int = 10_000
    tcp_user_ms: int = 15_000
    answer_ms: int = 75_000

    def options(self) -> str:
        return (
            f"-c statement_timeout={self.statement_ms} -c lock_timeout={self.lock_ms}"
            f" -c idle_in_transaction_session_timeout={self.idle_in_transaction_ms}"
            f" -c tcp_user_timeout={self.tcp_user_ms} -c tcp_keepalives_idle=10"
            " -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
        )


# Commits of a runner are one round trip, so an idle moment inside one means that it is frozen.
RUNNER_LIMITS = SessionLimits(idle_in_transaction_ms=5_000)


# raised for a text too long for a tsvector, or a key too long for an index
TOO_LARGE = (psycopg.errors.ProgramLimitExceeded, psycopg.errors.StatementTooComplex)

_UNAVAILABLE = (
    psycopg.OperationalError,
    # the server ended our session while this process was frozen: the next one works
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.TransactionTimeout,
    # a standby that has not been promoted yet
    psycopg.errors.ReadOnlySqlTransaction,
)


async def _is_readable(connection: Connection, seconds: float) -> bool:
    """Wait for data from the server; psycopg itself would wake up ten times per second."""
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection.fileno(), arrived.set)
    try:
        await wait_for_event(arrived, seconds)
    finally:
        loop.remove_reader(connection.fileno())
    return arrived.is_set()


class Database:
    """A pool of connections to one PostgreSQL.

    `run` calls a function of a store with a connection of its own; a transaction is a block:

        job = await database.run(reads.select_job, job_id)
        async with database.transaction() as connection:
            await store.insert(connection, row)
    """

    def __init__(
        self,
        url: str,
        *,
        name: str = "forager",
        limits: SessionLimits | None = None,
        max_size: int = 4,
        revive: Callable[[], object] | None = None,
        pool_url: str | None = None,
    ) -> None:
        """`pool_url`: a PgBouncer in transaction mode before the server; listeners pass it by."""
        self.url = url
        self.pool_url = pool_url
        self.name = name
        self._limits = limits or SessionLimits()
        self._revive = revive
        connect = self._connect if pool_url is None else self._connect_pooled
        self._pool = Pool(connect, max_size, owns_sessions=pool_url is None)

    def with_answer_limit(self, seconds: float) -> Database:
        """The same database with another limit: connections are closed after these seconds."""
        limited = copy.copy(self)
        limited._limits = replace(self._limits, answer_ms=int(seconds * 1000))
        return limited

    def with_own_pool(self, *, name: str, limits: SessionLimits, max_size: int) -> Database:
        """The same server for another purpose, with separate connections and limits."""
        return Database(
            self.url, name=name, limits=limits, max_size=max_size, pool_url=self.pool_url
        )

    def connect_arguments(self) -> dict[str, Any]:
        return {
            "autocommit": True,
            "application_name": self.name,
            # rows are sent in it as they are, whatever the environment or the database prefers
            "client_encoding": "UTF8",
            "options": self._limits.options(),
            "connect_timeout": 10,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": self._limits.tcp_user_ms,
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection in autocommit mode; errors come out as Forager's own."""
        with translated_errors():
            async with self._pool.connection(self._limits.answer_ms / 1000) as connection:
                yield connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection in a transaction, which is committed unless the block raises."""
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def run(
        self,
        query: Callable[Concatenate[Connection, Arguments], Awaitable[Answer]],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """Call a function of a store on a connection of the pool."""
        async with self.connection() as connection:
            return await query(connection, *args, **kwargs)

    async def notifications(self, channel: str) -> AsyncGenerator[str | None]:
        """Yields None when it starts to listen, and the payload of every notification; ends when
        the line does."""
        with translated_errors():
            async with await self._connect() as connection:
                limit = self._limits.answer_ms / 1000
                with cut_after(connection, limit):
                    await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                yield None
                while True:
                    # first those that came with the response to another statement
                    async for notification in connection.notifies(timeout=SHORT_LOOK):
                        yield notification.payload
                    if await _is_readable(connection, SILENCE_LIMIT):
                        continue
                    # a half-open line is as quiet as an idle one
                    with cut_after(connection, limit):
                        await connection.execute("")

    async def _connect(self) -> Connection:
        connection = await AsyncConnection.connect(self.url, **self.connect_arguments())
        bound_timestamps(connection)
        if limits_transactions(connection):
            try:
                with cut_after(connection, self._limits.answer_ms / 1000):
                    await connection.execute(
                        sql.SQL("SET transaction_timeout = {}").format(self._limits.answer_ms)
                    )
            except BaseException:
                await connection.close()
                raise
        return connection

    async def _connect_pooled(self) -> Connection:
        assert self.pool_url is not None
        arguments = self.connect_arguments()
        del arguments["options"]  # of a session, and refused: see PooledConnection
        limits = self._limits
        given = {
            "statement_timeout": limits.statement_ms,
            "lock_timeout": limits.lock_ms,
            "idle_in_transaction_session_timeout": limits.idle_in_transaction_ms,
            "transaction_timeout": limits.answer_ms,
        }
        return await PooledConnection.open(self.pool_url, given, **arguments)

    async def revive(self) -> None:
        """Start the embedded server again if it is ours and has died; otherwise do nothing."""
        if self._revive is not None:
            await asyncio.to_thread(self._revive)


@dataclass(frozen=True, slots=True)
class Server:
    """The URL of PostgreSQL, and how to restart it if it is the embedded one."""

    url: str
    revive: Callable[[], object] | None = None
    pool_url: str | None = None


@contextmanager
def reach_server(settings: Settings, *, linger: bool = True) -> Iterator[Server]:
    """The configured server, or the embedded one, for as long as the block runs.

    The embedded one may `linger` afterwards, for the next command.
    """
    if settings.database_url is not None:
        url = _checked_url(settings.database_url.get_secret_value(), "FORAGER_DATABASE_URL")
        yield Server(url, pool_url=pool_url(settings))
        return
    if settings.database_pool_url is not None:
        raise InvalidInput(
            "FORAGER_DATABASE_POOL_URL is set, but not FORAGER_DATABASE_URL",
            hint="Set it to the PostgreSQL behind the pool: some connections need a session there.",
        )
    from forager.db.embedded import join_server

    seconds = settings.database_linger_seconds if linger else 0.0
    with join_server(settings.home, linger=seconds) as use:
        yield Server(use.url, use.ensure_running)


def pool_url(settings: Settings) -> str | None:
    """The URL of the PgBouncer in front of the server, if there is one."""
    if settings.database_pool_url is None:
        return None
    return _checked_url(settings.database_pool_url.get_secret_value(), "FORAGER_DATABASE_POOL_URL")


@asynccontextmanager
async def open_database(
    settings: Settings,
    *,
    name: str = "forager",
    max_size: int = 4,
    limits: SessionLimits | None = None,
    linger: bool = True,
) -> AsyncIterator[Database]:
    """The configured database, or the embedded one, at the current schema."""
    with reach_server(settings, linger=linger) as server:
        # once per process, before anything else runs on this loop
        with translated_errors():
            schema.ensure_current(server.url)
        database = Database(
            server.url,
            name=name,
            max_size=max_size,
            revive=server.revive,
            limits=limits,
            pool_url=server.pool_url,
        )
        async with database:
            yield database


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate the driver's errors into Forager's, whose classes say what to do."""
    try:
        yield
    except psycopg.Error as error:
        translated = _translation(error)
        if translated is None:
            raise
        raise translated from error
    except TypeError as error:
        # the driver raises it when it is cancelled while it sends a large statement
        if _is_cancelled():
            raise asyncio.CancelledError from error
        raise


def _is_cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return False
    return task is not None and task.cancelling() > 0


def _translation(error: psycopg.Error) -> ForagerError | None:
    # asked first: the driver takes a code it does not know for an operational error
    if error.sqlstate == LEASE_NOT_CURRENT:
        return LeaseLost(error.diag.message_primary)
    if isinstance(error, TOO_LARGE):
        return None  # operational to the driver, but it would be refused again and again
    if isinstance(error, psycopg.errors.DiskFull):
        return DiskFull(f"PostgreSQL has no space left: {error_text(error)}")
    if isinstance(error, psycopg.errors.DeadlockDetected):
        return DatabaseUnavailable(
            "two transactions waited for each other, and PostgreSQL canceled this one",
            hint="Nothing of it was stored. Try again.",
        )
    if isinstance(error, _UNAVAILABLE):
        canceled = isinstance(error, psycopg.errors.QueryCanceled)
        return (StatementTimedOut if canceled else DatabaseUnavailable)(
            f"the database cannot be used: {error_text(error)}",
            hint=Hint("Check FORAGER_DATABASE_URL, or run {}.", action("doctor")),
        )
    return None


def _checked_url(url: str, setting: str) -> str:
    # the URL may hold a password, also where a host or a port should be: nothing of it is repeated
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        given = {"port": "unreadable"}
    ports = str(given.get("port") or "").split(",")
    hosts = str(given.get("host") or "").split(",")
    # a socket's name may begin with @
    if any("@" in host[1:] for host in hosts) or not all(p.isdecimal() for p in ports if p):
        raise InvalidInput(
            f"{setting} is not a PostgreSQL URL",
            hint="Expected: postgresql://user:password@host:5432/database, with / and @ of the"
            " password as %2F and %40",
        )
    return url
