"""Kinds and rows of events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from forager.errors import InvalidInput


class EventKind(StrEnum):
    """A kind of event, as webhooks subscribe to it."""

    PRODUCT_ADDED = "product.added"
    PRICE_CHANGED = "product.price_changed"
    AVAILABILITY_CHANGED = "product.availability_changed"
    VARIANT_CHANGED = "product.variant_changed"
    REPLACED = "product.replaced"
    REREAD = "product.reread"
    ALERT = "product.alert"
    DOMAIN_ALARM = "domain.alarm"
    DOMAIN_RECOVERED = "domain.recovered"
    PARSER_DEGRADED = "parser.degraded"
    PARSER_BYPASSED = "parser.bypassed"
    TRIAL_ENDED = "parser.trial_ended"
    AUDIT = "catalog.audit"
    SOURCE_PUBLISHED = "source.published"
    SOURCE_CHANGED = "source.changed"
    SOURCE_HELD_BACK = "source.held_back"
    CRAWL_FAILED = "crawl.failed"
    CRAWL_STALLED = "crawl.stalled"


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event with its complete payload: nothing is looked up later."""

    kind: EventKind
    product_id: int | None
    domain_id: int | None
    payload: Mapping[str, Any]
    # of a source: only its owner, and keys that see everything, see such an event
    source_id: str | None = None
    user_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event as it is listed."""

    id: int
    kind: str
    product_id: int | None
    domain_id: int | None
    domain: str | None
    source_id: str | None
    payload: dict[str, Any]
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class EventContent(EventRow):
    """An event as it is sent; the name of its product is the current one."""

    product_url: str | None
    product_name: str | None
    # owner of the source
    user_id: UUID | None

    def is_visible_to(self, user_id: UUID) -> bool:
        """Whether an owner may see it: events of products are for all."""
        return self.user_id == user_id or (self.source_id is None and self.user_id is None)


def checked_kind(text: str) -> EventKind:
    """A kind by its name; raises InvalidInput with the names."""
    try:
        return EventKind(text)
    except ValueError:
        known = ", ".join(EventKind)
        raise InvalidInput(f"{text!r} is not an event kind", hint=f"Known kinds: {known}") from None
