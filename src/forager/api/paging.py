"""Lists: some items, and a cursor to the next ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

from fastapi import Query, Request
from fastapi.dependencies.models import Dependant
from pydantic import BaseModel, Field

from forager.api.limits import MAX_LIST
from forager.api.models.values import PlainText
from forager.api.problems import FieldProblem, InvalidFields
from forager.db.cursor import Page

Item = TypeVar("Item")
Row = TypeVar("Row")

MAX_CURSOR = 16_000
AFTER = "Return items after this cursor: the `next_cursor` of the page before."


class Listed(BaseModel, Generic[Item]):
    """One page of a list."""

    items: list[Item] = Field(description="The items of this page.")
    next_cursor: str | None = Field(description="Cursor of the next page; null on the last page.")


Limit = Annotated[int, Query(ge=1, le=MAX_LIST, description="Maximum number of items.")]
Cursor = Annotated[
    PlainText | None,
    Query(
        max_length=MAX_CURSOR,
        description=AFTER,
    ),
]


Offset = Annotated[
    int,
    Query(
        alias="cursor",
        ge=0,
        le=1_000_000,
        description=AFTER,
    ),
]


async def refuse_unknown_query(request: Request) -> None:
    """A misspelled parameter must not be ignored."""
    known = _query_parameters(request.scope["route"].dependant)
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        expected = f"unknown; expected: {', '.join(sorted(known)) or 'none'}"
        raise InvalidFields([FieldProblem(field=f"query.{n}", message=expected) for n in unknown])


def _query_parameters(dependant: Dependant) -> set[str]:
    own = {field.alias for field in dependant.query_params}
    return own.union(*(_query_parameters(each) for each in dependant.dependencies))


def cut(found: Sequence[Row], offset: int, limit: int) -> Page[Row]:
    """A part of a short list that is read as a whole; the cursor is how many came before."""
    more = len(found) > offset + limit
    return Page(list(found[offset : offset + limit]), str(offset + limit) if more else None)


def listed(page: Page[Row], view: Callable[[Row], Item]) -> Listed[Item]:
    """A page of a service, each row as its view."""
    return Listed(items=[view(row) for row in page.items], next_cursor=page.next_cursor)
