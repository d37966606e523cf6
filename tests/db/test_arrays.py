"""Lists reach PostgreSQL unchanged, whichever way they are sent."""

from __future__ import annotations

from array import array
from typing import Any

import psycopg
import pytest

from forager.db.database import Database

TEXTS = ["plain", "", "NULL", 'a "quote"', "back\\slash", "{a,b}", " two\nlines\t", "ü §"]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text", TEXTS),
        ("text", [*TEXTS, None]),
        ("text", [None, None]),
        ("text", []),
        ("bytea", [b"", b"\x00\xff\\", b'"']),
        ("bytea", [b"\x00", None]),
        ("bigint", [0, -1, 2**40]),
        ("smallint", [7, None]),
        ("smallint", [-(2**15), 2**15 - 1]),
        ("boolean", [True, None, False]),
        ("float8", [1.5, None]),
        ("text", [["a", 'b"'], ["c", None]]),
    ],
)
async def test_a_list_comes_back_as_it_was(
    database: Database, kind: str, values: list[Any]
) -> None:
    async with database.connection() as connection:
        cursor = await connection.execute(f"SELECT %s::{kind}[], %b::{kind}[]", (values, values))
        assert await cursor.fetchone() == (values, values)


async def test_numbers_keep_the_type_that_their_size_asks_for(database: Database) -> None:
    async with database.connection() as connection:
        for largest, kind in ((1, "smallint[]"), (-(2**15) - 1, "integer[]"), (2**31, "bigint[]")):
            cursor = await connection.execute("SELECT pg_typeof(%s)::text", ([0, largest],))
            assert await cursor.fetchone() == (kind,)


async def test_a_text_that_postgres_cannot_store_is_refused(database: Database) -> None:
    async with database.connection() as connection:
        with pytest.raises(psycopg.DataError):
            await connection.execute("SELECT %s::text[]", (["fine", "nul \0"],))


async def test_an_array_of_floats_is_sent_as_reals(database: Database) -> None:
    numbers = array("f", [0.0, -1.5, 0.25])
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT %s, pg_typeof(%s)::text", (numbers, numbers))
        assert await cursor.fetchone() == (list(numbers), "real[]")
