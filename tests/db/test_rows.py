"""Objects as the rows of a statement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

import psycopg
import pytest

from forager.db.database import Connection, Database
from forager.db.refusals import REFUSALS
from forager.db.rows import RowArrays, Tuples


class Color(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Thing:
    text: str | None
    data: bytes | None
    id: UUID | None
    flag: bool | None
    small: int | None
    medium: int | None
    large: int | None
    share: float | None
    money: Decimal | None
    at: datetime | None


THINGS = RowArrays(
    "t", text="text", data="bytea", id="uuid", flag="boolean", small="smallint", medium="int",
    large="bigint", share="float8", money="numeric", at="timestamptz",
)  # fmt: skip
FULL = Thing(
    'Ünï "quoted", {braced} \\ \n', b"\0\xff", UUID(int=7), True, -(2**15), 2**31 - 1, -(2**63),
    0.1, Decimal("12.3400"), datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
)  # fmt: skip
EMPTY = Thing(
    "", b"", UUID(int=0), False, 0, 0, 0, 0.0, Decimal(0), datetime(1970, 1, 1, tzinfo=UTC)
)
NOTHING = Thing(*[None] * 10)


async def written(connection: Connection, /, rows: list[Thing], **given: list[Any]) -> list[Thing]:
    found = await Tuples(connection).all(f"SELECT * FROM {THINGS}", THINGS.values(rows, **given))
    return [Thing(*row) for row in found]


@pytest.mark.parametrize("rows", [[], [FULL], [NOTHING], [NOTHING, FULL, EMPTY, NOTHING]])
async def test_rows_arrive_as_they_are(database: Database, rows: list[Thing]) -> None:
    assert await database.run(written, rows) == rows


async def test_a_member_of_an_enumeration_is_its_text(database: Database) -> None:
    (row,) = await database.run(written, [FULL], text=[Color.RED])
    assert row.text == "red"


@pytest.mark.parametrize(
    "given", [{"small": [2**15]}, {"large": [2**63]}, {"text": ["a\0b"]}, {"text": ["\ud800"]}]
)
async def test_values_without_a_place_in_a_column_are_refused(
    database: Database, given: dict[str, list[Any]]
) -> None:
    with pytest.raises(REFUSALS):
        await database.run(written, [FULL], **given)


async def test_a_number_in_place_of_another_type_is_refused(database: Database) -> None:
    with pytest.raises(psycopg.DataError, match="bigint"):
        await database.run(written, [FULL], large=["many"])


async def test_texts_arrive_in_sessions_with_another_encoding(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    async with Database(database_url) as database:
        assert await database.run(written, [FULL]) == [FULL]
