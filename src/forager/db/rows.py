"""Queries that return objects of a class, or single values, instead of tuples."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from psycopg import AsyncCursor
from psycopg.abc import Params, QueryNoTemplate
from psycopg.rows import class_row, scalar_row

from forager.db.pool import Connection

Row = TypeVar("Row")


class _Select(Generic[Row]):
    def __init__(self, cursor: AsyncCursor[Row]) -> None:
        self._cursor = cursor

    async def all(self, query: QueryNoTemplate, params: Params | None = None) -> list[Row]:
        await self._cursor.execute(query, params)
        return await self._cursor.fetchall()

    async def first(self, query: QueryNoTemplate, params: Params | None = None) -> Row | None:
        await self._cursor.execute(query, params)
        return await self._cursor.fetchone()

    async def one(self, query: QueryNoTemplate, params: Params | None = None) -> Row:
        """The row of a query that always has one."""
        found = await self.first(query, params)
        assert found is not None
        return found


class Rows(_Select[Row]):
    """Each row as an object of a class, by the names of its columns."""

    def __init__(self, connection: Connection, kind: type[Row]) -> None:
        super().__init__(connection.cursor(row_factory=class_row(kind)))


class Values(_Select[Any]):
    """The first column of each row."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection.cursor(row_factory=scalar_row))
