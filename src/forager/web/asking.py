"""What the address of a page asks for, and the address of what follows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

from forager.api.remembered import Remembrance
from forager.web.forms import Form, parse_form
from forager.web.visit import Visit


def asked(visit: Visit) -> Form:
    """The fields of the address; those that a person left empty are as if they were not there."""
    return parse_form(visit.request.url.query.encode())


def following(visit: Visit, cursor: str | None) -> str | None:
    """The same list, from where it was cut; None if it was not."""
    return None if cursor is None else with_query(visit, cursor=cursor)


def with_query(visit: Visit, **changes: str) -> str:
    """This page with other fields in its address; a list starts anew unless a cursor is given."""
    given = visit.request.query_params.multi_items()
    kept = [(name, value) for name, value in given if name not in {*changes, "cursor"} and value]
    fields = [*kept, *((name, value) for name, value in changes.items() if value)]
    return f"{visit.request.url.path}?{urlencode(fields)}" if fields else visit.request.url.path


async def remembered(
    visit: Visit, make: Callable[[], Awaitable[Any]], *stand: object
) -> Remembrance:
    """What a page shows, kept for as long as its cost deserves; only for what all may see.

    `stand` is what is cheap to read and tells that the rest has changed: then it is made anew.
    """
    key = (visit.request.url.path, str(visit.request.query_params), *stand)
    return await visit.here.remembered.look(key, make)
