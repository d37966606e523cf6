"""The archive's SQL: one statement per function, no decisions.

Features refer to segments by rows with the columns segment, segment_offset and segment_length. The
view archive_references lists them all: a feature that adds such a table adds it to the view, with
an index on segment. Before a feature copies a reference, it locks the segment's row FOR KEY SHARE
and checks that the segment is not being deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, LiteralString
from uuid import UUID

from psycopg.sql import SQL, Identifier

from forager.archive.retention import SegmentRow
from forager.archive.segment import ArchiveRef, SegmentGrowth, parse_segment_name
from forager.db.database import Connection
from forager.db.rows import Made, RowArrays, Rows, Tuples, Values

# The fence of hold_lease(), seen from outside: a process that passes it may write, now or later.
# closed_at does not matter: the commit that refers to the last records may be yet to come. A worker
# for tasks closes its segments after that commit, and claims nothing without its row in the list of
# workers, which it keeps for as long as it holds a task.
MAY_BE_WRITTEN: LiteralString = """
    CASE WHEN s.worker_id IS NOT NULL THEN s.closed_at IS NULL AND EXISTS (
            SELECT FROM workers w WHERE w.id = s.worker_id
         )
         WHEN s.job_id IS NULL THEN s.closed_at IS NULL
         ELSE EXISTS (
            SELECT FROM crawl_jobs j
             WHERE j.id = s.job_id AND j.lease = s.lease AND j.status IN ('processing', 'paused')
         )
    END
"""
IS_REFERRED_TO: LiteralString = "EXISTS (SELECT FROM archive_references WHERE segment = s.name)"
COLUMNS: LiteralString = f"""
    s.name, s.job_id, s.lease, s.bytes, s.records, s.created_at, s.written_at, s.closed_at,
    s.going_at, s.keep_until, {MAY_BE_WRITTEN} AS open,
    (SELECT count(*) FROM archive_references WHERE segment = s.name) AS "references"
