"""A kind of rows that has an index, declared by the feature that owns the rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from forager.db.database import Connection
from forager.errors import ForagerError
from forager.outbox.message import Message

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
    """How rows of one kind are read, and turned into entries of the index."""

    name: str
    properties: dict[str, Any]
    # the approximate size of rows in bytes, without rows that were deleted
    sizes: Callable[[Connection, Sequence[int]], Awaitable[dict[int, int]]]
    select: Callable[[Connection, Sequence[int]], Awaitable[Sequence[Any]]]
    # slow: it runs beside the event loop
    entry: Callable[[Any], Entry]
    # the entries of a row that was deleted
    gone: Callable[[Message], Sequence[str]]
    # the rows after an id, in their order
    next_ids: Callable[[Connection, int, int], Awaitable[list[int]]]
    count: Callable[[Connection, int], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class IndexState:
    """The index of one kind: the one in use, the one that is being filled, the one to delete."""

    kind: str
    name: str | None
    uuid: str | None
    layout: int | None
    is_complete: bool
    building: str | None
    building_uuid: str | None
    building_layout: int | None
    filled_to: int
    old: str | None
    # seconds since the one in use became complete
    age: float | None


class EngineUnavailable(ForagerError):
    """The search engine does not answer."""


class IndexMissing(EngineUnavailable):
    """The search engine does not have this index."""


class EngineRefused(EngineUnavailable):
    """The search engine does not understand what it is asked."""


class EngineBusy(EngineUnavailable):
    """The search engine has too much to do, or too little memory for it."""
