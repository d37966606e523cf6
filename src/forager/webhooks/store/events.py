"""SQL of events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from psycopg.rows import class_row

from forager.db.database import Connection
from forager.webhooks.webhook import EventRow

# the outbox topic of messages to webhooks
WEBHOOKS = "webhook"


async def insert_events(
    connection: Connection,
    *,
    kinds: Sequence[str],
    product_ids: Sequence[int | None],
    domain_ids: Sequence[int | None],
    payloads: Sequence[str],
) -> None:
    """Events, and a message for each webhook that wants one. Fetches nothing: fit for a pipeline.

    One statement: the messages cannot be there without the events, nor the other way round.
    """
    await connection.execute(
        """
        WITH added AS (
            INSERT INTO catalog_events (kind, product_id, domain_id, payload)
            SELECT kind, product_id, domain_id, payload
              FROM unnest(%(kinds)s::text[], %(product_ids)s::bigint[], %(domain_ids)s::bigint[],
                          %(payloads)s::jsonb[]) WITH ORDINALITY
                AS e (kind, product_id, domain_id, payload, place)
             ORDER BY place
            RETURNING id, kind, domain_id
        )
        INSERT INTO outbox (topic, ref_id, target_id)
        SELECT %(topic)s, added.id, w.id
          FROM added
          JOIN webhooks w
            ON w.is_active
           AND (w.kinds = '{}' OR added.kind = ANY(w.kinds))
           AND (w.domain_id IS NULL OR w.domain_id = added.domain_id OR EXISTS (
                SELECT FROM domains wanted, domains told
                 WHERE wanted.id = w.domain_id AND told.id = added.domain_id
                   AND right(told.domain_name, length(wanted.domain_name) + 1)
                       = '.' || wanted.domain_name
           ))
         ORDER BY added.id, w.id
        """,
        {
            "kinds": list(kinds),
            "product_ids": list(product_ids),
            "domain_ids": list(domain_ids),
            "payloads": list(payloads),
            "topic": WEBHOOKS,
        },
    )


async def select_events(
    connection: Connection,
    *,
    kind: str | None,
    domain_ids: Sequence[int] | None,
    product_id: int | None,
    since: datetime | None,
    before: int | None,
    limit: int,
) -> list[EventRow]:
    cursor = connection.cursor(row_factory=class_row(EventRow))
    await cursor.execute(
        """
        SELECT e.id, e.kind, e.product_id, e.domain_id, d.domain_name AS domain, e.payload,
               e.occurred_at
          FROM catalog_events e
          LEFT JOIN domains d ON d.id = e.domain_id
         WHERE (%(kind)s::text IS NULL OR e.kind = %(kind)s)
           AND (%(domain_ids)s::bigint[] IS NULL OR e.domain_id = ANY(%(domain_ids)s))
           AND (%(product_id)s::bigint IS NULL OR e.product_id = %(product_id)s)
           AND (%(since)s::timestamptz IS NULL OR e.occurred_at >= %(since)s)
           AND (%(before)s::bigint IS NULL OR e.id < %(before)s)
         ORDER BY e.id DESC
         LIMIT %(limit)s
        """,
        {
            "kind": kind,
            "domain_ids": None if domain_ids is None else list(domain_ids),
            "product_id": product_id,
            "since": since,
            "before": before,
            "limit": limit,
        },
    )
    return await cursor.fetchall()


async def delete_old_events(connection: Connection, *, days: float, limit: int) -> int:
    """Events past their age; not those that somebody is still to hear of."""
    cursor = await connection.execute(
        """
        DELETE FROM catalog_events
         WHERE id IN (
            SELECT e.id
              FROM catalog_events e
             WHERE e.occurred_at < now() - make_interval(secs => %(days)s * 86400)
               AND NOT EXISTS (
                SELECT FROM outbox o
                 WHERE o.topic = %(topic)s AND o.ref_id = e.id
                   AND o.sent_at IS NULL AND o.given_up_at IS NULL
               )
             ORDER BY e.occurred_at
             LIMIT %(limit)s
         )
        """,
        {"days": days, "topic": WEBHOOKS, "limit": limit},
    )
    return cursor.rowcount
