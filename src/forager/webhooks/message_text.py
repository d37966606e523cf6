"""Events as text, for e-mail and chat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from forager.events.source_text import source_lines, source_summary


def subject_of(content: Mapping[str, Any]) -> str:
    """One line that says what happened; not free of control characters."""
    data, product = content["data"], content["product"] or {}
    if content.get("source") is not None:
        summary = source_summary(content["kind"], data)
        return f"{content['source']}: {summary or content['kind']}"
    name = product.get("name") or content["domain"] or "Forager"
    if data.get("variant"):
        name = f"{name}, {data['variant']}"
    rule = data.get("rule")
    if rule is None:
        return f"{content['kind']}: {name}"
    if rule["kind"] == "back_in_stock":
        return f"Back in stock: {name}"
    return f"Price alert: {name} now {_price(data, 'new')}"


def lines_of(content: Mapping[str, Any]) -> Iterator[str]:
    """The event in lines of text."""
    data, product = dict(content["data"]), content["product"]
    if content.get("source") is not None:
        yield from (f"Event: {content['kind']}", f"Source: {content['source']}")
        yield from source_lines(content["kind"], data)
        yield f"Time: {content['occurred_at']}"
        return
    if product is not None:
        yield from (product["name"] or "", product["url"] or "", "")
    if variant := data.pop("variant", None):
        yield f"Variant: {variant}"
    if (rule := data.pop("rule", None)) is not None:
        if data.get("new") is not None:
            before = f" (before: {_price(data, 'old')})" if data.get("old") is not None else ""
            yield f"Price: {_price(data, 'new')}{before}"
        yield f"Availability: {data.get('availability') or 'unknown'}"
        yield f"Alert rule {rule['id']}: {_condition(rule)}"
    else:
        yield f"Event: {content['kind']}"
        yield from (f"{name}: {_value(value)}" for name, value in data.items() if value is not None)
    if content["domain"]:
        yield f"Domain: {content['domain']}"
    yield f"Time: {content['occurred_at']}"


def _condition(rule: Mapping[str, Any]) -> str:
    """The condition of an alert rule in words, of any kind."""
    text: str = rule["kind"].replace("_", " ")
    if "percent" in rule:
        text += f" of at least {rule['percent']} %"
    if "amount" in rule:
        text += f" {rule['amount']}"
    return f"{text} in {rule['days']} days" if "days" in rule else text


def _value(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


def _price(data: Mapping[str, Any], name: str) -> str:
    return " ".join(str(part) for part in (data.get(name), data.get("currency")) if part)
