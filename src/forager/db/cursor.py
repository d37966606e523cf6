"""Pages of a list: rows, and an opaque cursor to the next ones."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar
from uuid import UUID

from forager.errors import InvalidInput

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows; `next_cursor` is None when there are no more."""

    items: list[Row]
    next_cursor: str | None


def encode_cursor(at: datetime, row_id: UUID) -> str:
    return encode_cursor_text(at, str(row_id))


def decode_cursor(cursor: str) -> tuple[datetime, UUID]:
    at, row_id = decode_cursor_text(cursor)
    try:
        return at, UUID(row_id)
    except ValueError:
        raise _not_ours() from None


def encode_cursor_text(at: datetime, row_id: str) -> str:
    return base64.urlsafe_b64encode(f"{at.isoformat()} {row_id}".encode()).decode()


def decode_cursor_text(cursor: str) -> tuple[datetime, str]:
    try:
        at, row_id = base64.urlsafe_b64decode(cursor.encode()).decode().split(" ")
        if "\0" in row_id:
            raise ValueError(row_id)
        return datetime.fromisoformat(at), row_id
    except ValueError:
        raise _not_ours() from None


def _not_ours() -> InvalidInput:
    return InvalidInput(
        "the cursor is not one that a list gave", hint="Start again without a cursor."
    )
