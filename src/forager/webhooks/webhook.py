"""Webhooks, their deliveries and events as they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Webhook:
    """What may be shown of a webhook; its secret is not part of it."""

    id: int
    url: str
    kinds: list[str]
    domain: str | None
    allow_private: bool
    is_active: bool
    disabled_reason: str | None
    failures: int
    rests_until: datetime | None
    waiting: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message to one webhook, and what became of it."""

    id: int
    event_id: int
    kind: str | None
    attempts: int
    last_error: str | None
    created_at: datetime
    next_attempt_at: datetime
    sent_at: datetime | None
    given_up_at: datetime | None


@dataclass(frozen=True, slots=True)
class EventRow:
    id: int
    kind: str
    product_id: int | None
    domain_id: int | None
    domain: str | None
    payload: dict[str, Any]
    occurred_at: datetime
