"""Events: what happened to products and domains, and what happened to jobs."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from forager.db.cursor import Page as Rows
from forager.errors import InvalidInput, NotFound
from forager.jobs.history import KINDS, list_moves
from forager.web.formats import change, counted, money, percent, words
from forager.web.forms import Form
from forager.web.page import Page, asked, following, new_router, page
from forager.web.visit import Reads, Visit
from forager.webhooks.events import EventKind, list_events
from forager.webhooks.webhook import EventRow

router = new_router()

PAGE_SIZE = 50


@page(router, "/events")
async def events(visit: Reads) -> Page:
    form = asked(visit)
    trouble = None
    try:
        found = await _found(visit, form)
    except (InvalidInput, NotFound) as error:
        found, trouble = Rows([], None), error
    return Page(
        "events.html",
        {
            "events": [(event, summary_of(event)) for event in found.items],
            "next_url": following(visit, found.next_cursor),
            "asked": form,
            "kinds": list(EventKind),
            "trouble": trouble,
        },
    )


@page(router, "/events/jobs")
async def moves(visit: Reads) -> Page:
    form = asked(visit)
    found = await list_moves(
        visit.here.database,
        move=form.text("kind") or None,
        user_id=visit.caller.sees_only,
        cursor=form.text("cursor") or None,
        limit=PAGE_SIZE,
    )
    return Page(
        "job_moves.html",
        {
            "moves": found.items,
            "next_url": following(visit, found.next_cursor),
            "asked": form,
            "kinds": KINDS,
        },
    )


async def _found(visit: Visit, form: Form) -> Rows[EventRow]:
    return await list_events(
        visit.here.database,
        kind=form.text("kind") or None,
        domain=form.text("domain") or None,
        product_id=form.number("product", least=1, most=2**63 - 1),
        cursor=form.text("cursor") or None,
        limit=PAGE_SIZE,
    )


ARROW = " \N{RIGHTWARDS ARROW} "


def summary_of(event: EventRow) -> str:
    """The payload of an event in one line; empty for kinds of later versions."""
    payload = event.payload
    match event.kind:
        case EventKind.PRODUCT_ADDED:
            return ", ".join(
                filter(None, [_money(payload, "price"), _state(payload, "availability")])
            )
        case EventKind.PRICE_CHANGED:
            return _price_change(payload)
        case EventKind.VARIANT_CHANGED:
            stock = ARROW.join(
                _state(payload, name) or "unknown" for name in ("old_availability", "availability")
            )
            return f"{payload.get('variant')}: {_price_change(payload)}, {stock}"
        case EventKind.ALERT:
            kind = words(str(payload.get("rule", {}).get("kind", "")))
            return f"{kind}{_variant(payload)}: {_price_change(payload)}"
        case EventKind.AVAILABILITY_CHANGED:
            return ARROW.join(_state(payload, name) or "unknown" for name in ("old", "new"))
        case EventKind.PARSER_DEGRADED:
            now, before = payload.get("recent_rate"), payload.get("week_rate")
            pages = counted(int(payload.get("recent_pages") or 0), "page")
            good = f"{percent(now)} of the newest {pages} parsed without problems"
            return f"{good}, {percent(before)} before"
        case EventKind.DOMAIN_ALARM | EventKind.DOMAIN_RECOVERED | EventKind.PARSER_BYPASSED:
            return str(payload.get("reason") or "")
        case EventKind.AUDIT:
            checks = counted(int(payload.get("checks") or 0), "check")
            return f"{checks}, {counted(len(payload.get('findings') or []), 'finding')}"
        case _:
            return ""


def _variant(payload: Mapping[str, Any]) -> str:
    return f" of {payload['variant']}" if payload.get("variant") else ""


def _price_change(payload: Mapping[str, Any]) -> str:
    old = _money(payload, "old", payload.get("old_currency")) or "no price"
    new = _money(payload, "new") or "no price"
    moved = payload.get("percent")
    return f"{old}{ARROW}{new}" + (f" ({change(float(moved))})" if moved is not None else "")


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
