"""Webhooks and their deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

# the outbox topic of messages to webhooks; a lane is a webhook
TOPIC = "webhooks"
# the prefix of URLs that send e-mail
MAILTO = "mailto:"


class WebhookState(StrEnum):
    """Whether a webhook gets messages."""

    ACTIVE = "active"
    # the last message was refused, and is sent again
    FAILING = "failing"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook without its secret."""

    id: int
    url: str
    kinds: list[str]
    domain: str | None
    source_id: str | None
    # of pages and sections in events about changes
    pattern: str | None
    allow_private: bool
    ordered: bool
    is_active: bool
    disabled_reason: str | None
    failures: int
    retries_at: datetime | None
    # the error of the newest message that failed; None unless it is failing
    last_error: str | None
    waiting: int
    # of the newest 100 messages: those that were tried, and those not delivered yet or at all
    recent_messages: int
    recent_failures: int
    created_at: datetime
    updated_at: datetime

    @property
    def state(self) -> WebhookState:
        """Whether it gets messages, and whether the last one was refused."""
        if not self.is_active:
            return WebhookState.DISABLED
        return WebhookState.FAILING if self.failures else WebhookState.ACTIVE

    @property
    def is_mail(self) -> bool:
        """Whether messages are e-mails."""
        return self.url.startswith(MAILTO)

    @property
    def is_signed(self) -> bool:
        """Whether messages have a signature, which needs HTTP."""
        return is_http(self.url)


def is_http(url: str) -> bool:
    """Whether messages are posted to the URL; others go to a mail server or to a channel."""
    return url.startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class Receiver:
    """The columns of a webhook for delivery; the secret of a channel is its URL."""

    id: int
    url: str
    secret: bytes
    allow_private: bool
    failures: int

    @property
    def is_mail(self) -> bool:
        """Whether messages are e-mails."""
        return self.url.startswith(MAILTO)


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
