"""SQL of what an engine has not been told yet. Claimed by what is there, never by a high mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import LiteralString

from psycopg.rows import class_row, scalar_row

from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class IndexMessage:
    """A row has changed; `sections` are those that a deleted document had."""

    id: int
    ref_id: int
    sections: int | None


def tell_rows(kind: LiteralString, rows: LiteralString) -> LiteralString:
    """The INSERT for the (id, sections) of a query, as a part of the caller's statement."""
    return f"""
        INSERT INTO index_outbox (kind, ref_id, sections)
        SELECT '{kind}', changed.id, changed.sections
          FROM ({rows}) AS changed (id, sections)
         WHERE EXISTS (SELECT FROM search_indexes WHERE kind = '{kind}')
    """


async def tell(connection: Connection, kind: LiteralString, ids: Sequence[int]) -> None:
    """Enqueue rows that this transaction has changed and holds, if there is an engine."""
    rows: LiteralString = "SELECT id, NULL::integer FROM unnest(%s::bigint[]) AS u (id)"
    await connection.execute(tell_rows(kind, rows), (list(ids),))


async def has_due(connection: Connection, kind: str) -> bool:
    cursor = await connection.execute(
        "SELECT FROM index_outbox WHERE kind = %s AND next_attempt_at <= now() LIMIT 1", (kind,)
    )
    return await cursor.fetchone() is not None


async def claim(
    connection: Connection, kind: str, *, limit: int, lease_seconds: float
) -> list[IndexMessage]:
    """Due messages, the longest waiting first; nobody else gets them during the lease."""
    cursor = connection.cursor(row_factory=class_row(IndexMessage))
    await cursor.execute(
        """
        WITH picked AS (
            SELECT id
              FROM index_outbox
             WHERE kind = %(kind)s AND next_attempt_at <= now()
             ORDER BY next_attempt_at, id
             LIMIT %(limit)s
               FOR UPDATE SKIP LOCKED
        )
        UPDATE index_outbox o
           SET next_attempt_at = now() + make_interval(secs => %(lease)s)
          FROM picked
         WHERE o.id = picked.id
        RETURNING o.id, o.ref_id, o.sections
        """,
        {"kind": kind, "limit": limit, "lease": lease_seconds},
    )
    return await cursor.fetchall()


async def delete_told(connection: Connection, ids: Sequence[int]) -> None:
    await connection.execute("DELETE FROM index_outbox WHERE id = ANY(%s)", (sorted(ids),))


async def release(connection: Connection, ids: Sequence[int]) -> None:
    """Give back what was claimed and not told."""
    await connection.execute(
        "UPDATE index_outbox SET next_attempt_at = now() WHERE id = ANY(%s)", (sorted(ids),)
    )


async def postpone(connection: Connection, errors: Mapping[int, str], *, seconds: float) -> None:
    """Messages that the engine refuses: they stay, and PostgreSQL looks at their rows itself."""
    await connection.execute(
        """
        UPDATE index_outbox o
           SET attempts = o.attempts + 1, last_error = e.error,
               next_attempt_at = now() + make_interval(secs => %s)
          FROM unnest(%s::bigint[], %s::text[]) AS e (id, error)
         WHERE o.id = e.id
        """,
        (seconds, list(errors), list(errors.values())),
    )


async def insert_refused(
    connection: Connection, kind: str, errors: Mapping[int, str], *, seconds: float
) -> None:
    """The same for rows that the engine refused when an index was filled."""
    await connection.execute(
        """
        INSERT INTO index_outbox (kind, ref_id, attempts, last_error, next_attempt_at)
        SELECT %s, id, 1, error, now() + make_interval(secs => %s)
          FROM unnest(%s::bigint[], %s::text[]) AS e (id, error)
        """,
        (kind, seconds, list(errors), list(errors.values())),
    )


async def select_untold(connection: Connection, kind: str, limit: int) -> list[int]:
    """Rows that the engine may not know as they are; at most so many."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        "SELECT ref_id FROM index_outbox WHERE kind = %s LIMIT %s",
        (kind, limit),
    )
    return await cursor.fetchall()


async def delete_orphans(connection: Connection, limit: int) -> int:
    """Delete messages about indexes that are not there; how many."""
    cursor = await connection.execute(
        """
        DELETE FROM index_outbox
         WHERE id IN (
            SELECT o.id FROM index_outbox o
             WHERE NOT EXISTS (SELECT FROM search_indexes i WHERE i.kind = o.kind)
             LIMIT %s
               FOR UPDATE SKIP LOCKED
         )
        """,
        (limit,),
    )
    return cursor.rowcount


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many messages wait, for how long the oldest does, and how many were refused."""

    waiting: int
    seconds: float
    refused: int


async def select_backlog(connection: Connection, kind: str) -> Backlog:
    cursor = connection.cursor(row_factory=class_row(Backlog))
    await cursor.execute(
        """
        SELECT count(*) FILTER (WHERE attempts = 0) AS waiting,
               coalesce(extract(epoch FROM now() - min(created_at) FILTER (WHERE attempts = 0)),
                        0)::float8 AS seconds,
               count(*) FILTER (WHERE attempts > 0) AS refused
          FROM index_outbox WHERE kind = %s
        """,
        (kind,),
    )
    row = await cursor.fetchone()
    assert row is not None
    return row
