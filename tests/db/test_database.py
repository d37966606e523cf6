"""Connections: given out alive, cut when they do not answer, and errors in Forager's words."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress

import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr

from forager.db import pool
from forager.db.database import (
    Connection,
    Database,
    SessionLimits,
    open_database,
    translated_errors,
)
from forager.errors import DatabaseUnavailable, DiskFull, InvalidInput, LeaseLost
from forager.settings import Settings
from support.flaky_line import FlakyLine
from support.sql import execute
from support.waiting import eventually


async def backend(database: Database) -> int:
    async with database.connection() as connection:
        return connection.info.backend_pid


def end_sessions(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def test_connections_are_used_again(database: Database) -> None:
    assert await backend(database) == await backend(database)


async def test_connections_that_died_while_idle_are_replaced(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "IDLE_TRUST", 0.0)
    async with database.connection(), database.connection():
        pass
    await asyncio.to_thread(end_sessions, database_url)
    assert await execute(database, "SELECT 1") == [(1,)]


async def test_connections_that_are_no_longer_needed_are_closed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with database.connection() as first, database.connection() as second:
        pass
    monkeypatch.setattr(pool, "IDLE_LIMIT", 0.0)
    assert await backend(database) == first.info.backend_pid
    assert second.closed
    assert not first.closed


async def test_a_connection_left_in_a_transaction_is_not_used_again(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute("BEGIN")
        first = connection.info.backend_pid
    assert await backend(database) != first


async def test_no_more_connections_than_allowed(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "TURN_LIMIT", 0.05)
    async with Database(database_url, max_size=1) as database, database.connection():
        with pytest.raises(DatabaseUnavailable, match="all 1 connections were in use"):
            await backend(database)
    assert await backend(database)
    await database.__aexit__()


async def test_who_is_cancelled_gives_its_connection_back(database_url: str) -> None:
    async with Database(database_url, max_size=1) as database:
        started = asyncio.Event()

        async def wait() -> None:
            async with database.connection() as connection:
                started.set()
                await connection.execute("SELECT pg_sleep(600)")

        task = asyncio.ensure_future(wait())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await execute(database, "SELECT 1") == [(1,)]


async def test_a_line_without_an_answer_is_cut(database_url: str) -> None:
    async with Database(database_url) as unlimited:
        database = unlimited.with_answer_limit(0.1)
        with pytest.raises(DatabaseUnavailable):
            await execute(database, "SELECT pg_sleep(600)")
        assert await execute(unlimited, "SELECT 1") == [(1,)]


@pytest.mark.parametrize("is_cut", [True, False])
async def test_the_session_of_a_broken_line_is_ended_and_its_locks_with_it(
    database: Database, database_url: str, is_cut: bool
) -> None:
    """The server has received half a batch, and none of its limits ends its wait for the rest."""
    await execute(database, "CREATE TABLE locked ()")
    locks = "SELECT 1 FROM pg_locks WHERE relation = 'locked'::regclass"
    async with FlakyLine(database_url) as line, Database(line.url) as flaky:
        with suppress(DatabaseUnavailable):
            async with flaky.connection() as connection:
                await connection.execute("BEGIN")
                connection.pgconn.enter_pipeline_mode()
                connection.pgconn.send_query_params(b"LOCK TABLE locked", None)
                connection.pgconn.flush()
                await eventually(lambda: execute(database, locks))
                line.silence()
                await execute(flaky, "SELECT 1")  # on another line, which works
                with pool.cut_after(connection, 0):
                    while is_cut:
                        await asyncio.sleep(0.01)
                        connection.pgconn.consume_input()
                raise DatabaseUnavailable("left in the middle of a batch")
        await execute(flaky, "DROP TABLE locked")


async def test_sessions_that_may_not_be_ended_do_not_spoil_the_others(
    database: Database, database_url: str
) -> None:
    """An administrator has revoked the function that ends sessions."""
    with restricted_role(database_url):
        async with FlakyLine(database_url) as line, Database(line.url) as unlimited:
            flaky = unlimited.with_answer_limit(0.5)
            assert await execute(flaky, "SELECT current_user::text") == [("restricted",)]
            with suppress(DatabaseUnavailable):
                async with flaky.connection() as connection:
                    line.silence()
                    await connection.execute("SELECT 1")
            for _ in range(2):
                assert await execute(flaky, "SELECT 1") == [(1,)]


@contextmanager
def restricted_role(url: str) -> Iterator[None]:
    """Let new sessions have a role that may not end any session."""
    function = "EXECUTE ON FUNCTION pg_terminate_backend(integer, bigint)"
    with psycopg.connect(url, autocommit=True) as admin:
        name = sql.Identifier(admin.info.dbname)
        admin.execute("CREATE ROLE restricted")
        admin.execute(f"REVOKE {function} FROM PUBLIC")
        admin.execute(sql.SQL("ALTER DATABASE {} SET role = restricted").format(name))
        try:
            yield
        finally:
            admin.execute(sql.SQL("ALTER DATABASE {} RESET role").format(name))
            admin.execute(f"GRANT {function} TO PUBLIC")
            admin.execute("DROP ROLE restricted")


async def test_a_process_that_is_frozen_in_the_middle_of_a_batch_loses_its_session(
    database: Database, database_url: str
) -> None:
    """The server waits for the rest of the batch, and does not count this as idle."""
    frozen = await Database(database_url, limits=SessionLimits(answer_ms=3_000))._connect()
    session = frozen.info.backend_pid
    if not pool.limits_transactions(frozen):
        pytest.skip("PostgreSQL limits transactions from version 17 on")
    await frozen.execute("BEGIN")
    frozen.pgconn.enter_pipeline_mode()
    frozen.pgconn.send_query_params(b"SELECT 1", None)
    frozen.pgconn.flush()
    ended = f"SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = {session})"
    await eventually(lambda: execute(database, ended))
    await frozen.close()


async def test_a_listener_on_a_silent_line_is_cut(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FlakyLine(database_url) as line:
        database = Database(line.url).with_answer_limit(0.1)
        connect = database._connect

        async def connect_in_vain() -> Connection:
            connection = await connect()
            line.silence()
            return connection

        monkeypatch.setattr(database, "_connect", connect_in_vain)
        with pytest.raises(DatabaseUnavailable):
            await anext(database.notifications("news"))


async def test_the_server_ends_sessions_that_wait_too_long(database_url: str) -> None:
    limits = SessionLimits(statement_ms=100, lock_ms=100, idle_in_transaction_ms=100)
    async with Database(database_url, limits=limits) as database:
        with pytest.raises(DatabaseUnavailable, match="statement timeout"):
            await execute(database, "SELECT pg_sleep(600)")
        with pytest.raises(DatabaseUnavailable):
            await idle_in_transaction(database)


async def idle_in_transaction(database: Database) -> None:
    async with database.transaction() as connection:
        pid = connection.info.backend_pid
        await connection.execute("SELECT 1")
        while await execute(database, f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"):
            await asyncio.sleep(0.01)
        await connection.execute("SELECT 1")


async def test_notifications_are_heard_until_the_line_is_gone(
    database: Database, database_url: str
) -> None:
    async with aclosing(database.notifications("news")) as notifications:
        await anext(notifications)
        await execute(database, "NOTIFY news")
        await anext(notifications)
        await asyncio.to_thread(end_sessions, database_url)
        with pytest.raises(DatabaseUnavailable):
            await anext(notifications)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("FG001", LeaseLost),
        ("53100", DiskFull),
        ("25006", DatabaseUnavailable),
        ("57P01", DatabaseUnavailable),
        ("40P01", DatabaseUnavailable),
    ],
)
async def test_errors_come_out_as_foragers_own(
    database: Database, code: str, expected: type[Exception]
) -> None:
    with pytest.raises(expected):
        await execute(database, f"DO $$ BEGIN RAISE 'test' USING ERRCODE = '{code}'; END $$")


def test_errors_of_statements_are_left_alone() -> None:
    with pytest.raises(psycopg.ProgrammingError), translated_errors():
        raise psycopg.ProgrammingError("a bug")


async def test_a_database_that_is_not_there_is_said_at_once(settings: Settings) -> None:
    nowhere = SecretStr("postgresql://127.0.0.1:1/nothing")
    with pytest.raises(DatabaseUnavailable, match="Connection refused"):
        async with open_database(settings.model_copy(update={"database_url": nowhere})):
            raise AssertionError("must not open")


@pytest.mark.parametrize(
    "place", ["secret@[broken/x?nonsense=1", "secret/x@127.0.0.1:1/db", "x@secret@127.0.0.1:1/db"]
)
@pytest.mark.parametrize("name", ["database_url", "database_pool_url"])
async def test_a_url_that_is_none_does_not_give_its_password_away(
    settings: Settings, name: str, place: str
) -> None:
    some = SecretStr("postgresql://127.0.0.1:1/nothing")
    nonsense = {"database_url": some, name: SecretStr(f"postgresql://user:{place}")}
    with pytest.raises(InvalidInput, match="is not a PostgreSQL URL") as refusal:
        async with open_database(settings.model_copy(update=nonsense)):
            raise AssertionError("must not open")
    assert "secret" not in f"{refusal.value} {refusal.value.hint}"


async def test_what_is_too_large_is_no_reason_to_wait(database: Database) -> None:
    """A permanent refusal is not retried as if the database were unavailable."""
    words = "SELECT to_tsvector('simple', string_agg(md5(n::text), ' '))"
    async with database.connection() as connection:
        with pytest.raises(psycopg.errors.ProgramLimitExceeded), translated_errors():
            await connection.execute(f"{words} FROM generate_series(1, 50000) n")


@pytest.mark.parametrize("inside", ["connection", "transaction"])
async def test_a_cancellation_arrives_as_one_also_while_a_large_statement_is_sent(
    database: Database, inside: str
) -> None:
    begun = asyncio.Event()

    async def ask() -> None:
        async with getattr(database, inside)() as connection:
            begun.set()
            await connection.execute("SELECT length(%s)", ("x" * 32_000_000,))

    query = asyncio.create_task(ask())
    await begun.wait()
    query.cancel()
    with pytest.raises(asyncio.CancelledError):
        await query
    await execute(database, "SELECT 1")


async def test_a_server_that_refuses_to_end_sessions_can_be_used(database_url: str) -> None:
    """An administrator may revoke the function. Superusers ignore that: it is replaced here."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA revoked")
        connection.execute(
            """
            CREATE FUNCTION revoked.pg_terminate_backend(int) RETURNS boolean LANGUAGE plpgsql AS
            $$ BEGIN RAISE 'permission denied' USING ERRCODE = 'insufficient_privilege'; END $$
            """
        )
        connection.execute(
            sql.SQL("ALTER DATABASE {} SET search_path = revoked, pg_catalog, public").format(
                sql.Identifier(connection.info.dbname)
            )
        )
    async with Database(database_url, max_size=2) as database:
        async with database.connection() as connection, database.connection() as broken:
            await broken.execute("BEGIN")  # a session that is given up, and still exists
            session = broken.info.backend_pid
        for _ in range(2):
            assert await backend(database) != session
