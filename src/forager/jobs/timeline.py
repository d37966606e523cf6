"""What happened to jobs, all of them together: every move, newest first."""

from __future__ import annotations

from uuid import UUID

from forager.db.cursor import Page
from forager.db.database import Database
from forager.errors import InvalidInput
from forager.jobs.lifecycle import MOVES
from forager.jobs.store import timeline as store
from forager.jobs.store.timeline import TimelineRow

# moves that are looked through for one page
AMONG = 10_000
KINDS = tuple(dict.fromkeys(["enqueue", *(move.name for move in MOVES)]))


async def list_moves(
    database: Database,
    *,
    move: str | None = None,
    user_id: UUID | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[TimelineRow]:
    """Moves of the jobs (of an owner). A page may have few and still be followed by others."""
    before = _decode(cursor)
    async with database.connection() as connection:
        found = await store.select_moves(
            connection, move=move, user_id=user_id, before=before, among=AMONG, limit=limit + 1
        )
        if len(found) > limit:
            return Page(found[:limit], str(found[limit - 1].id))
        reach = await store.select_reach(connection, before=before, among=AMONG)
    return Page(found, None if reach is None else str(reach))


def _decode(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
        raise InvalidInput(
            "the cursor is not one that a list gave", hint="Start again without a cursor."
        )
    return int(cursor)
