"""SQL of webhooks and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from forager.db.database import Connection
from forager.db.rows import Rows, Values
from forager.outbox.store import UNSENT
from forager.webhooks.webhook import Delivery, Receiver, Webhook

# --- webhooks ------------------------------------------------------------------------------------

# the newest messages of a webhook, of which the failed ones are counted
RECENT: LiteralString = "100"

_WEBHOOKS: LiteralString = f"""
    SELECT w.id, w.url, w.kinds, d.domain_name AS domain, w.source_id, w.pattern, w.allow_private,
    w.ordered, w.is_active, w.disabled_reason, w.failures,
    CASE WHEN w.rests_until > now() THEN w.rests_until END AS retries_at,
    CASE WHEN w.failures > 0 THEN (
        SELECT o.last_error FROM outbox o
         WHERE o.topic = 'webhooks' AND o.lane = w.id AND o.last_error IS NOT NULL
           AND o.sent_at IS NULL
         ORDER BY o.id DESC LIMIT 1
    ) END AS last_error, (
        SELECT count(*) FROM outbox o WHERE o.topic = 'webhooks' AND o.lane = w.id AND {UNSENT}
    ) AS waiting, recent.tried AS recent_messages, recent.failed AS recent_failures,
    w.created_at, w.updated_at
      FROM webhooks w
      LEFT JOIN domains d ON d.id = w.domain_id
     CROSS JOIN LATERAL (
        SELECT count(*) AS tried, count(*) FILTER (WHERE o.sent_at IS NULL) AS failed
          FROM (
            SELECT sent_at, attempts FROM outbox
             WHERE topic = 'webhooks' AND lane = w.id
             ORDER BY id DESC LIMIT {RECENT}
         ) AS o
         WHERE o.attempts > 0
     ) AS recent
