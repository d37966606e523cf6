"""Records of webhooks, events and deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

# the outbox topic of messages to webhooks; a lane is a webhook
TOPIC = "webhooks"
# the prefix of URLs that send e-mail
MAILTO = "mailto:"


@dataclass(frozen=True, slots=True)
class EventRow:
    id: int
    kind: str
    product_id: int | None
    domain_id: int | None
    domain: str | None
    payload: dict[str, Any]
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class EventContent(EventRow):
    """An event as it is sent; the name of its product is the current one."""

    product_url: str | None
    product_name: str | None


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook without its secret."""

    id: int
    url: str
    kinds: list[str]
    domain: str | None
    allow_private: bool
    ordered: bool
    is_active: bool
    disabled_reason: str | None
    failures: int
    rests_until: datetime | None
    waiting: int
    created_at: datetime
    updated_at: datetime

    @property
    def is_mail(self) -> bool:
        return self.url.startswith(MAILTO)


@dataclass(frozen=True, slots=True)
class Receiver:
    """The columns of a webhook for delivery."""

    id: int
    url: str
    secret: bytes
    allow_private: bool
    failures: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message to one webhook, and its outcome."""

    id: int
    event_id: int
    kind: str | None
    attempts: int
    last_error: str | None
    created_at: datetime
    next_attempt_at: datetime
    sent_at: datetime | None
    given_up_at: datetime | None
    # of the last attempts, newest first; see `posting.Posted.record`
    responses: list[dict[str, Any]]
