"""Webhooks, messages to them and events, as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forager.cli.event_words import words_of
from forager.cli.output import show_facts, show_table
from forager.cli.words import long_time, on_one_line, short_time

if TYPE_CHECKING:
    from forager.webhooks.store.events import EventRow
    from forager.webhooks.store.webhooks import Delivery, Webhook

RIGHT: dict[str, Any] = {"justify": "right"}


def show_webhooks(webhooks: Sequence[Webhook]) -> None:
    rows = [
        (webhook.id, webhook.url, _state(webhook), webhook.waiting, _wants(webhook))
        for webhook in webhooks
    ]
    show_table("ID>, URL, STATE, WAITING>, TELLS", rows)


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
    show_facts(facts)


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
    show_table("MESSAGE>, EVENT>, KIND, STATE, ATTEMPTS>, CREATED, LAST ERROR", rows)


def _delivery_state(delivery: Delivery) -> tuple[str, str]:
    if delivery.sent_at is not None:
        return f"sent {short_time(delivery.sent_at)}", "green"
    if delivery.given_up_at is not None:
        return "failed", "red"
    return f"next try {short_time(delivery.next_attempt_at)}", "yellow"


def show_events(events: Sequence[EventRow]) -> None:
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
    show_table("ID>, WHEN, KIND, PRODUCT>, DOMAIN, WHAT…", rows)
