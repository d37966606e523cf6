"""SQL of the outbox: messages are claimed by being unsent, never by a high-water mark.

Ids commit out of order: a reader that remembers the highest id it has sent loses the message that
got a lower id and was committed later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString
from uuid import UUID

import orjson

from forager.db.database import Connection
from forager.db.retention import OldRows
from forager.db.rows import RowArrays, Rows, Tuples, Values
from forager.outbox.message import Failure, Lane, Message, OutboxBacklog

UNSENT: LiteralString = "sent_at IS NULL AND given_up_at IS NULL"
_LANES = RowArrays("wanted", topic="text", number="bigint", most="int")
_FAILURES = RowArrays("f", message_id="bigint", error="text", wait="float8")


def enqueue(
    rows: LiteralString, columns: LiteralString = "topic, lane, ref_id, payload"
) -> LiteralString:
    """The INSERT of the rows of a query, to be run in the transaction of the change."""
    return f"INSERT INTO outbox ({columns}) {rows}"


async def claim(
    connection: Connection,
    lanes: Sequence[Lane],
    *,
    lease: float,
    limit: int | None = None,
    claimed_by: UUID | None = None,
) -> list[Message]:
    """Due messages of these lanes, the first lane first; no other process gets them meanwhile.

    A lease in seconds, not a lock: no transaction is open while messages are sent. A message with
    an order key waits until all earlier ones of its lane with that key are done.
    """
    found = await Rows(connection, Message).all(
        f"""
        WITH picked AS MATERIALIZED (
            SELECT due.id
              FROM {_LANES}
             CROSS JOIN LATERAL (
                SELECT o.id
                  FROM outbox o
                 WHERE o.topic = wanted.topic AND o.lane = wanted.number AND {UNSENT}
                   AND o.due_at <= now()
                   AND (o.order_key IS NULL OR NOT EXISTS (
                        SELECT FROM outbox earlier
                         WHERE earlier.topic = o.topic AND earlier.lane = o.lane
                           AND earlier.order_key = o.order_key AND earlier.id < o.id
                           AND earlier.sent_at IS NULL AND earlier.given_up_at IS NULL
                   ))
                 ORDER BY o.due_at, o.id
                 LIMIT wanted.most
                   FOR UPDATE SKIP LOCKED
             ) AS due
             LIMIT %(limit)s
        )
        UPDATE outbox o
           SET due_at = now() + make_interval(secs => %(lease)s), claimed_by = %(claimed_by)s
          FROM picked
         WHERE o.id = picked.id
        RETURNING o.id, o.topic, o.lane, o.ref_id, o.payload, o.attempts
        """,
        {
            **_LANES.values(lanes, most="limit"),
            "limit": limit,
            "lease": lease,
            "claimed_by": claimed_by,
        },
    )
    return sorted(found, key=lambda message: (message.lane, message.id))


async def delete(connection: Connection, ids: Sequence[int]) -> int:
    """Acknowledge messages of which no record is kept; return how many there were."""
    return await Tuples(connection).affected(
        "DELETE FROM outbox WHERE id = ANY(%s)", (sorted(ids),)
    )


async def mark_sent(connection: Connection, ids: Sequence[int]) -> None:
    """Acknowledge messages that stay as a record of what was sent."""
    await connection.execute(
        """
        UPDATE outbox
           SET sent_at = now(), attempts = attempts + 1, last_error = NULL, claimed_by = NULL
         WHERE id = ANY(%s::bigint[]) AND sent_at IS NULL
        """,
        (sorted(ids),),
    )


async def mark_failed(connection: Connection, failures: Sequence[Failure]) -> None:
    """Count a failed attempt of each message, and set when it is due again."""
    await connection.execute(
        f"""
        UPDATE outbox
           SET attempts = attempts + 1,
               claimed_by = NULL,
               last_error = f.error,
               due_at = now() + make_interval(secs => coalesce(f.wait, 0)),
               given_up_at = CASE WHEN f.wait IS NULL THEN now() END
          FROM {_FAILURES}
         WHERE id = f.message_id AND {UNSENT}
        """,
        _FAILURES.values(failures),
    )


async def record_responses(
    connection: Connection, responses: Mapping[int, Mapping[str, Any]]
) -> None:
    """Add a response to each of these messages; the last three are kept."""
    await connection.execute(
        """
        UPDATE outbox
           SET responses = jsonb_path_query_array(
                   jsonb_build_array(r.response) || coalesce(responses, '[]'), '$[0 to 2]')
          FROM unnest(%s::bigint[], %s::jsonb[]) AS r (message_id, response)
         WHERE id = r.message_id
        """,
        (list(responses), [orjson.dumps(response).decode() for response in responses.values()]),
    )


async def insert_failed(
    connection: Connection, topic: str, errors: Mapping[int, str], *, wait: float
) -> None:
    """Messages about rows whose first attempt was made, and failed, without a message."""
    await connection.execute(
        """
        INSERT INTO outbox (topic, ref_id, attempts, last_error, due_at)
        SELECT %s, ref_id, 1, error, now() + make_interval(secs => %s)
          FROM unnest(%s::bigint[], %s::text[]) AS e (ref_id, error)
        """,
        (topic, wait, list(errors), list(errors.values())),
    )


async def release(connection: Connection, ids: Sequence[int]) -> None:
    """Make claimed messages due that were not tried."""
    await connection.execute(
        f"UPDATE outbox SET due_at = now(), claimed_by = NULL WHERE id = ANY(%s) AND {UNSENT}",
        (sorted(ids),),
    )


async def select_claimants(connection: Connection) -> list[UUID]:
    """Processes that hold claimed messages."""
    return await Values(connection).all(
        "SELECT DISTINCT claimed_by FROM outbox WHERE claimed_by IS NOT NULL"
    )


async def release_claims(connection: Connection, claimants: Sequence[UUID]) -> int:
    """Make all messages due that these processes claimed; return their number."""
    return await Tuples(connection).affected(
        f"""
        UPDATE outbox SET due_at = now(), claimed_by = NULL
         WHERE claimed_by = ANY(%s::uuid[]) AND {UNSENT}
        """,
        (list(claimants),),
    )


async def renew(connection: Connection, lane: Lane, *, ids: Sequence[int] | None = None) -> int:
    """Make unsent messages of a lane due as if they were new, also those that were given up."""
    return await Tuples(connection).affected(
        """
        UPDATE outbox
           SET due_at = now(), attempts = 0, created_at = now(), given_up_at = NULL,
               claimed_by = NULL
         WHERE topic = %(topic)s AND lane = %(lane)s AND sent_at IS NULL
           AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s::bigint[]))
        """,
        {"topic": lane.topic, "lane": lane.number, "ids": None if ids is None else list(ids)},
    )


async def delete_lane(connection: Connection, lane: Lane) -> None:
    """Delete all messages of a receiver."""
    await connection.execute(
        "DELETE FROM outbox WHERE topic = %s AND lane = %s", (lane.topic, lane.number)
    )


async def has_due(connection: Connection, topic: str) -> bool:
    """Whether a message of a topic can be sent now."""
    return await Tuples(connection).exists(
        f"SELECT FROM outbox WHERE topic = %s AND {UNSENT} AND due_at <= now() LIMIT 1", (topic,)
    )


async def select_backlog(connection: Connection, topics: Sequence[str]) -> OutboxBacklog:
    """How many messages of the topics wait, since when, and how many were refused."""
    row = await Rows(connection, OutboxBacklog).first(
        f"""
        SELECT count(*) FILTER (WHERE attempts = 0)::int AS waiting,
               coalesce(extract(epoch FROM now() - min(created_at) FILTER (WHERE attempts = 0)),
                        0)::float8 AS oldest_seconds,
               count(*) FILTER (WHERE attempts > 0)::int AS refused
          FROM outbox WHERE topic = ANY(%s::text[]) AND {UNSENT}
        """,
        (list(topics),),
    )
    assert row is not None
    return row


# --- clean-up ------------------------------------------------------------------------------------


async def give_up_old(connection: Connection, topic: str, *, seconds: float, limit: int) -> int:
    """Stop trying messages that are older than this."""
    return await Tuples(connection).affected(
        f"""
        UPDATE outbox
           SET given_up_at = now(), claimed_by = NULL,
               last_error = concat_ws('; ', last_error, 'not taken in time')
         WHERE id IN (
            SELECT id FROM outbox
             WHERE topic = %s AND {UNSENT} AND created_at < now() - make_interval(secs => %s)
             ORDER BY id
             LIMIT %s
               FOR UPDATE SKIP LOCKED
         )
        """,
        (topic, seconds, limit),
    )


# messages that were sent or given up long ago
DONE = OldRows(
    "outbox",
    "coalesce(t.sent_at, t.given_up_at) < now() - make_interval(secs => %(seconds)s)",
    "coalesce(t.sent_at, t.given_up_at)",
)


def unsent(condition: LiteralString) -> OldRows:
    """Messages that have no receiver any more, by a condition of their owner."""
    return OldRows("outbox", f"{UNSENT} AND {condition}")
