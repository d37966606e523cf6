"""SQL of events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from forager.db.database import Connection
from forager.db.retention import OldRows
from forager.db.rows import RowArrays, Rows, Tuples, Values
from forager.events.event import EventContent, EventRow
from forager.outbox.store import UNSENT, enqueue

# the outbox topic of published generations whose changes are reported
CHANGES = "source changes"
_NEW = RowArrays(
    "e",
    kind="text",
    product_id="bigint",
    domain_id="bigint",
    source_id="text",
    user_id="uuid",
    payload="jsonb",
)


async def insert_events(
    connection: Connection, events: Sequence[Any], *, payloads: list[str]
) -> None:
    """Insert events, and a message for each subscribed webhook; fetch nothing, for pipelines.

    One statement: there are no messages without their events, and no events without messages.
    """
    messages: LiteralString = """
        SELECT 'webhooks', w.id, added.id, CASE WHEN w.ordered THEN added.product_id END
          FROM added
          JOIN webhooks w
            ON w.is_active
           AND (w.kinds = '{}' OR added.kind = ANY(w.kinds))
           AND (w.source_id IS NULL OR w.source_id = added.source_id
                OR starts_with(added.source_id, w.source_id || '@'))
           AND (added.kind <> 'source.changed'
                OR w.pattern IS NOT DISTINCT FROM added.payload ->> 'pattern')
           AND (w.domain_id IS NULL OR w.domain_id = added.domain_id OR EXISTS (
                SELECT FROM domains wanted, domains actual
                 WHERE wanted.id = w.domain_id AND actual.id = added.domain_id
                   AND right(actual.domain_name, length(wanted.domain_name) + 1)
                       = '.' || wanted.domain_name
           ))
         ORDER BY added.id, w.id
    """
    await connection.execute(
        f"""
        WITH added AS (
            INSERT INTO catalog_events (kind, product_id, domain_id, source_id, user_id, payload)
            SELECT kind, product_id, domain_id, source_id, user_id, payload
              FROM {_NEW.unnest} WITH ORDINALITY AS e ({_NEW.columns}, place)
             ORDER BY place
            RETURNING id, kind, product_id, domain_id, source_id, payload
        )
        {enqueue(messages, "topic, lane, ref_id, order_key")}
        """,
        _NEW.values(events, payload=payloads),
    )


_EVENT: LiteralString = """
    e.id, e.kind, e.product_id, e.domain_id, d.domain_name AS domain, e.source_id, e.payload,
    e.occurred_at
"""


async def select_events(
    connection: Connection,
    *,
    kind: str | None,
    domain_ids: Sequence[int] | None,
    product_id: int | None,
    source_id: str | None,
    user_id: UUID | None,
    since: datetime | None,
    before: int | None,
    limit: int,
) -> list[EventRow]:
    """Events, newest first, that meet all conditions that are given."""
    return await Rows(connection, EventRow).all(
        f"""
        SELECT {_EVENT}
          FROM catalog_events e
          LEFT JOIN domains d ON d.id = e.domain_id
         WHERE (%(kind)s::text IS NULL OR e.kind = %(kind)s)
           AND (%(domain_ids)s::bigint[] IS NULL OR e.domain_id = ANY(%(domain_ids)s))
           AND (%(product_id)s::bigint IS NULL OR e.product_id = %(product_id)s)
           AND (%(source_id)s::text IS NULL OR e.source_id = %(source_id)s
                OR starts_with(e.source_id, %(source_id)s || '@'))
           AND (%(user_id)s::uuid IS NULL OR e.user_id = %(user_id)s
                OR e.source_id IS NULL AND e.user_id IS NULL)
           AND (%(since)s::timestamptz IS NULL OR e.occurred_at >= %(since)s)
           AND (%(before)s::bigint IS NULL OR e.id < %(before)s)
         ORDER BY e.id DESC
         LIMIT %(limit)s
        """,
        {
            "kind": kind,
            "domain_ids": None if domain_ids is None else list(domain_ids),
            "product_id": product_id,
            "source_id": source_id,
            "user_id": user_id,
            "since": since,
            "before": before,
            "limit": limit,
        },
    )


# events of unsent messages are kept
OLD_EVENTS = OldRows(
    "catalog_events",
    f"""
    t.occurred_at < now() - make_interval(secs => %(days)s * 86400)
    AND NOT EXISTS (
        SELECT FROM outbox o WHERE o.topic = 'webhooks' AND o.ref_id = t.id AND {UNSENT}
    )
    """,
    "t.occurred_at",
)


async def select_contents(connection: Connection, event_ids: Sequence[int]) -> list[EventContent]:
    """Events with what their messages say about the product."""
    return await Rows(connection, EventContent).all(
        f"""
        SELECT {_EVENT}, p.url AS product_url, p.product_name, e.user_id
          FROM catalog_events e
          LEFT JOIN products p ON p.id = e.product_id
          LEFT JOIN domains d ON d.id = e.domain_id
         WHERE e.id = ANY(%s::bigint[])
        """,
        (list(event_ids),),
    )


async def select_subscribed_patterns(connection: Connection, source_id: str) -> list[str | None]:
    """The patterns of webhooks that receive changes of a source; None: all its pages."""
    return await Values(connection).all(
        """
        SELECT DISTINCT pattern
          FROM webhooks
         WHERE is_active AND (kinds = '{}' OR 'source.changed' = ANY(kinds))
           AND (source_id IS NULL OR source_id = %(source)s
                OR starts_with(%(source)s, source_id || '@'))
         ORDER BY pattern
        """,
        {"source": source_id},
    )


async def enqueue_changes(
    connection: Connection, source_id: str, generation_id: int, before: int
) -> None:
    """Let the changes since a generation be reported, if a webhook receives them."""
    rows: LiteralString = """
        SELECT %(topic)s, 0, %(generation)s, ARRAY[%(before)s]::bigint[]
         WHERE EXISTS (
            SELECT FROM webhooks
             WHERE is_active AND (kinds = '{}' OR 'source.changed' = ANY(kinds))
               AND (source_id IS NULL OR source_id = %(source)s
                    OR starts_with(%(source)s, source_id || '@'))
         )
    """
    await connection.execute(
        enqueue(rows),
        {"topic": CHANGES, "source": source_id, "generation": generation_id, "before": before},
    )


async def occurred_since(
    connection: Connection, kind: str, source_id: str, since: datetime
) -> bool:
    """Whether a source had an event of this kind after a time."""
    return await Tuples(connection).exists(
        """
        SELECT FROM catalog_events
         WHERE kind = %s AND source_id = %s AND occurred_at > %s
        """,
        (kind, source_id, since),
    )
