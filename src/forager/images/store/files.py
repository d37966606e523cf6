"""SQL of image files: unused files, and files that move to another store."""

from __future__ import annotations

from dataclasses import dataclass

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples, Values


async def select_unused_files(connection: Connection, *, seconds: float, limit: int) -> list[bytes]:
    """Files without a reference for this long."""
    return await Values(connection).all(
        """
        SELECT f.content_hash FROM image_files f
         WHERE f.touched_at < now() - make_interval(secs => %s) AND f.going_at IS NULL
           AND NOT EXISTS (SELECT FROM images i WHERE i.content_hash = f.content_hash)
         LIMIT %s
        """,
        (seconds, limit),
    )


async def lock_file(connection: Connection, content_hash: bytes) -> None:
    """Wait for transactions that refer to a file, and block new ones until this one commits."""
    await connection.execute(
        "SELECT FROM image_files WHERE content_hash = %s FOR UPDATE", (content_hash,)
    )


async def mark_going(connection: Connection, content_hash: bytes, *, seconds: float) -> bool:
    """Mark a locked file for deletion, unless it is used."""
    return await Tuples(connection).changed(
        """
        UPDATE image_files f SET going_at = now()
         WHERE f.content_hash = %s AND f.touched_at < now() - make_interval(secs => %s)
           AND NOT EXISTS (SELECT FROM images i WHERE i.content_hash = f.content_hash)
        """,
        (content_hash, seconds),
    )


async def select_going_files(connection: Connection) -> list[tuple[bytes, str]]:
    """Files that are being deleted."""
    return await Tuples(connection).all(
        "SELECT content_hash, path FROM image_files WHERE going_at IS NOT NULL"
    )


async def delete_file_row(connection: Connection, content_hash: bytes) -> None:
    """Delete the row of a file that is deleted."""
    await connection.execute(
        "DELETE FROM image_files WHERE content_hash = %s AND going_at IS NOT NULL", (content_hash,)
    )


@dataclass(frozen=True, slots=True)
class MovableFile:
    """A file that can be moved to another place."""

    content_hash: bytes
    path: str
    # whether images refer to it
    used: bool


async def count_unmoved(connection: Connection, place: str) -> int:
    """Number of files that are not in this place yet."""
    return await Values(connection, int).one(
        """
        SELECT count(*) FROM image_files
         WHERE going_at IS NULL AND moved_to IS DISTINCT FROM %s
        """,
        (place,),
    )


async def select_movable(
    connection: Connection, place: str, *, is_moved: bool, after: bytes, limit: int
) -> list[MovableFile]:
    """Files that have, or do not have, a checked copy at this location; by content."""
    return await Rows(connection, MovableFile).all(
        """
        SELECT f.content_hash, f.path,
               EXISTS (SELECT FROM images i WHERE i.content_hash = f.content_hash) AS used
          FROM image_files f
         WHERE (f.moved_to IS NOT DISTINCT FROM %(place)s) = %(is_moved)s
           AND (%(is_moved)s OR f.going_at IS NULL) AND f.content_hash > %(after)s
         ORDER BY f.content_hash
         LIMIT %(limit)s
        """,
        {"place": place, "is_moved": is_moved, "after": after, "limit": limit},
    )


async def mark_moved(connection: Connection, content_hash: bytes, place: str) -> bool:
    """Note that a file was copied to a place; False if it was deleted meanwhile."""
    return await Tuples(connection).changed(
        "UPDATE image_files SET moved_to = %s WHERE content_hash = %s AND going_at IS NULL",
        (place, content_hash),
    )
