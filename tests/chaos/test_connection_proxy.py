"""The line to PostgreSQL: whole, cut, down, and silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg import AsyncConnection

from chaos.connection_proxy import ConnectionProxy

LIMIT = 60.0


@pytest.fixture
async def line(database_url: str) -> AsyncIterator[ConnectionProxy]:
    async with ConnectionProxy(database_url) as line:
        yield line


async def connect(line: ConnectionProxy) -> AsyncConnection:
    return await AsyncConnection.connect(line.url, autocommit=True, connect_timeout=30)


async def test_a_line_that_works(line: ConnectionProxy) -> None:
    line.delay = 0.01
    async with await connect(line) as connection:
        large = "x" * 300_000
        cursor = await connection.execute("SELECT %s::text", (large,))
        assert await cursor.fetchone() == (large,)


async def test_a_line_that_is_cut_and_down(line: ConnectionProxy) -> None:
    connection = await connect(line)
    line.is_down = True
    assert line.cut() == 1
    with pytest.raises(psycopg.OperationalError):
        await connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        await connect(line)
    line.is_down = False
    async with await connect(line) as again:
        await again.execute("SELECT 1")


async def test_a_line_that_is_half_open(line: ConnectionProxy) -> None:
    connection = await connect(line)
    assert line.silence() == 1
    assert line.silence() == 0
    asking = asyncio.ensure_future(connection.execute("SELECT 1"))
    async with await connect(line) as another:
        await another.execute("SELECT 1")
    assert not asking.done()
    line.cut()
    with pytest.raises(psycopg.OperationalError):
        await asyncio.wait_for(asking, LIMIT)
