"""Transactions whose statements are sent together."""

from __future__ import annotations

import psycopg
import pytest

from forager.db.batch import batch
from forager.db.database import Connection, Database


@pytest.fixture
async def notes(database: Database) -> Database:
    async with database.connection() as connection:
        await connection.execute("CREATE TABLE notes (n int PRIMARY KEY)")
    return database


async def stored(database: Database) -> list[int]:
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT n FROM notes ORDER BY n")
        return [n for (n,) in await cursor.fetchall()]


async def insert(connection: Connection, *numbers: int) -> None:
    async with batch(connection):
        for n in numbers:
            await connection.execute("INSERT INTO notes VALUES (%s)", (n,))


async def insert_and_fail(connection: Connection) -> None:
    async with batch(connection):
        await connection.execute("INSERT INTO notes VALUES (1)")
        raise ZeroDivisionError


async def insert_twice_and_more(connection: Connection) -> None:
    async with batch(connection):
        for _ in range(2):
            await connection.execute("INSERT INTO notes VALUES (1)")
        for _ in range(30):
            await connection.execute("SELECT length(%s::text)", ("x" * 1_000_000,))


async def test_nothing_is_sent_before_the_end_of_the_block(notes: Database) -> None:
    async with notes.connection() as connection:
        async with batch(connection):
            await connection.execute("SELECT pg_sleep(0)")
            for n in range(100):
                await connection.execute("INSERT INTO notes VALUES (%s)", (n,))
            assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
    assert await stored(notes) == list(range(100))


async def test_a_refused_statement_undoes_the_batch_and_spares_the_connection(
    notes: Database,
) -> None:
    async with notes.connection() as connection:
        with pytest.raises(psycopg.errors.UniqueViolation):
            await insert(connection, 1, 1, 2)
        await insert(connection, 3)
    assert await stored(notes) == [3]


async def test_an_error_in_the_block_undoes_the_batch(notes: Database) -> None:
    async with notes.connection() as connection:
        with pytest.raises(ZeroDivisionError):
            await insert_and_fail(connection)
    assert await stored(notes) == []


async def test_results_and_savepoints_inside_a_batch(notes: Database) -> None:
    async with notes.connection() as connection:
        async with batch(connection):
            await connection.execute("INSERT INTO notes VALUES (1)")
            cursor = await connection.execute("SELECT count(*) FROM notes")
            assert await cursor.fetchone() == (1,)
            with pytest.raises(psycopg.errors.UniqueViolation):
                async with connection.transaction():
                    await connection.execute("INSERT INTO notes VALUES (1)")
            await connection.execute("INSERT INTO notes VALUES (2)")
        last = await connection.execute("SELECT max(n) FROM notes")
        assert await last.fetchone() == (2,)
    assert await stored(notes) == [1, 2]


async def test_an_error_that_arrives_while_the_batch_is_sent(notes: Database) -> None:
    async with notes.connection() as connection:
        with pytest.raises(psycopg.errors.UniqueViolation):
            await insert_twice_and_more(connection)
        await insert(connection, 2)
    assert await stored(notes) == [2]


async def test_large_batches_are_sent_while_answers_arrive(notes: Database) -> None:
    text = "x" * 1_000_000
    async with notes.connection() as connection, batch(connection):
        cursors = [await connection.execute("SELECT %s::text", (text,)) for _ in range(30)]
        await connection.execute("INSERT INTO notes VALUES (1)")
    assert await stored(notes) == [1]
    assert len(cursors) == 30
