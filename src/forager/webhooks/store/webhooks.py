"""SQL of webhooks and of what was sent to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from psycopg.rows import class_row

from forager.db.database import Connection
from forager.webhooks.store.events import WEBHOOKS
from forager.webhooks.webhook import Delivery, Webhook


@dataclass(frozen=True, slots=True)
class Receiver:
    """What delivery needs to know of a webhook."""

    id: int
    url: str
    secret: bytes
    allow_private: bool
    failures: int


@dataclass(frozen=True, slots=True)
class Told:
    """An event as it is told: immutable, but for the product's present name."""

    id: int
    kind: str
    occurred_at: datetime
    payload: dict[str, Any]
    product_id: int | None
    product_url: str | None
    product_name: str | None
    domain: str | None


# the outbox is read by its index on unsent messages, so that what was sent costs nothing here
_SHOWN: LiteralString = """
    w.id, w.url, w.kinds, d.domain_name AS domain, w.allow_private, w.is_active,
    w.disabled_reason, w.failures, CASE WHEN w.rests_until > now() THEN w.rests_until END
    AS rests_until, (
        SELECT count(*) FROM outbox o
         WHERE o.topic = 'webhook' AND o.target_id = w.id
           AND o.sent_at IS NULL AND o.given_up_at IS NULL
    ) AS waiting, w.created_at, w.updated_at
"""


async def insert_webhook(
    connection: Connection,
    *,
    url: str,
    secret: bytes,
    kinds: Sequence[str],
    domain_id: int | None,
    allow_private: bool,
) -> int | None:
    """The new webhook's id; None if there is one for this URL."""
    cursor = await connection.execute(
        """
        INSERT INTO webhooks (url, secret, kinds, domain_id, allow_private)
        VALUES (%s, %s, %s, %s, %s)
            ON CONFLICT (url) DO NOTHING
        RETURNING id
        """,
        (url, secret, list(kinds), domain_id, allow_private),
    )
    row = await cursor.fetchone()
    return None if row is None else int(row[0])


async def select_webhooks(connection: Connection, *, after: int, limit: int) -> list[Webhook]:
    cursor = connection.cursor(row_factory=class_row(Webhook))
    await cursor.execute(
        f"""
        SELECT {_SHOWN}
          FROM webhooks w LEFT JOIN domains d ON d.id = w.domain_id
         WHERE w.id > %s
         ORDER BY w.id
         LIMIT %s
        """,
        (after, limit),
    )
    return await cursor.fetchall()


async def select_webhook(connection: Connection, webhook_id: int) -> Webhook | None:
    cursor = connection.cursor(row_factory=class_row(Webhook))
    await cursor.execute(
        f"""
        SELECT {_SHOWN}
          FROM webhooks w LEFT JOIN domains d ON d.id = w.domain_id
         WHERE w.id = %s
        """,
        (webhook_id,),
    )
    return await cursor.fetchone()


async def select_receiver(connection: Connection, webhook_id: int) -> Receiver | None:
    cursor = connection.cursor(row_factory=class_row(Receiver))
    await cursor.execute(
        "SELECT id, url, secret, allow_private, failures FROM webhooks WHERE id = %s",
        (webhook_id,),
    )
    return await cursor.fetchone()


async def select_ready(connection: Connection, *, busy: Sequence[int]) -> list[Receiver]:
    """Webhooks that something may be sent to now."""
    cursor = connection.cursor(row_factory=class_row(Receiver))
    await cursor.execute(
        """
        SELECT id, url, secret, allow_private, failures
          FROM webhooks
         WHERE is_active AND (rests_until IS NULL OR rests_until <= now())
           AND id <> ALL(%s::bigint[])
         ORDER BY id
        """,
        (list(busy),),
    )
    return await cursor.fetchall()


async def lock_webhook(connection: Connection, webhook_id: int) -> Webhook | None:
    """A webhook that nobody else changes until this transaction ends."""
    await connection.execute("SELECT FROM webhooks WHERE id = %s FOR NO KEY UPDATE", (webhook_id,))
    return await select_webhook(connection, webhook_id)


# What a change may name, and the column it goes to.
_SETTABLE: dict[str, LiteralString] = {
    "url": "url",
    "kinds": "kinds",
    "domain_id": "domain_id",
    "allow_private": "allow_private",
    "secret": "secret",
}


