"""`forager events`: what happened to products and domains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from forager.cli.options import Cursor, Limit, option
from forager.cli.output import (
    Columns,
    counted,
    on_one_line,
)
from forager.cli.running import CommandContext, lists

if TYPE_CHECKING:
    from forager.webhooks.webhook import EventRow

Payload = Mapping[str, Any]
LONGEST = 300


app = typer.Typer(help="Events of products and domains, as sent to webhooks.", no_args_is_help=True)


@app.callback()
def events() -> None:
    """Events of products and domains, as sent to webhooks."""


def words_of(event: EventRow) -> str:
    """Describe an event in one line; the values of an unknown kind are listed by name."""
    describe = _WORDS.get(event.kind, _by_name)
    return on_one_line(describe(event.payload))[:LONGEST]


EVENT_COLUMNS: Columns = {
    "ID>": "id",
    "WHEN": "occurred_at",
    "KIND": "kind",
    "PRODUCT>": "product_id",
    "DOMAIN": "domain",
    "WHAT…": words_of,
}


@app.command("list")
@lists(EVENT_COLUMNS, none="No events match.")
async def list_(
    here: CommandContext,
    kind: str | None = option("Only this kind, such as product.price_changed."),
    domain: str | None = option(
        "Only events of this host, its subdomains, or the domain that covers it."
    ),
    product: int | None = option("Only events of this product.", min=1, max=2**63 - 1),
    since: str | None = option(
        "Only events since this time: 2d, 12h, or 2026-01-31T12:00Z.", metavar="WHEN"
    ),
    limit: Limit = 50,
    cursor: Cursor = None,
) -> object:
    """List events, newest first."""
    from forager.cli.options import moment
    from forager.webhooks.events import list_events

    return await list_events(
        here.database,
        kind=kind,
        domain=domain,
        product_id=product,
        since=moment(since),
        cursor=cursor,
        limit=limit,
    )


def _added(payload: Payload) -> str:
    return _named(
        payload,
        ", ".join(filter(None, (_money(payload, "price"), _plain(payload, "availability")))),
    )


def _price(payload: Payload) -> str:
    old = _money(payload, "old", "old_currency") or "no price"
    new = _money(payload, "new") or "no price"
    percent = payload.get("percent")
    by = f" ({percent:+g} %)" if isinstance(percent, int | float) else ""
    return _named(payload, f"{old} -> {new}{by}")


def _availability(payload: Payload) -> str:
    return _named(
        payload, f"{_plain(payload, 'old') or 'unknown'} -> {_plain(payload, 'new') or 'unknown'}"
    )


def _alert(payload: Payload) -> str:
    rule = payload.get("rule") or {}
    variant = f" of {payload['variant']}" if payload.get("variant") else ""
    return f"{str(rule.get('kind')).replace('_', ' ')}{variant}: {_price(payload)}"


def _variant(payload: Payload) -> str:
    old, new = (_plain(payload, name) for name in ("old_availability", "availability"))
    stock = "" if old == new else f", {old or 'unknown'} -> {new or 'unknown'}"
    return f"{_price(payload)} ({payload.get('variant')}{stock})"


def _degraded(payload: Payload) -> str:
    return (
        f"{_share(payload, 'recent_rate')} of the last {payload.get('recent_pages')} pages could be"
        f" read, {_share(payload, 'week_rate')} in the week before"
    )


def _trial_ended(payload: Payload) -> str:
    return (
        f"parser {payload.get('parser')}: version {payload.get('version')} was stopped; version"
        f" {payload.get('active_version')} stays active: {payload.get('reason')}"
    )


def _audit(payload: Payload) -> str:
    findings = payload.get("findings")
    if not isinstance(findings, list) or not findings:
        return f"{payload.get('checks')} checks, nothing found"
    first = ", ".join(
        f"{each.get('count')} {each.get('check') or each.get('name')}" for each in findings[:3]
    )
    return f"{counted(len(findings), 'finding')}: {first}"


def _by_name(payload: Payload) -> str:
    return ", ".join(f"{name}: {value}" for name, value in payload.items())


_WORDS: dict[str, Callable[[Payload], str]] = {
    "product.added": _added,
    "product.price_changed": _price,
    "product.availability_changed": _availability,
    "product.variant_changed": _variant,
    "product.alert": _alert,
    "parser.degraded": _degraded,
    "parser.trial_ended": _trial_ended,
    "catalog.audit": _audit,
}


def _named(payload: Payload, words: str) -> str:
    name = payload.get("name")
    return f"{name}: {words}" if name else words


def _money(payload: Payload, name: str, currency: str = "currency") -> str:
    amount = payload.get(name)
    if amount is None:
        return ""
    return f"{amount} {payload.get(currency) or payload.get('currency') or ''}".rstrip()


def _plain(payload: Payload, name: str) -> str:
    return str(payload.get(name) or "").replace("_", " ")


def _share(payload: Payload, name: str) -> str:
    share = payload.get(name)
    return f"{share:.0%}" if isinstance(share, int | float) else "?"
