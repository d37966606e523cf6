"""Webhooks, messages to them and events, as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forager.cli.event_words import words_of
from forager.cli.output import show_table
from forager.cli.words import long_time, on_one_line, short_time

if TYPE_CHECKING:
    from forager.webhooks.store.events import EventRow
    from forager.webhooks.store.webhooks import Delivery, Webhook

RIGHT: dict[str, Any] = {"justify": "right"}


def show_webhooks(webhooks: Sequence[Webhook]) -> None:
    columns: dict[str, dict[str, Any]] = {
        "ID": RIGHT,
        "URL": {},
        "STATE": {},
        "WAITING": RIGHT,
        "TELLS": {},
    }
    rows = [
        (webhook.id, webhook.url, _state(webhook), webhook.waiting, _wants(webhook))
        for webhook in webhooks
    ]
    show_table(columns, rows)


def show_webhook(webhook: Webhook) -> None:
    facts = {
        "id": webhook.id,
        "url": webhook.url,
        "state": _state(webhook)[0],
        "tells": _wants(webhook),
        "private": "addresses allowed" if webhook.allow_private else "",
        "waiting": webhook.waiting,
        "failures": webhook.failures or "",
        "added": long_time(webhook.created_at),
    }
    show_table({"": {"style": "bold"}, " ": {}}, [(k, v) for k, v in facts.items() if v != ""])


def _state(webhook: Webhook) -> tuple[str, str]:
    if not webhook.is_active:
        return f"disabled: {webhook.disabled_reason}", "yellow"
    if webhook.rests_until is not None:
        return f"failing; next try {short_time(webhook.rests_until)}", "red"
    return "active", "green"


def _wants(webhook: Webhook) -> str:
    kinds = ", ".join(webhook.kinds) or "all events"
    return f"{kinds} of {webhook.domain}" if webhook.domain else kinds


def show_deliveries(deliveries: Sequence[Delivery]) -> None:
    columns: dict[str, dict[str, Any]] = {
        "MESSAGE": RIGHT,
        "EVENT": RIGHT,
        "KIND": {},
        "STATE": {},
        "ATTEMPTS": RIGHT,
        "CREATED": {},
        "LAST ERROR": {},
    }
    rows = [
        (
            delivery.id,
            delivery.event_id,
            delivery.kind,
            _delivery_state(delivery),
            delivery.attempts,
            short_time(delivery.created_at),
            on_one_line(delivery.last_error or ""),
        )
        for delivery in deliveries
    ]
    show_table(columns, rows)


def _delivery_state(delivery: Delivery) -> tuple[str, str]:
    if delivery.sent_at is not None:
        return f"sent {short_time(delivery.sent_at)}", "green"
    if delivery.given_up_at is not None:
        return "failed", "red"
    return f"next try {short_time(delivery.next_attempt_at)}", "yellow"


def show_events(events: Sequence[EventRow]) -> None:
    columns: dict[str, dict[str, Any]] = {
        "ID": RIGHT,
        "WHEN": {},
        "KIND": {},
        "PRODUCT": RIGHT,
        "DOMAIN": {},
        "WHAT": {"cut": True},
    }
    rows = [
        (
            event.id,
            short_time(event.occurred_at),
            event.kind,
            event.product_id,
            event.domain,
            words_of(event),
        )
        for event in events
    ]
    show_table(columns, rows)
