"""OpenAPI and Swagger documents to HTML: a section for each operation and each schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import orjson
import yaml

from forager.extract.conversion import NotReadable
from forager.extract.text import storable

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
MAX_DEPTH = 4
MAX_ALIASES = 1_000


def openapi_to_html(text: str) -> str:
    """Raise NotReadable for anything else. References are named, not resolved."""
    document = _parse(text)
    if not isinstance(document, dict) or not ("openapi" in document or "swagger" in document):
        raise NotReadable("it is not an OpenAPI document")
    about = _dict(document.get("info"))
    title = _text(about.get("title")) or "API"
    parts = [
        f"<h1>{escape(title)}</h1>",
        *_prose(about.get("version") and f"Version {_text(about['version'])}"),
        *_prose(about.get("description")),
        *(
            _prose(f"Server: {_text(_dict(each).get('url'))}")
            for each in _list(document, "servers")
        ),
    ]
    html = [part if isinstance(part, str) else "".join(part) for part in parts]
    html += _operations(document)
    html += _schemas(document)
    head = f"<head><title>{escape(title)}</title></head>"
    return storable(f"<html>{head}<body><main>{''.join(html)}</main></body></html>")


def _parse(text: str) -> Any:
    try:
        if text.lstrip().startswith("{"):
            return orjson.loads(text)
        # aliases can make a small file gigabytes of text
        if (
            text.count("*") > MAX_ALIASES
            and len(re.findall(r"[:\-,\[]\s*\*\w", text)) > MAX_ALIASES
        ):
            raise NotReadable("it has too many aliases")
        return yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))  # noqa: S506 - it makes nothing but text
    except NotReadable:
        raise
    except (ValueError, yaml.YAMLError, RecursionError):
        raise NotReadable("the OpenAPI document is damaged") from None


def _operations(document: dict[str, Any]) -> Iterator[str]:
    for path, item in _dict(document.get("paths")).items():
        item = _dict(item)
        for method in METHODS:
            if isinstance(operation := item.get(method), dict):
                yield from _operation(method, _text(path), operation, _list(item, "parameters"))


def _operation(
    method: str, path: str, operation: dict[str, Any], shared: list[Any]
) -> Iterator[str]:
    name = _text(operation.get("operationId"))
    anchor = f"operation/{name}" if name else f"{method}{path}"
    yield f'<h2 id="{escape(anchor)}"><code>{escape(f"{method.upper()} {path}")}</code></h2>'
    if name:
        yield f"<p><code>{escape(name)}</code></p>"
    yield from _prose(operation.get("summary"))
    yield from _prose(operation.get("description"))
    if str(operation.get("deprecated")).lower() == "true":
        yield "<p>Deprecated.</p>"
    rows = [_parameter(_dict(each)) for each in (*shared, *_list(operation, "parameters"))]
    yield from _table("Parameters", ("Name", "In", "Type", "Description"), rows)
    for kind, media in _dict(_dict(operation.get("requestBody")).get("content")).items():
        yield f"<p>Request body (<code>{escape(_text(kind))}</code>):</p>"
        yield from _fields(_dict(_dict(media).get("schema")))
    answers = [
        (_text(status), _text(_dict(each).get("description")), _answer(_dict(each)))
        for status, each in _dict(operation.get("responses")).items()
    ]
    yield from _table("Responses", ("Status", "Description", "Content"), answers)


def _parameter(given: dict[str, Any]) -> tuple[str, ...]:
    name = _text(given.get("name")) or _reference(given)
    required = " (required)" if str(given.get("required")).lower() == "true" else ""
    kind = _type(_dict(given.get("schema")) or given)
    return name, _text(given.get("in")) + required, kind, _text(given.get("description"))


def _answer(given: dict[str, Any]) -> str:
    contents = _dict(given.get("content"))
    schemas = [_dict(_dict(media).get("schema")) for media in contents.values()]
    return ", ".join(dict.fromkeys(_type(each) for each in [*schemas, _dict(given.get("schema"))]
                                   if each))  # fmt: skip


def _schemas(document: dict[str, Any]) -> Iterator[str]:
    found = _dict(document.get("definitions")) | _dict(
        _dict(document.get("components")).get("schemas")
    )
    for name, schema in found.items():
        yield f'<h2 id="schema/{escape(_text(name))}">{escape(_text(name))}</h2>'
        yield from _prose(_dict(schema).get("description"))
        yield from _fields(_dict(schema))


def _fields(schema: dict[str, Any]) -> Iterator[str]:
    required = {_text(each) for each in _list(schema, "required")}
    rows = [
        (name, _type(_dict(each)) + (" (required)" if name in required else ""),
         _text(_dict(each).get("description")))
        for name, each in _properties(schema)
    ]  # fmt: skip
    if rows:
        yield from _table("", ("Field", "Type", "Description"), rows)
    elif schema:
        yield f"<p>{escape(_type(schema))}</p>"


def _properties(schema: dict[str, Any], depth: int = 0) -> Iterator[tuple[str, Any]]:
    yield from ((_text(name), each) for name, each in _dict(schema.get("properties")).items())
    if depth < MAX_DEPTH:
        for each in _list(schema, "allOf"):
            yield from _properties(_dict(each), depth + 1)


def _type(schema: dict[str, Any], depth: int = 0) -> str:
    if reference := _reference(schema):
        return reference
    if depth >= MAX_DEPTH:
        return "…"
    for name, joint in (("allOf", " & "), ("oneOf", " | "), ("anyOf", " | ")):
        if kinds := [_type(_dict(each), depth + 1) for each in _list(schema, name)]:
            return joint.join(kinds)
    if values := _list(schema, "enum"):
        return " | ".join(_text(value) for value in values[:20])
    kind = schema.get("type")
    shown = " | ".join(map(_text, kind)) if isinstance(kind, list) else _text(kind)
    if shown == "array":
        return f"array of {_type(_dict(schema.get('items')), depth + 1)}"
    form = _text(schema.get("format"))
    return f"{shown or 'any'} ({form})" if form else shown or "any"


def _reference(schema: dict[str, Any]) -> str:
    return _text(schema.get("$ref")).rpartition("/")[2]


def _table(caption: str, names: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if not rows:
        return
    if caption:
        yield f"<p>{caption}:</p>"
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    head = "".join(f"<th>{name}</th>" for name in names)
    yield f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _prose(text: Any) -> Iterator[str]:
    """Descriptions are markdown, of which paragraphs are kept."""
    for paragraph in re.split(r"\n\s*\n", _text(text)):
        if paragraph.strip():
            yield f"<p>{escape(paragraph.strip())}</p>"


def _dict(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _list(given: dict[Any, Any], name: str) -> list[Any]:
    value = given.get(name)
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return "" if value is None or isinstance(value, dict | list) else str(value)
