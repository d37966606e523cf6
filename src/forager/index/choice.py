"""Who answers a search: the engine if its index is complete and nearly up to date, or PostgreSQL.

What the engine has not been told yet, PostgreSQL looks at itself. So an answer never depends on how
quickly the engine is fed.
"""

from __future__ import annotations

from dataclasses import dataclass

from forager.db.database import Connection
from forager.index import store
from forager.index.engine import Engine, Inquiry
from forager.index.mapping import LAYOUT
from forager.outbox import store as outbox

# rows that PostgreSQL looks at beside the engine; with more, it does all
MAX_UNTOLD = 2_000

NOT_COMPLETE = (
    "The search index is not complete: PostgreSQL has answered instead."
    " `forager search reindex` completes it."
)
OTHER_LAYOUT = (
    "The search index was made by another version: PostgreSQL has answered instead."
    " `forager search reindex` makes it anew."
)
BEHIND = "The search index has much to catch up with: PostgreSQL has answered instead."


@dataclass(frozen=True, slots=True)
class View:
    """An index to ask, and the rows that it may not know as they are."""

    engine: Inquiry
    index: str
    untold: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Who answers; a note if it is not who was asked for."""

    view: View | None = None
    note: str | None = None


async def choose(connection: Connection, engine: Engine | None, kind: str) -> Choice:
    """Decide before the engine is asked: what is told from now on, it will know."""
    if engine is None:
        return Choice()
    if engine.trouble is not None:
        return Choice(note=engine.trouble)
    state = await store.select_index(connection, kind)
    if state is None or state.name is None or not state.is_complete:
        return Choice(note=NOT_COMPLETE)
    if state.layout != LAYOUT:
        return Choice(note=OTHER_LAYOUT)
    untold = await outbox.select_unsent(connection, kind, MAX_UNTOLD + 1)
    if len(untold) > MAX_UNTOLD:
        return Choice(note=BEHIND)
    return Choice(View(Inquiry(engine), state.name, tuple(set(untold))))