"""

_GROWTHS = RowArrays("g", segment="text", end_offset="bigint", records="bigint")
_REFS = RowArrays("r", segment="text", start="bigint", length="bigint")


# --- for writers of segments; these fetch nothing, so they can be part of a pipeline --------


async def register_segment(
    connection: Connection, name: str, job_id: UUID | None, *, worker_id: UUID | None = None
) -> None:
    """Insert a segment's row; must be committed before the segment's first byte."""
    await connection.execute(
        """
        INSERT INTO archive_segments (name, job_id, worker_id, lease)
        VALUES (%s, %s, %s, %s)
        ON CONFLICT (name) DO NOTHING
        """,
        (name, job_id, worker_id, parse_segment_name(name).lease),
    )


async def grow_segments(connection: Connection, growths: Sequence[SegmentGrowth]) -> None:
    """Record the new length of segments; part of the commit that refers to the new records."""
    await connection.execute(
        f"""
        UPDATE archive_segments s
           SET bytes = greatest(s.bytes, g.end_offset),
               records = s.records + g.records,
               written_at = now()
          FROM {_GROWTHS}
         WHERE s.name = g.segment
        """,
        _GROWTHS.values(growths, end_offset="end"),
    )


async def close_segment(connection: Connection, name: str) -> None:
    """Close a segment; not before the last commit that refers to it."""
    await connection.execute(
        "UPDATE archive_segments SET closed_at = coalesce(closed_at, now()) WHERE name = %s",
        (name,),
    )


async def close_segments_of(connection: Connection, worker_id: UUID, *, but: str = "") -> None:
    """Close all segments of a worker, except perhaps one."""
    await connection.execute(
        """
        UPDATE archive_segments
           SET closed_at = now()
         WHERE worker_id = %s AND closed_at IS NULL AND name <> %s
        """,
        (worker_id, but),
    )


async def lock_segments(connection: Connection, names: Sequence[str]) -> set[str]:
    """Lock segments so that rows may refer to them; returns those that are not being deleted."""
    return await Values(connection).as_set(
        """
        SELECT name
          FROM archive_segments
         WHERE name = ANY(%s) AND going_at IS NULL
         ORDER BY name
           FOR KEY SHARE
        """,
        (list(names),),
    )


# --- looking -------------------------------------------------------------------------------------


async def select_segments(
    connection: Connection, *, after: str = "", job_id: UUID | None = None, limit: int
) -> list[SegmentRow]:
    """Segments by name, and thereby by day."""
    of_job: LiteralString = "AND s.job_id = %(job_id)s" if job_id else ""
    return await Rows(connection, SegmentRow).all(
        f"""
        SELECT {COLUMNS}
          FROM archive_segments s
         WHERE s.name > %(after)s {of_job}
         ORDER BY s.name
         LIMIT %(limit)s
        """,
        {"after": after, "job_id": job_id, "limit": limit},
    )


async def select_segment(connection: Connection, name: str) -> SegmentRow | None:
    """A segment by its name."""
    return await Rows(connection, SegmentRow).first(
        f"SELECT {COLUMNS} FROM archive_segments s WHERE s.name = %s", (name,)
    )


async def select_going(connection: Connection) -> list[str]:
    """Names of segments whose files are being deleted."""
    return await Values(connection).all(
        "SELECT name FROM archive_segments WHERE going_at IS NOT NULL ORDER BY name"
    )


async def select_references(connection: Connection, segment: str) -> list[ArchiveRef]:
    """All references into a segment."""
    return await Made(connection, partial(ArchiveRef, segment)).all(
        """
        SELECT segment_offset, segment_length
          FROM archive_references r
         WHERE segment = %s
         ORDER BY segment_offset
        """,
        (segment,),
    )


async def select_referred_names(connection: Connection) -> list[tuple[str, int]]:
    """Segments that rows refer to although they have no row, with their number."""
    return await Tuples(connection).all(
        """
        SELECT segment, count(*)
          FROM archive_references r
         WHERE NOT EXISTS (SELECT FROM archive_segments s WHERE s.name = r.segment)
         GROUP BY segment
         ORDER BY segment
        """
    )


async def select_some_segments(connection: Connection, *, limit: int) -> list[str]:
    """Segments that hold something, of all ages."""
    return await Values(connection).all(
        """
        SELECT name FROM archive_segments
         WHERE records > 0 AND going_at IS NULL
         ORDER BY random()
         LIMIT %s
        """,
        (limit,),
    )


async def select_some_references(
    connection: Connection, segments: Sequence[str], *, each: int
) -> list[ArchiveRef]:
    """Some of the references into each of these segments."""
    return await Made(connection, ArchiveRef).all(
        """
        SELECT r.segment, r.segment_offset, r.segment_length
          FROM unnest(%s::text[]) AS s (name),
               LATERAL (
                SELECT * FROM archive_references every
                 WHERE every.segment = s.name
                 ORDER BY random()
                 LIMIT %s
               ) AS r
        """,
        (list(segments), each),
    )


async def is_referred_to(connection: Connection, ref: ArchiveRef) -> bool:
    """Whether any row refers to this response, so that it must stay in the archive."""
    return await Tuples(connection).exists(
        """
        SELECT FROM archive_references r
         WHERE segment = %s AND segment_offset = %s AND segment_length = %s
         LIMIT 1
        """,
        (ref.segment, ref.offset, ref.length),
    )


async def select_unknown(connection: Connection, names: Sequence[str]) -> set[str]:
    """The names that have no row, and that no row refers to."""
    return await Values(connection).as_set(
        f"""
        SELECT s.name
          FROM unnest(%s::text[]) AS s (name)
         WHERE NOT EXISTS (SELECT FROM archive_segments a WHERE a.name = s.name)
           AND NOT ({IS_REFERRED_TO})
        """,
        (list(names),),
    )


async def lease_is_current(connection: Connection, job_id: UUID, lease: int) -> bool:
    """Whether a job may still append to its segment under this lease."""
    return await Tuples(connection).exists(
        """
        SELECT FROM crawl_jobs
         WHERE id = %s AND lease = %s AND status IN ('processing', 'paused')
        """,
        (job_id, lease),
    )


# --- deleting ------------------------------------------------------------------------------------


async def lock_closed_segment(connection: Connection, name: str) -> bool:
    """Lock a segment's row if the segment can no longer be written, and no merge keeps it.

    A lease that has ended never comes back, and its writer has committed by then, so
    the statements that follow see every reference there will ever be.
    """
    return await Tuples(connection).exists(
        f"""
        SELECT FROM archive_segments s
         WHERE s.name = %s AND NOT ({MAY_BE_WRITTEN})
           AND (s.keep_until IS NULL OR s.keep_until <= now())
           FOR UPDATE
        """,
        (name,),
    )


async def referring_tables(connection: Connection) -> list[Identifier]:
    """Return the tables that the view archive_references is made of."""
    return await Made(connection, Identifier).all(
        """
        SELECT DISTINCT c.relname
          FROM pg_rewrite r
          JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
          JOIN pg_class c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
         WHERE r.ev_class = 'archive_references'::regclass AND c.relkind IN ('r', 'p')
         ORDER BY c.relname
        """
    )


async def execute_for_each(
    connection: Connection, tables: Sequence[Identifier], statement: LiteralString, values: Any
) -> int:
    """Execute a statement once per table; return the number of rows."""
    rows = 0
    for table in tables:
        cursor = await connection.execute(SQL(statement).format(table=table), values)
        rows += cursor.rowcount
    return rows


async def drop_references(connection: Connection, segment: str) -> int:
    """Remove the references to a segment; return how many."""
    return await execute_for_each(
        connection,
        await referring_tables(connection),
        """
        UPDATE {table}
           SET segment = NULL, segment_offset = NULL, segment_length = NULL
         WHERE segment = %s
        """,
        (segment,),
    )


async def drop_references_at(connection: Connection, refs: Sequence[ArchiveRef]) -> int:
    """Remove the references to single records; return how many."""
    return await execute_for_each(
        connection,
        await referring_tables(connection),
        f"""
        UPDATE {{table}} t
           SET segment = NULL, segment_offset = NULL, segment_length = NULL
          FROM {_REFS}
         WHERE t.segment = r.segment
           AND t.segment_offset = r.start
           AND t.segment_length = r.length
        """,
        _REFS.values(refs, start="offset"),
    )


async def mark_going(connection: Connection, name: str) -> bool:
    """Mark a locked segment for deletion, unless a row refers to it."""
    marked = await Tuples(connection).affected(
        f"""
        UPDATE archive_segments s
           SET going_at = coalesce(going_at, now())
         WHERE s.name = %s AND NOT ({IS_REFERRED_TO})
        """,
        (name,),
    )
    return marked > 0


async def delete_row(connection: Connection, name: str) -> None:
    """Delete the row of a segment whose file is deleted."""
    await connection.execute(
        "DELETE FROM archive_segments WHERE name = %s AND going_at IS NOT NULL", (name,)
    )
