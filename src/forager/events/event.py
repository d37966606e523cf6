"""Kinds and rows of events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from forager.errors import InvalidInput


class EventKind(StrEnum):
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


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event with its complete payload: nothing is looked up later."""

    kind: EventKind
    product_id: int | None
    domain_id: int | None
    payload: Mapping[str, Any]


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


def checked_kind(text: str) -> EventKind:
    try:
        return EventKind(text)
    except ValueError:
        known = ", ".join(EventKind)
        raise InvalidInput(f"{text!r} is not an event kind", hint=f"Known kinds: {known}") from None
