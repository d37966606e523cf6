"""JSON-LD as shops write it: with comments, stray commas and entities."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import orjson

from forager.extract.product.elements import Elements

Item = dict[str, Any]
_MAX_SCRIPT = 2_000_000
_MAX_ITEMS = 400
_MAX_DEPTH = 8

_WRAPPING = re.compile(r"^\s*(?:<!--|//\s*<!\[CDATA\[|<!\[CDATA\[|/\*\s*<!\[CDATA\[\s*\*/)+\s*")
_TRAILING = re.compile(r"(?:-->|//\s?\]\]>|\]\]>|/\*\s?\]\]>\s?\*/|;)+$")
# an unclosed string reaches to the end: a failing pattern would start again at every quote
_STRING = r"(\"(?:[^\"\\]|\\.)*+(?:\"|\Z))"
_COMMENT = re.compile(rf"{_STRING}|/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_STRAY_COMMA = re.compile(rf"{_STRING}|,(?=\s{{0,200}}[}}\]])", re.DOTALL)


def read_json_ld(elements: Elements) -> list[Item]:
    """All items of all JSON-LD scripts, the containers before what they contain."""
    items = list(islice(_all_items(elements), _MAX_ITEMS))
    described = {
        identifier: item for item in items
        if isinstance(identifier := item.get("@id"), str) and len(item) > 1
    }  # fmt: skip
    return [_resolved(item, described) for item in items] if described else items


def _all_items(elements: Elements) -> Iterator[Item]:
    for element in elements.scripts:
        if "ld+json" in element.names:
            yield from _items(lenient_json(element.node.text()), 0)


def _resolved(item: Item, described: dict[str, Item]) -> Item:
    """The item with the brand and offers that it refers to by ID."""
    found = {
        name: described[value["@id"]]
        for name in ("brand", "manufacturer", "offers")
        if isinstance(value := item.get(name), dict)
        and len(value) == 1 and isinstance(key := value.get("@id"), str) and key in described
    }  # fmt: skip
    return {**item, **found} if found else item


def lenient_json(text: str) -> Any:
    """The value of a JSON text, with common mistakes repaired; None if that fails."""
    if not text or len(text) > _MAX_SCRIPT:
        return None
    for attempt in (_as_it_is, _unwrapped, _repaired, _unescaped):
        try:
            return attempt(text)
        except (ValueError, RecursionError):
            continue
    return None


def _as_it_is(text: str) -> Any:
    return orjson.loads(text)


def _unwrapped(text: str) -> Any:
    return json.loads(_strip(text), strict=False)


def _repaired(text: str) -> Any:
    bare = _COMMENT.sub(lambda m: m[1] or "", _strip(text))
    value, _ = json.JSONDecoder(strict=False).raw_decode(
        _STRAY_COMMA.sub(lambda m: m[1] or "", bare).lstrip()
    )
    return value


def _unescaped(text: str) -> Any:
    return _repaired(html.unescape(text)) if "&quot;" in text or "&#34;" in text else _repaired("")


def _strip(text: str) -> str:
    text = _WRAPPING.sub("", text).rstrip()
    return text[:-40] + _TRAILING.sub("", text[-40:])


def _items(value: Any, depth: int) -> Iterator[Item]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for each in value[:_MAX_ITEMS]:
            yield from _items(each, depth + 1)
    elif isinstance(value, dict):
        yield value
        offered = value.get("itemOffered")
        if isinstance(offered, dict):
            yield {"offers": value, **offered}
        for name in ("@graph", "mainEntity", "mainEntityOfPage"):
            if name in value:
                yield from _items(value[name], depth + 1)
        yield from _listed_items(value, depth)


# marks items of a list, which are rarely the main item of their page
LISTED = "@listed"


def _listed_items(value: Item, depth: int) -> Iterator[Item]:
    for name in ("itemListElement", "item"):
        for item in _items(value.get(name), depth + 1):
            yield {**item, LISTED: True}
