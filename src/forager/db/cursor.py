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
    return base64.urlsafe_b64encode(f"{at.isoformat()} {row_id}".encode()).decode()


def decode_cursor(cursor: str) -> tuple[datetime, UUID]:
    try:
        at, row_id = base64.urlsafe_b64decode(cursor.encode()).decode().split(" ")
        return datetime.fromisoformat(at), UUID(row_id)
    except ValueError:
        raise InvalidInput(
            "the cursor is not one that a list gave", hint="Start again without a cursor."
        ) from None
