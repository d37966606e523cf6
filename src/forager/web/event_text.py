"""Events of products and domains as text."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from forager.events.event import EventKind
from forager.events.source_text import source_summary
from forager.web.formats import change, counted, humanize, money, percent

ARROW = " \N{RIGHTWARDS ARROW} "


class Event(Protocol):
    """What a sentence about an event is made of."""

    @property
    def kind(self) -> str: ...
    @property
    def payload(self) -> dict[str, Any]: ...


def summary_of(event: Event) -> str:
    """Describe an event in one line; empty for kinds of later versions."""
    payload = event.payload
    match event.kind:
        case EventKind.PRODUCT_ADDED:
            return ", ".join(
                filter(None, [_money(payload, "price"), _state(payload, "availability")])
            )
        case EventKind.PRICE_CHANGED:
            return _price_change(payload)
        case EventKind.VARIANT_CHANGED:
            states = [_state(payload, name) for name in ("old_availability", "availability")]
            stock = "" if states[0] == states[1] else _change_of(*states)
            parts = filter(None, [_price_change(payload), stock])
            return f"{payload.get('variant')}: {', '.join(parts)}"
        case EventKind.ALERT:
            kind = humanize(str((payload.get("rule") or {}).get("kind", "")))
            variant = f" of {payload['variant']}" if payload.get("variant") else ""
            return f"{kind}{variant}: {_price_change(payload)}"
        case EventKind.AVAILABILITY_CHANGED:
            return _change_of(_state(payload, "old"), _state(payload, "new"))
        case EventKind.PARSER_DEGRADED:
            now, before = payload.get("recent_rate"), payload.get("week_rate")
            pages = counted(int(payload.get("recent_pages") or 0), "page")
            good = f"{percent(now)} of the newest {pages} parsed without problems"
            return f"{good}, {percent(before)} before"
        case EventKind.TRIAL_ENDED:
            return (
                f"parser {payload.get('parser')}: version {payload.get('version')} was stopped;"
                f" version {payload.get('active_version')} stays active: {payload.get('reason')}"
            )
        case EventKind.DOMAIN_ALARM | EventKind.DOMAIN_RECOVERED | EventKind.PARSER_BYPASSED:
            return str(payload.get("reason") or "")
        case EventKind.AUDIT:
            findings = payload.get("findings") or []
            first = [each for each in findings[:3] if each.get("check")]
            named = ", ".join(f"{each.get('count')} {humanize(each['check'])}" for each in first)
            checks = counted(int(payload.get("checks") or 0), "check")
            return f"{checks}, {counted(len(findings), 'finding')}" + (named and f": {named}")
        case _:
            return source_summary(event.kind, payload)


def _price_change(payload: Mapping[str, Any]) -> str:
    old = _money(payload, "old", payload.get("old_currency")) or "no price"
    new = _money(payload, "new") or "no price"
    moved = payload.get("percent")
    if new == old:
        return new
    return f"{old}{ARROW}{new}" + (f" ({change(float(moved))})" if moved is not None else "")


def _money(payload: Mapping[str, Any], name: str, currency: str | None = None) -> str:
    amount = payload.get(name)
    if amount is None:
        return ""
    try:
        return money(Decimal(str(amount)), currency or payload.get("currency"))
    except InvalidOperation:
        return str(amount)


def _change_of(old: str, new: str) -> str:
    return f"{old or 'unknown'}{ARROW}{new or 'unknown'}"


def _state(payload: Mapping[str, Any], name: str) -> str:
    state = payload.get(name)
    return humanize(str(state)) if state else ""
