"""A kind of rows that an engine has an index of: what the feature that owns them tells of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from forager.db.database import Connection
from forager.index.store.messages import IndexMessage

SECTIONS = "sections"
PRODUCTS = "products"


@dataclass(frozen=True, slots=True)
class Entry:
    """One document of an index, and the row that it is made from."""

    id: str
    ref_id: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Kind:
    """How rows of one kind are read, and what becomes of them in the index."""

    name: str
    properties: dict[str, Any]
    # how many bytes a row roughly is; those that are gone are left out
    sizes: Callable[[Connection, Sequence[int]], Awaitable[dict[int, int]]]
    select: Callable[[Connection, Sequence[int]], Awaitable[Sequence[Any]]]
    # takes its time: it is done beside the event loop
    entry: Callable[[Any], Entry]
    # the entries of a row that is gone
    gone: Callable[[IndexMessage], Sequence[str]]
    # the rows after an id, in their order
    next_ids: Callable[[Connection, int, int], Awaitable[list[int]]]
    count: Callable[[Connection, int], Awaitable[int]]