async def update_webhook(
    connection: Connection, webhook_id: int, values: Mapping[str, Any]
) -> None:
    """Set what is named. Another address has not failed yet, and is tried at once."""
    columns = [f"{_SETTABLE[name]} = %({name})s" for name in values]
    if "url" in values:
        columns.append("failures = CASE WHEN url = %(url)s THEN failures ELSE 0 END")
        columns.append("rests_until = CASE WHEN url = %(url)s THEN rests_until END")
    assignments: LiteralString = ", ".join([*columns, "updated_at = now()"])
    await connection.execute(
        f"UPDATE webhooks SET {assignments} WHERE id = %(id)s", {**values, "id": webhook_id}
    )


async def set_active(
    connection: Connection, webhook_id: int, active: bool, reason: str | None
) -> bool:
    """Enable, with no failure remembered, or disable; whether there is such a webhook."""
    cursor = await connection.execute(
        """
        UPDATE webhooks
           SET is_active = %(active)s, disabled_reason = %(reason)s, updated_at = now(),
               failures = CASE WHEN %(active)s THEN 0 ELSE failures END,
               rests_until = CASE WHEN %(active)s THEN NULL ELSE rests_until END
         WHERE id = %(id)s
        """,
        {"id": webhook_id, "active": active, "reason": reason},
    )
    return cursor.rowcount > 0


async def set_secret(connection: Connection, webhook_id: int, secret: bytes) -> bool:
    cursor = await connection.execute(
        "UPDATE webhooks SET secret = %s, updated_at = now() WHERE id = %s", (secret, webhook_id)
    )
    return cursor.rowcount > 0


async def delete_webhook(connection: Connection, webhook_id: int) -> bool:
    cursor = await connection.execute("DELETE FROM webhooks WHERE id = %s", (webhook_id,))
    return cursor.rowcount > 0


async def let_rest(connection: Connection, webhook_id: int, seconds: float) -> None:
    """One more failure: send nothing for a while."""
    await connection.execute(
        """
        UPDATE webhooks
           SET failures = failures + 1, rests_until = now() + make_interval(secs => %s)
         WHERE id = %s
        """,
        (seconds, webhook_id),
    )


async def forget_failures(connection: Connection, webhook_id: int) -> None:
    await connection.execute(
        "UPDATE webhooks SET failures = 0, rests_until = NULL WHERE id = %s AND failures > 0",
        (webhook_id,),
    )


async def select_told(connection: Connection, event_ids: Sequence[int]) -> list[Told]:
    cursor = connection.cursor(row_factory=class_row(Told))
    await cursor.execute(
        """
        SELECT e.id, e.kind, e.occurred_at, e.payload, e.product_id,
               p.url AS product_url, p.product_name, d.domain_name AS domain
          FROM catalog_events e
          LEFT JOIN products p ON p.id = e.product_id
          LEFT JOIN domains d ON d.id = e.domain_id
         WHERE e.id = ANY(%s::bigint[])
        """,
        (list(event_ids),),
    )
    return await cursor.fetchall()


async def select_deliveries(
    connection: Connection, webhook_id: int, *, state: str | None, before: int | None, limit: int
) -> list[Delivery]:
    """Messages to a webhook, newest first; a state is `waiting`, `sent` or `failed`."""
    cursor = connection.cursor(row_factory=class_row(Delivery))
    await cursor.execute(
        """
        SELECT o.id, o.ref_id AS event_id, e.kind, o.attempts, o.last_error, o.created_at,
               o.next_attempt_at, o.sent_at, o.given_up_at
          FROM outbox o
          LEFT JOIN catalog_events e ON e.id = o.ref_id
         WHERE o.topic = %(topic)s AND o.target_id = %(webhook_id)s
           AND (%(before)s::bigint IS NULL OR o.id < %(before)s)
           AND (%(state)s::text IS NULL OR %(state)s =
                CASE WHEN o.sent_at IS NOT NULL THEN 'sent'
                     WHEN o.given_up_at IS NOT NULL THEN 'failed' ELSE 'waiting' END)
         ORDER BY o.id DESC
         LIMIT %(limit)s
        """,
        {
            "topic": WEBHOOKS,
            "webhook_id": webhook_id,
            "state": state,
            "before": before,
            "limit": limit,
        },
    )
    return await cursor.fetchall()


async def delete_orphans(connection: Connection, limit: int) -> int:
    """Messages that were written while their webhook was being removed."""
    cursor = await connection.execute(
        """
        DELETE FROM outbox
         WHERE id IN (
            SELECT o.id FROM outbox o
             WHERE o.topic = %s AND o.sent_at IS NULL AND o.given_up_at IS NULL
               AND NOT EXISTS (SELECT FROM webhooks w WHERE w.id = o.target_id)
             LIMIT %s
               FOR UPDATE SKIP LOCKED
         )
        """,
        (WEBHOOKS, limit),
    )
    return cursor.rowcount
