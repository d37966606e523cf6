"""Rows as objects: results as objects of a class, and objects as the rows of a statement."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from operator import attrgetter
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

    async def exists(self, query: QueryNoTemplate, params: Params | None = None) -> bool:
        return await self.first(query, params) is not None

    async def affected(self, query: QueryNoTemplate, params: Params | None = None) -> int:
        """The number of rows that a statement changed."""
        await self._cursor.execute(query, params)
        return self._cursor.rowcount


class Rows(_Select[Row]):
    """Each row as an object of a class, by the names of its columns."""

    def __init__(self, connection: Connection, kind: type[Row]) -> None:
        super().__init__(connection.cursor(row_factory=class_row(kind)))


class Values(_Select[Any]):
    """The first column of each row."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection.cursor(row_factory=scalar_row))


class Tuples(_Select[Any]):
    """Each row as a tuple."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection.cursor())


class RowArrays:
    """Objects as the rows of one statement: an array for each column, read by `unnest`.

    Columns are declared once, with their types: `{rows}` in a statement is a relation `alias` with
    these columns, and `rows.values(objects)` are its parameters. Arrays of `binary` columns are
    sent in the binary format, which is faster for long texts but has no NULL.
    """

    def __init__(self, alias: str, *, binary: Collection[str] = (), **types: str) -> None:
        self._names = list(types)
        arrays = (
            f"%({name}){'b' if name in binary else 's'}::{kind}[]" for name, kind in types.items()
        )
        self.columns = ", ".join(types)
        self.unnest = f"unnest({', '.join(arrays)})"
        self._relation = f"{self.unnest} AS {alias} ({self.columns})"

    def __str__(self) -> str:
        return self._relation

    def values(self, rows: Iterable[Any], **given: str | list[Any]) -> dict[str, list[Any]]:
        """The arrays by column: of the attributes with these names, unless another is `given`.

        A given text is the path of an attribute; a given list is the array itself.
        """
        rows = list(rows)
        return {name: _array(given.get(name, name), rows) for name in self._names}


def _array(values: str | list[Any], rows: list[Any]) -> list[Any]:
    return list(map(attrgetter(values), rows)) if isinstance(values, str) else values


async def select_now(connection: Connection) -> datetime:
    """The start of the transaction by the clock of the database."""
    now: datetime = await Values(connection).one("SELECT now()")
    return now
