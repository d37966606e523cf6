"""SQL of the outbox: claimed by what is unsent, never by a high-water mark.

Ids commit out of order: whoever remembers the highest id it has sent loses the message that got a
lower one and committed later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from psycopg.rows import class_row, scalar_row

from forager.db.database import Connection

_UNSENT: LiteralString = "o.sent_at IS NULL AND o.given_up_at IS NULL"


@dataclass(frozen=True, slots=True)
class Message:
    """A claimed message; `attempts` are those before this one."""

    id: int
    ref_id: int
    target_id: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A message that was not taken, why, and when it is tried again; None: never."""

    message_id: int
    error: str
    wait: float | None


async def claim(
    connection: Connection,
    topic: str,
    *,
    targets: Sequence[int],
    limits: Sequence[int],
    lease_seconds: float,
    claimed_by: UUID | None = None,
) -> list[Message]:
    """Due messages of each target, up to its own limit. Nobody else gets them during the lease.

    A lease, not a lock: no transaction is open while something is sent.
    """
    cursor = connection.cursor(row_factory=class_row(Message))
    await cursor.execute(
        f"""
        WITH picked AS (
            SELECT due.id
              FROM unnest(%(targets)s::bigint[], %(limits)s::int[]) AS target (id, most)
             CROSS JOIN LATERAL (
                SELECT o.id
                  FROM outbox o
                 WHERE o.topic = %(topic)s AND o.target_id = target.id AND {_UNSENT}
                   AND o.next_attempt_at <= now()
                 ORDER BY o.next_attempt_at, o.id
                 LIMIT target.most
                   FOR UPDATE SKIP LOCKED
             ) AS due
        )
        UPDATE outbox o
           SET next_attempt_at = now() + make_interval(secs => %(lease)s),
               claimed_by = %(claimed_by)s
          FROM picked
         WHERE o.id = picked.id
        RETURNING o.id, o.ref_id, o.target_id, o.attempts
        """,
        {
            "topic": topic,
            "targets": list(targets),
            "limits": list(limits),
            "lease": lease_seconds,
            "claimed_by": claimed_by,
        },
    )
    return sorted(await cursor.fetchall(), key=lambda message: message.id)


async def mark_sent(connection: Connection, ids: Sequence[int]) -> None:
    await connection.execute(
        """
        UPDATE outbox
           SET sent_at = now(), attempts = attempts + 1, last_error = NULL, claimed_by = NULL
         WHERE id = ANY(%s::bigint[]) AND sent_at IS NULL
        """,
        (sorted(ids),),
    )


async def mark_failed(connection: Connection, failures: Sequence[Failure]) -> None:
    await connection.execute(
        f"""
        UPDATE outbox o
           SET attempts = o.attempts + 1,
               claimed_by = NULL,
               last_error = f.error,
               next_attempt_at = now() + make_interval(secs => coalesce(f.wait, 0)),
               given_up_at = CASE WHEN f.wait IS NULL THEN now() END
          FROM unnest(%s::bigint[], %s::text[], %s::float8[]) AS f (id, error, wait)
         WHERE o.id = f.id AND {_UNSENT}
        """,
        (
            [failure.message_id for failure in failures],
            [failure.error for failure in failures],
            [failure.wait for failure in failures],
        ),
    )


async def release(connection: Connection, ids: Sequence[int]) -> None:
    """Give back what was claimed and not tried."""
    await connection.execute(
        f"""
        UPDATE outbox o SET next_attempt_at = now(), claimed_by = NULL
         WHERE o.id = ANY(%s::bigint[]) AND {_UNSENT}
        """,
        (sorted(ids),),
    )


async def select_claimants(connection: Connection) -> list[UUID]:
    """Processes that hold claimed messages."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute("SELECT DISTINCT claimed_by FROM outbox WHERE claimed_by IS NOT NULL")
    return await cursor.fetchall()


async def release_claims(connection: Connection, claimants: Sequence[UUID]) -> int:
    """Make messages due at once that these processes claimed; return their number."""
    cursor = await connection.execute(
        f"""
        UPDATE outbox o SET next_attempt_at = now(), claimed_by = NULL
         WHERE o.claimed_by = ANY(%s::uuid[]) AND {_UNSENT}
        """,
        (list(claimants),),
    )
    return cursor.rowcount


async def give_up_old(
    connection: Connection, topic: str, *, seconds: float, error: str, limit: int
) -> int:
    """Stop trying what is older than this."""
    cursor = await connection.execute(
        f"""
        UPDATE outbox
           SET given_up_at = now(), last_error = coalesce(last_error || '; ', '') || %(error)s
         WHERE id IN (
            SELECT o.id FROM outbox o
             WHERE o.topic = %(topic)s AND {_UNSENT}
               AND o.created_at < now() - make_interval(secs => %(seconds)s)
             ORDER BY o.id
             LIMIT %(limit)s
               FOR UPDATE SKIP LOCKED
         )
        """,
        {"topic": topic, "seconds": seconds, "error": error, "limit": limit},
    )
    return cursor.rowcount


async def purge(connection: Connection, *, seconds: float, limit: int) -> int:
    """Delete messages that were sent or given up this long ago."""
    cursor = await connection.execute(
        """
        DELETE FROM outbox
         WHERE id IN (
            SELECT id FROM outbox
             WHERE coalesce(sent_at, given_up_at) < now() - make_interval(secs => %s)
             ORDER BY coalesce(sent_at, given_up_at)
             LIMIT %s
               FOR UPDATE SKIP LOCKED
         )
        """,
        (seconds, limit),
    )
    return cursor.rowcount


async def renew(
    connection: Connection, topic: str, target_id: int, *, ids: Sequence[int] | None
) -> int:
    """Try again what was given up, and at once what waits: all of a target, or these."""
    cursor = await connection.execute(
        """
        UPDATE outbox
           SET next_attempt_at = now(), attempts = 0, created_at = now(), given_up_at = NULL,
               claimed_by = NULL
         WHERE topic = %(topic)s AND target_id = %(target_id)s AND sent_at IS NULL
           AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s::bigint[]))
        """,
        {"topic": topic, "target_id": target_id, "ids": None if ids is None else list(ids)},
    )
    return cursor.rowcount


async def delete_target(connection: Connection, topic: str, target_id: int) -> None:
    await connection.execute(
        "DELETE FROM outbox WHERE topic = %s AND target_id = %s", (topic, target_id)
    )