"""


async def insert_webhook(connection: Connection, values: Mapping[str, Any]) -> int | None:
    """The id of the new webhook; None if one exists for this URL."""
    columns, places = ", ".join(values), ", ".join(f"%({name})s" for name in values)
    return await Values(connection).first(
        f"""
        INSERT INTO webhooks ({columns}) VALUES ({places}) ON CONFLICT (url) DO NOTHING
        RETURNING id
        """,
        values,
    )


async def select_webhooks(connection: Connection, *, after: int, limit: int) -> list[Webhook]:
    """Webhooks by ID, after one."""
    return await Rows(connection, Webhook).all(
        f"{_WEBHOOKS} WHERE w.id > %s ORDER BY w.id LIMIT %s", (after, limit)
    )


async def select_webhook(connection: Connection, webhook_id: int) -> Webhook | None:
    """A webhook without its secret."""
    return await Rows(connection, Webhook).first(f"{_WEBHOOKS} WHERE w.id = %s", (webhook_id,))


async def select_receiver(connection: Connection, webhook_id: int) -> Receiver | None:
    """What is needed to send to a webhook."""
    return await Rows(connection, Receiver).first(
        "SELECT id, url, secret, allow_private, failures FROM webhooks WHERE id = %s", (webhook_id,)
    )


async def select_ready(connection: Connection, *, busy: Sequence[int]) -> list[Receiver]:
    """Active webhooks that can be sent to now, except the busy ones."""
    return await Rows(connection, Receiver).all(
        """
        SELECT id, url, secret, allow_private, failures
          FROM webhooks
         WHERE is_active AND (rests_until IS NULL OR rests_until <= now())
           AND id <> ALL(%s::bigint[])
         ORDER BY id
        """,
        (list(busy),),
    )


async def lock_webhook(connection: Connection, webhook_id: int) -> Webhook | None:
    """A webhook, locked until this transaction ends."""
    await connection.execute("SELECT FROM webhooks WHERE id = %s FOR NO KEY UPDATE", (webhook_id,))
    return await select_webhook(connection, webhook_id)


async def update_webhook(
    connection: Connection, webhook_id: int, values: Mapping[str, Any]
) -> None:
    """Set columns; a new URL resets the failures."""
    columns = [f"{name} = %({name})s" for name in values]
    if "url" in values:
        columns.append("failures = CASE WHEN url = %(url)s THEN failures ELSE 0 END")
        columns.append("rests_until = CASE WHEN url = %(url)s THEN rests_until END")
    assignments = ", ".join([*columns, "updated_at = now()"])
    await connection.execute(
        f"UPDATE webhooks SET {assignments} WHERE id = %(id)s", {**values, "id": webhook_id}
    )


async def set_active(
    connection: Connection, webhook_id: int, active: bool, reason: str | None
) -> None:
    """Enable a webhook, and reset its failures; or disable it."""
    await connection.execute(
        """
        UPDATE webhooks
           SET is_active = %(active)s, disabled_reason = %(reason)s, updated_at = now(),
               failures = CASE WHEN %(active)s THEN 0 ELSE failures END,
               rests_until = CASE WHEN %(active)s THEN NULL ELSE rests_until END
         WHERE id = %(id)s
        """,
        {"id": webhook_id, "active": active, "reason": reason},
    )


async def delete_webhook(connection: Connection, webhook_id: int) -> None:
    """Delete a webhook."""
    await connection.execute("DELETE FROM webhooks WHERE id = %s", (webhook_id,))


async def record_answers(
    connection: Connection, webhook_id: int, *, failures: int, was_taken: bool
) -> int:
    """Count failures in a row; `failures`: since the last accepted message."""
    value = await Values(connection).first(
        """
        UPDATE webhooks
           SET failures = CASE WHEN %(was_taken)s THEN 0 ELSE failures END + %(failures)s,
               rests_until = CASE WHEN %(was_taken)s THEN NULL ELSE rests_until END
         WHERE id = %(id)s AND (%(failures)s > 0 OR failures > 0)
        RETURNING failures
        """,
        {"id": webhook_id, "failures": failures, "was_taken": was_taken},
    )
    return int(value or 0)


async def pause(connection: Connection, webhook_id: int, seconds: float) -> None:
    """Send nothing to a webhook for a time."""
    await connection.execute(
        "UPDATE webhooks SET rests_until = now() + make_interval(secs => %s) WHERE id = %s",
        (seconds, webhook_id),
    )


async def reset_failures(connection: Connection, webhook_id: int) -> None:
    """Forget the failures of a webhook after a success."""
    await connection.execute(
        "UPDATE webhooks SET failures = 0, rests_until = NULL WHERE id = %s AND failures > 0",
        (webhook_id,),
    )


_DELIVERIES: LiteralString = """
    SELECT o.id, o.ref_id AS event_id, e.kind, o.attempts, o.last_error, o.created_at,
           o.due_at AS next_attempt_at, o.sent_at, o.given_up_at, {responses} AS responses
      FROM outbox o
      LEFT JOIN catalog_events e ON e.id = o.ref_id
"""


async def select_deliveries(
    connection: Connection, webhook_id: int, *, state: str | None, before: int | None, limit: int
) -> list[Delivery]:
    """Messages to a webhook, newest first, without responses.

    A state is `waiting`, `sent` or `failed`.
    """
    return await Rows(connection, Delivery).all(
        f"""
        {_DELIVERIES.format(responses="'[]'::jsonb")}
         WHERE o.topic = 'webhooks' AND o.lane = %(webhook_id)s
           AND (%(before)s::bigint IS NULL OR o.id < %(before)s)
           AND (%(state)s::text IS NULL OR %(state)s =
                CASE WHEN o.sent_at IS NOT NULL THEN 'sent'
                     WHEN o.given_up_at IS NOT NULL THEN 'failed' ELSE 'waiting' END)
         ORDER BY o.id DESC
         LIMIT %(limit)s
        """,
        {"webhook_id": webhook_id, "state": state, "before": before, "limit": limit},
    )


async def select_delivery(
    connection: Connection, webhook_id: int, message_id: int
) -> Delivery | None:
    """A message to a webhook, with the answers to its attempts."""
    return await Rows(connection, Delivery).first(
        f"""
        {_DELIVERIES.format(responses="coalesce(o.responses, '[]')")}
         WHERE o.topic = 'webhooks' AND o.lane = %s AND o.id = %s
        """,
        (webhook_id, message_id),
    )
