"""Pages of a list: rows, and an opaque cursor to the next ones."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

import orjson

from forager.errors import InvalidInput

MAX_LIST = 1000
LARGEST_ID = 2**63 - 1

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows; `next_cursor` is None when there are no more."""

    items: list[Row]
    next_cursor: str | None


def check_limit(limit: int, most: int = MAX_LIST) -> int:
    if not 1 <= limit <= most:
        raise InvalidInput(f"a limit must be from 1 to {most}, not {limit}")
    return limit


def page_of(found: list[Row], limit: int, cursor_of: Callable[[Row], object]) -> Page[Row]:
    """The page of a query for one row more than `limit`; a cursor names the last row of a page."""
    if len(found) <= limit:
        return Page(found, None)
    return Page(found[:limit], str(cursor_of(found[limit - 1])))


After = TypeVar("After")


async def batches(
    select: Callable[[After], Awaitable[list[Row]]],
    first: After,
    key: Callable[[Row], After],
    limit: int,
) -> AsyncIterator[list[Row]]:
    """All rows of a list, at most `limit` at a time; `select` gets the key of the last one."""
    after = first
    while True:
        rows = await select(after)
        if rows:
            yield rows
        if len(rows) < limit:
            return
        after = key(rows[-1])


def decode_number(cursor: str | None) -> int | None:
    """The ID or the number that a list gave as its cursor."""
    if cursor is None:
        return None
    # Python refuses to read a number of thousands of digits
    is_short = len(cursor) < 20 and cursor.isascii() and cursor.isdecimal()
    if not is_short or int(cursor) > LARGEST_ID:
        raise unknown_cursor()
    return int(cursor)


def encode_values(*values: Any) -> str:
    """A cursor of several values, each of a type of JSON."""
    return base64.urlsafe_b64encode(orjson.dumps(values)).decode()


def decode_values(cursor: str) -> list[Any]:
    """The values of a cursor; raises InvalidInput."""
    try:
        values = orjson.loads(base64.urlsafe_b64decode(cursor.encode()))
    except ValueError:
        raise unknown_cursor() from None
    if not isinstance(values, list):
        raise unknown_cursor()
    return values


def encode_cursor(at: datetime, row_id: object) -> str:
    """The cursor after a row, by its time and ID."""
    return base64.urlsafe_b64encode(f"{at.isoformat()} {row_id}".encode()).decode()


def decode_cursor(cursor: str) -> tuple[datetime, UUID]:
    """The time and ID of a cursor; raises InvalidInput."""
    at, row_id = decode_cursor_text(cursor)
    try:
        return at, UUID(row_id)
    except ValueError:
        raise unknown_cursor() from None


def decode_cursor_text(cursor: str) -> tuple[datetime, str]:
    try:
        at, row_id = base64.urlsafe_b64decode(cursor.encode()).decode().split(" ")
        if "\0" in row_id:
            raise ValueError(row_id)
        return datetime.fromisoformat(at), row_id
    except ValueError:
        raise unknown_cursor() from None


def unknown_cursor() -> InvalidInput:
    """The error for a cursor that no list has given."""
    return InvalidInput(
        "the cursor is not one that a list gave", hint="Start again without a cursor."
    )
