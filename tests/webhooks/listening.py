"""Webhooks of tests, the events they subscribe to, and the states of their deliveries."""

from __future__ import annotations

from typing import Any

from forager.db.database import Database
from forager.events.event import EventKind, NewEvent
from forager.events.service import record_events
from forager.webhooks.service import NewWebhook, Webhooks, WebhookWithSecret
from webhooks.receiver import Receiver


async def listen(webhooks: Webhooks, receiver: Receiver, **options: Any) -> WebhookWithSecret:
    return await webhooks.add(NewWebhook(receiver.url, allow_private=True, **options))


def secret_of(issued: WebhookWithSecret) -> str:
    assert issued.secret is not None
    return issued.secret


async def happen(database: Database, number: int = 1, product_id: int | None = None) -> None:
    events = [
        NewEvent(EventKind.PRICE_CHANGED, product_id, None, {"n": n, "old": "10", "new": "9"})
        for n in range(number)
    ]
    async with database.transaction() as connection:
        await record_events(connection, events)


async def states(webhooks: Webhooks, webhook_id: int) -> list[str]:
    page = await webhooks.deliveries(webhook_id)
    return [
        "sent" if each.sent_at else "failed" if each.given_up_at else "waiting"
        for each in page.items
    ]
