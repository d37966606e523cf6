"""Rows as objects: results as objects of a class, and objects as the rows of a statement."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast, overload

import psycopg
from psycopg import AsyncCursor
from psycopg.abc import Params, QueryNoTemplate
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.rows import args_row, class_row, scalar_row

from forager.db.pool import Connection
from forager.errors import error_text

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

    async def as_set(self, query: QueryNoTemplate, params: Params | None = None) -> set[Row]:
        return set(await self.all(query, params))

    async def affected(self, query: QueryNoTemplate, params: Params | None = None) -> int:
        """The number of rows that a statement changed."""
        await self._cursor.execute(query, params)
        return self._cursor.rowcount

    async def changed(self, query: QueryNoTemplate, params: Params | None = None) -> bool:
        """Whether a statement changed a row."""
        return await self.affected(query, params) > 0


class Rows(_Select[Row]):
    """Each row as an object of a class, by the names of its columns.

    job = await Rows(connection, Job).first("SELECT * FROM crawl_jobs WHERE id = %s", (id_,))
    """

    def __init__(self, connection: Connection, kind: type[Row]) -> None:
        super().__init__(connection.cursor(row_factory=class_row(kind)))


class Made(_Select[Row]):
    """Each row as the result of a function that gets its columns.

    query = "SELECT segment, segment_offset, segment_length FROM crawl_visited"
    places = await Made(connection, ArchiveRef).all(query)
    """

    def __init__(self, connection: Connection, make: Callable[..., Row]) -> None:
        super().__init__(connection.cursor(row_factory=args_row(make)))


class Values(_Select[Row]):
    """The first column of each row; `kind` is its type, for type checkers alone.

    pages = await Values(connection, int).one("SELECT count(*) FROM documents")
    """

    @overload
    def __init__(self: Values[Any], connection: Connection) -> None: ...
    @overload
    def __init__(self, connection: Connection, kind: type[Row]) -> None: ...
    def __init__(self, connection: Connection, kind: object = None) -> None:  # noqa: ARG002
        super().__init__(connection.cursor(row_factory=scalar_row))


class Tuples(_Select[Row]):
    """Each row as a tuple; `kind` is its type, for type checkers alone."""

    @overload
    def __init__(self: Tuples[Any], connection: Connection) -> None: ...
    @overload
    def __init__(self, connection: Connection, kind: type[Row]) -> None: ...
    def __init__(self, connection: Connection, kind: object = None) -> None:  # noqa: ARG002
        super().__init__(cast("AsyncCursor[Row]", connection.cursor()))

    async def as_dict(self, query: QueryNoTemplate, params: Params | None = None) -> dict[Any, Any]:
        """The second column by the first."""
        return dict(cast("list[tuple[Any, Any]]", await self.all(query, params)))


class RowArrays:
    """Objects as the rows of one statement: an array for each column, read by `unnest`.

    Columns are declared once, with their types: `{rows}` in a statement is a relation `alias` with
    these columns, and `rows.values(objects)` are its parameters.

        LINKS = RowArrays("l", url="text", depth="int")
        statement = f"INSERT INTO links (url, depth) SELECT url, depth FROM {LINKS}"
        await connection.execute(statement, LINKS.values(links))
    """

    def __init__(self, alias: str, **types: str) -> None:
        self._types = types
        self.columns = ", ".join(types)
        self.unnest = f"unnest({', '.join(f'%({name})s::{types[name]}[]' for name in types)})"
        self._relation = f"{self.unnest} AS {alias} ({self.columns})"

    def __str__(self) -> str:
        return self._relation

    def values(self, rows: Iterable[Any], **given: str | list[Any]) -> dict[str, Any]:
        """The arrays by column: of the attributes with these names, unless another is `given`.

        A given text is the path of an attribute; a given list is the array itself.
        """
        rows = list(rows)
        return {
            name: encode_array(kind, _array(given.get(name, name), rows))
            for name, kind in self._types.items()
        }


def _array(values: str | list[Any], rows: list[Any]) -> list[Any]:
    return list(map(attrgetter(values), rows)) if isinstance(values, str) else values


class EncodedArray(bytes):
    """An array in the binary format of PostgreSQL, whose statement casts it to its type."""


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: EncodedArray) -> EncodedArray:
        return obj


psycopg.adapters.register_dumper(EncodedArray, _ArrayDumper)

# dimensions, whether there may be NULLs, the type of the elements, their number, the first index
_HEADER = struct.Struct("!iiIii").pack
_LENGTH = struct.Struct("!i").pack
_NULL = _LENGTH(-1)
# by type: its number, and an element with its length
_ELEMENTS: dict[str, tuple[int, Callable[[Any], bytes]]] = {
    "text": (25, lambda text: _with_length(text.encode())),
    "bytea": (17, lambda data: _with_length(data)),
    "uuid": (2950, lambda uuid: _with_length(uuid.bytes)),
    "boolean": (16, partial(struct.Struct("!i?").pack, 1)),
    "smallint": (21, partial(struct.Struct("!ih").pack, 2)),
    "int": (23, partial(struct.Struct("!ii").pack, 4)),
    "bigint": (20, partial(struct.Struct("!iq").pack, 8)),
    "float8": (701, partial(struct.Struct("!id").pack, 8)),
}


def _with_length(data: bytes) -> bytes:
    return _LENGTH(len(data)) + data


def encode_array(kind: str, values: list[Any]) -> EncodedArray | list[Any]:
    """Encode an array of a common type; psycopg takes ten times as long, and encodes the others."""
    if kind not in _ELEMENTS:
        return values
    number, encode = _ELEMENTS[kind]
    try:
        elements = [_NULL if value is None else encode(value) for value in values]
    except struct.error as error:
        raise psycopg.DataError(f"not a value of the type {kind}: {error_text(error)}") from None
    return EncodedArray(b"".join((_HEADER(1, 1, number, len(values), 1), *elements)))


async def select_now(connection: Connection) -> datetime:
    """The start of the transaction by the clock of the database."""
    return await Values(connection, datetime).one("SELECT now()")
