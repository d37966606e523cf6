"""SQL of moves: which segments have a checked copy in the new place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forager.archive.store import MAY_BE_WRITTEN
from forager.db.database import Connection
from forager.db.rows import Rows, Values


@dataclass(frozen=True, slots=True)
class MovableSegment:
    name: str
    bytes: int
    open: bool


async def count_unmoved(connection: Connection, place: str) -> int:
    value = await Values(connection).first(
        """
        SELECT count(*) FROM archive_segments
         WHERE going_at IS NULL AND moved_to IS DISTINCT FROM %s
        """,
        (place,),
    )
    return int(value or 0)


async def select_unmoved(
    connection: Connection, place: str, *, after: str, limit: int
) -> list[MovableSegment]:
    """Segments of which no copy in that place was checked, by name."""
    return await Rows(connection, MovableSegment).all(
        f"""
        SELECT s.name, s.bytes, {MAY_BE_WRITTEN} AS open
          FROM archive_segments s
         WHERE s.going_at IS NULL AND s.moved_to IS DISTINCT FROM %s AND s.name > %s
         ORDER BY s.name
         LIMIT %s
        """,
        (place, after, limit),
    )


async def mark_moved(connection: Connection, name: str, place: str) -> bool:
    """Say that a place has all of a segment; not of one that goes."""
    cursor = await connection.execute(
        "UPDATE archive_segments SET moved_to = %s WHERE name = %s AND going_at IS NULL",
        (place, name),
    )
    return cursor.rowcount > 0


async def mark_unmoved(connection: Connection, names: Sequence[str], place: str) -> None:
    """Record that a location no longer has them."""
    await connection.execute(
        "UPDATE archive_segments SET moved_to = NULL WHERE name = ANY(%s) AND moved_to = %s",
        (list(names), place),
    )


async def select_moved(
    connection: Connection, place: str, *, after: str, limit: int
) -> list[MovableSegment]:
    """Segments of which a place had a checked copy, by name."""
    return await Rows(connection, MovableSegment).all(
        """
        SELECT name, bytes, false AS open FROM archive_segments
         WHERE going_at IS NULL AND moved_to = %s AND name > %s
         ORDER BY name
         LIMIT %s
        """,
        (place, after, limit),
    )
