"""SQL of merges, and of moves to another location: one statement per function, no decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from forager.archive.retention import NEVER_MERGED, MovableSegment, SmallSegment
from forager.archive.store import IS_REFERRED_TO, MAY_BE_WRITTEN, execute_for_each, referring_tables
from forager.db.database import Connection
from forager.db.rows import Rows, Tuples, Values


async def select_small(
    connection: Connection, *, below: int, owner: str, fewest: int, limit: int
) -> list[SmallSegment]:
    """Closed, referenced segments outside merges, if their owner has enough of a tier."""
    return await Rows(connection, SmallSegment).all(
        f"""
        WITH small AS (
            SELECT s.name, s.job_id, s.worker_id, s.bytes, s.records, s.created_at, s.written_at,
                   CASE WHEN s.name LIKE %(merged)s
                        THEN floor(log(%(fewest)s::numeric, s.bytes::numeric))::int
                        ELSE {NEVER_MERGED}
                   END AS tier
              FROM archive_segments s
             WHERE s.bytes > 0 AND s.bytes < %(below)s AND s.going_at IS NULL
               AND (s.keep_until IS NULL OR s.keep_until <= now())
               AND NOT ({MAY_BE_WRITTEN})
               AND ({IS_REFERRED_TO})
        ), counted AS (
            SELECT *, count(*) OVER (PARTITION BY job_id, worker_id, tier) AS together
              FROM small
        )
        SELECT name, job_id, worker_id, bytes, records, created_at, written_at, tier
          FROM counted
         WHERE together >= %(fewest)s
         ORDER BY job_id, worker_id, tier, name
         LIMIT %(limit)s
        """,
        {"below": below, "merged": f"%/{owner}-%", "fewest": fewest, "limit": limit},
    )


async def claim_segments(connection: Connection, names: Sequence[str], *, seconds: float) -> int:
    """Keep them from other mergers and from the clean-up for a while; how many are ours."""
    return await Tuples(connection).affected(
        """
        UPDATE archive_segments
           SET keep_until = now() + make_interval(secs => %s)
         WHERE name = ANY(%s) AND going_at IS NULL AND (keep_until IS NULL OR keep_until <= now())
        """,
        (seconds, list(names)),
    )


# --- moving the references; one transaction, in this order ---------------------------------------


async def limit_waiting(connection: Connection) -> None:
    """Limit lock waits: a merge that would block others is put off."""
    await connection.execute("SET LOCAL lock_timeout = '5s'")


async def lock_referring_rows(connection: Connection, segments: Sequence[str]) -> None:
    """Lock rows before segments, like a copy of a reference: the other order could deadlock."""
    await execute_for_each(
        connection,
        await referring_tables(connection),
        "SELECT FROM {table} WHERE segment = ANY(%s) FOR NO KEY UPDATE",
        (list(segments),),
    )


async def lock_unfinished(connection: Connection, name: str) -> bool:
    """Lock the row of a merge that was neither finished nor given up."""
    return await Tuples(connection).exists(
        """
        SELECT FROM archive_segments
         WHERE name = %s AND closed_at IS NULL AND going_at IS NULL
           FOR UPDATE
        """,
        (name,),
    )


async def lock_sources(connection: Connection, names: Sequence[str]) -> set[str]:
    """Segments that still exist and can no longer be written."""
    return await Values(connection).as_set(
        f"""
        SELECT s.name
          FROM archive_segments s
         WHERE s.name = ANY(%s) AND s.going_at IS NULL AND NOT ({MAY_BE_WRITTEN})
         ORDER BY s.name
           FOR UPDATE
        """,
        (list(names),),
    )


async def move_references(
    connection: Connection, target: str, sources: Sequence[str], starts: Sequence[int]
) -> int:
    """Change every reference to a source into one to the same record in the target."""
    return await execute_for_each(
        connection,
        await referring_tables(connection),
        """
        UPDATE {table} t
           SET segment = %s, segment_offset = t.segment_offset + m.start
          FROM unnest(%s::text[], %s::bigint[]) AS m (name, start)
         WHERE t.segment = m.name
        """,
        (target, list(sources), list(starts)),
    )


async def finish_merge(connection: Connection, merged: SmallSegment, *, seconds: float) -> None:
    """Close the merged segment; a reference to it may just be on its way into another row."""
    await connection.execute(
        """
        UPDATE archive_segments
           SET job_id = %(job_id)s, worker_id = %(worker_id)s, bytes = %(bytes)s,
               records = %(records)s, created_at = %(created_at)s, written_at = %(written_at)s,
               closed_at = now(), keep_until = now() + make_interval(secs => %(seconds)s)
         WHERE name = %(name)s
        """,
        {**asdict(merged), "seconds": seconds},
    )


async def keep_segments(connection: Connection, names: Sequence[str], *, seconds: float) -> None:
    """Keep segments for a while, for readers that hold an earlier reference."""
    await connection.execute(
        """
        UPDATE archive_segments
           SET keep_until = now() + make_interval(secs => %s)
         WHERE name = ANY(%s)
        """,
        (seconds, list(names)),
    )


# --- what mergers left that died -----------------------------------------------------------------


async def close_abandoned(connection: Connection, owner: str, *, seconds: float) -> int:
    """Give up merges that are not finished in this time; the clean-up deletes them."""
    return await Tuples(connection).affected(
        """
        UPDATE archive_segments
           SET closed_at = now()
         WHERE name LIKE %s AND closed_at IS NULL
           AND created_at < now() - make_interval(secs => %s)
        """,
        (f"%/{owner}-%", seconds),
    )


async def count_unmoved(connection: Connection, place: str) -> int:
    """Number of segments that are not in this place yet."""
    return await Values(connection, int).one(
        """
        SELECT count(*) FROM archive_segments
         WHERE going_at IS NULL AND moved_to IS DISTINCT FROM %s
        """,
        (place,),
    )


async def select_movable(
    connection: Connection, place: str, *, is_moved: bool, after: str, limit: int
) -> list[MovableSegment]:
    """Segments of which that place has, or does not have, a checked copy; by name."""
    return await Rows(connection, MovableSegment).all(
        f"""
        SELECT s.name, s.bytes, {MAY_BE_WRITTEN} AS open
          FROM archive_segments s
         WHERE s.going_at IS NULL AND (s.moved_to IS NOT DISTINCT FROM %(place)s) = %(is_moved)s
           AND s.name > %(after)s
         ORDER BY s.name
         LIMIT %(limit)s
        """,
        {"place": place, "is_moved": is_moved, "after": after, "limit": limit},
    )


async def mark_moved(connection: Connection, name: str, place: str) -> bool:
    """Record that a place has all of a segment; not of one that is being deleted."""
    moved = await Tuples(connection).affected(
        "UPDATE archive_segments SET moved_to = %s WHERE name = %s AND going_at IS NULL",
        (place, name),
    )
    return moved > 0


async def mark_unmoved(connection: Connection, names: Sequence[str], place: str) -> None:
    """Record that a location no longer has them."""
    await connection.execute(
        "UPDATE archive_segments SET moved_to = NULL WHERE name = ANY(%s) AND moved_to = %s",
        (list(names), place),
    )
