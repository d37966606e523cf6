"""Events of products and domains in words."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from forager.web.formats import counted, money, percent, words
from forager.webhooks.events import EventKind
from forager.webhooks.store.events import EventRow

ARROW = " \N{RIGHTWARDS ARROW} "


def told_by(event: EventRow) -> str:
    """What an event tells, in one line; kinds of later versions tell nothing here."""
    payload = event.payload
    match event.kind:
        case EventKind.PRODUCT_ADDED:
            return ", ".join(
                filter(None, [_money(payload, "price"), _state(payload, "availability")])
            )
        case EventKind.PRICE_CHANGED:
            return _price_change(payload)
        case EventKind.AVAILABILITY_CHANGED:
            return ARROW.join(_state(payload, name) or "not said" for name in ("old", "new"))
        case EventKind.PARSER_DEGRADED:
            now, before = payload.get("recent_rate"), payload.get("week_rate")
            pages = counted(int(payload.get("recent_pages") or 0), "page")
            return f"{percent(now)} of the newest {pages} were read well, {percent(before)} before"
        case EventKind.AUDIT:
            checks = counted(int(payload.get("checks") or 0), "check")
            return f"{checks}, {counted(len(payload.get('findings') or []), 'finding')}"
        case _:
            return ""


def _price_change(payload: Mapping[str, Any]) -> str:
    old = _money(payload, "old", payload.get("old_currency")) or "no price"
    new = _money(payload, "new") or "no price"
    change = payload.get("percent")
    return f"{old}{ARROW}{new}" + (f" ({float(change):+.3g} %)" if change is not None else "")


def _money(payload: Mapping[str, Any], name: str, currency: str | None = None) -> str:
    amount = payload.get(name)
    if amount is None:
        return ""
    try:
        return money(Decimal(str(amount)), currency or payload.get("currency"))
    except InvalidOperation:
        return str(amount)


def _state(payload: Mapping[str, Any], name: str) -> str:
    state = payload.get(name)
    return words(str(state)) if state else ""
