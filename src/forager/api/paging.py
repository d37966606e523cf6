"""Lists: some items, and a cursor to the next ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field

from forager.api.limits import MAX_LIST
from forager.api.models.values import PlainText
from forager.db.cursor import Page

Item = TypeVar("Item")
Row = TypeVar("Row")

MAX_CURSOR = 16_000


class Listed(BaseModel, Generic[Item]):
    """A part of a list. `next_cursor` is there exactly if there is more."""

    items: list[Item]
    next_cursor: str | None = Field(description="Pass this as `cursor` to get the next page.")


Limit = Annotated[int, Query(ge=1, le=MAX_LIST, description="How many items at most.")]
Cursor = Annotated[
    PlainText | None,
    Query(max_length=MAX_CURSOR, description="The `next_cursor` of the part before."),
]


Offset = Annotated[
    int,
    Query(
        alias="cursor",
        ge=0,
        le=1_000_000,
        description="The `next_cursor` of the part before.",
    ),
]


def cut(found: Sequence[Row], offset: int, limit: int) -> Page[Row]:
    """A part of a short list that is read as a whole; the cursor is how many came before."""
    more = len(found) > offset + limit
    return Page(list(found[offset : offset + limit]), str(offset + limit) if more else None)


def listed(page: Page[Row], view: Callable[[Row], Item]) -> Listed[Item]:
    """A page of a service, each row as its view."""
    return Listed(items=[view(row) for row in page.items], next_cursor=page.next_cursor)
