"""The API reference as one HTML page: every call, field, response and error, with examples.

It is made from the OpenAPI document, and needs no script and no other server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
html { background: light-dark(#fff, #16181d); color: light-dark(#1c1e21, #e3e5e8) }
body { max-width: 62rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere }
a { color: light-dark(#0550ae, #79b8ff) }
h2 { margin-top: 3rem; text-transform: capitalize }
h3 { margin: 2.5rem 0 .25rem; font-size: 1.05rem }
h3 b { display: inline-block; min-width: 4.5rem } h4 { margin: 1rem 0 .25rem; font-size: .95rem }
pre { padding: .75rem; border: 1px solid #8886; border-radius: .4rem; white-space: pre-wrap }
table { border-collapse: collapse; width: 100% } th { text-align: left }
td, th { padding: .2rem 1rem .2rem 0; vertical-align: top; border-bottom: 1px solid #8884 }
td:first-child { font-family: monospace; overflow-wrap: normal }
nav a { display: inline-block; margin: 0 1rem .25rem 0 }
summary { cursor: pointer } small { opacity: .85 }
@media (max-width: 40rem) {
  thead { display: none } tr { display: block; padding: .3rem 0; border-bottom: 1px solid #8884 }
  td { display: block; padding: 0; border: 0 }
}
"""
_PARAMETER = re.compile(r"\{(\w+)\}")
_CODE = re.compile(r"`([^`]+)`")
_SAMPLES = {
    "date-time": "2026-11-16T08:30:00Z",
    "date": "2026-11-16",
    "uuid": "0199a5c2-8a00-7000-8000-000000000000",
    "uri": "https://docs.example.org/",
}


def reference_page(document: dict[str, Any], base: str, errors: dict[int, str]) -> str:
    groups: dict[str, list[str]] = {}
    for path, method, operation in operations(document):
        entry = _operation(document, base, path, method, operation)
        groups.setdefault(operation["tags"][0], []).append(entry)
    parts = {tag: "".join(entries) for tag, entries in groups.items()}
    parts["errors"] = _errors(document, errors)
    schemas = document["components"]["schemas"]
    parts["schemas"] = "".join(_schema(name, schemas[name]) for name in sorted(schemas))
    links = "".join(f'<a href="#{_anchor(tag)}">{escape(tag)}</a>' for tag in parts)
    body = "".join(
        f'<h2 id="{_anchor(tag)}">{escape(tag)}</h2>{html}' for tag, html in parts.items()
    )
    info = document["info"]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(info["title"])}'
        ' API</title><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style><main><h1>Forager API {escape(info['version'])}</h1>"
        f"<p>{_text(info['description'])}"
        '<p>For programs and client generators: <a href="openapi.json">openapi.json</a>. Once a key'
        " exists, every call needs one: <code>Authorization: Bearer fgr_…</code>"
        f'<nav aria-label="Sections">{links}</nav>{body}</main></html>'
    )


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _operation(
    document: dict[str, Any], base: str, path: str, method: str, operation: dict[str, Any]
) -> str:
    parts = [
        f'<section><h3 id="{escape(operation["operationId"])}"><b>{method.upper()}</b>'
        f" {escape(path)}</h3><p>{_text(operation.get('description', ''))}</p>",
        f"<pre class=command>{escape(_command(document, base, path, method, operation))}</pre>",
    ]
    if parameters := operation.get("parameters"):
        rows = [
            (p["name"], f"{p['in']}, {_type(p['schema'])}{_need(p.get('required'))}", p)
            for p in parameters
        ]
        parts.append(_table("Parameters", rows))
    if body := _content(operation.get("requestBody", {})):
        parts.append(f"<h4>Request body: {_type(body)}</h4>")
        parts += [_fields(schema) for schema in _resolved(document, body)]
    return "".join([*parts, _responses(document, operation), "</section>"])


def _responses(document: dict[str, Any], operation: dict[str, Any]) -> str:
    rows, examples = [], []
    for status, response in operation["responses"].items():
        if status == "default":
            continue
        content = response.get("content", {})
        kind = _type(_content(response)) if "application/json" in content else ", ".join(content)
        rows.append((status, kind or "no body", response))
        if schema := _content(response):
            example = json.dumps(sample(document, schema), indent=2, ensure_ascii=False)
            examples.append(
                f"<details><summary>Example of {status}</summary>"
                f"<pre>{escape(example)}</pre></details>"
            )
    errors = '<p><small>Any other status: <a href="#errors">an error</a>.</small></p>'
    return _table("Responses", rows) + "".join(examples) + errors


def _errors(document: dict[str, Any], errors: dict[int, str]) -> str:
    rows = [(str(status), "", {"description": text}) for status, text in sorted(errors.items())]
    example = json.dumps(sample(document, {"$ref": "#/components/schemas/Problem"}), indent=2)
    return (
        "<p>A request that fails is answered with <code>application/problem+json</code> (RFC 9457):"
        f" a {_type({'$ref': '/Problem'})} whose <code>fix</code> says what to do.</p>"
        f"<pre>{escape(example)}</pre>{_table('Status codes', rows)}"
    )


def _schema(name: str, schema: dict[str, Any]) -> str:
    values = f"<p>One of {_type(schema)}.</p>" if "enum" in schema else ""
    return (
        f'<section><h3 id="schema-{escape(name)}">{escape(name)}</h3>'
        f"<p>{_text(schema.get('description', ''))}</p>{values}{_fields(schema)}</section>"
    )


def _fields(schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    rows = [
        (name, _type(field) + _need(name in required), field)
        for name, field in schema.get("properties", {}).items()
    ]
    return _table("Fields", rows) if rows else ""


def _table(title: str, rows: list[tuple[str, str, dict[str, Any]]]) -> str:
    """Rows of a name, what it is (as HTML), and what describes it."""
    cells = "".join(
        f"<tr><td>{escape(name)}<td>{kind}<td>{_text(described.get('description', ''))}"
        f"{_default(described)}"
        for name, kind, described in rows
    )
    heads = f"<thead><tr><th>{title}<th>Type<th>Description</thead>"
    return f"<table>{heads}<tbody>{cells}</table>" if rows else ""


def _default(field: dict[str, Any]) -> str:
    default = field.get("default", field.get("schema", {}).get("default"))
    return (
        ""
        if default in (None, [], "")
        else f" Default: <code>{escape(json.dumps(default))}</code>."
    )


def _need(required: object) -> str:
    return ", <b>required</b>" if required else ""


def _type(schema: dict[str, Any]) -> str:
    """What a value is, in a few words, with links to schemas."""
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return f'<a href="#schema-{escape(name)}">{escape(name)}</a>'
    if choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        return " or ".join(dict.fromkeys(_type(choice) for choice in choices))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"<code>{escape(str(value))}</code>" for value in values)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    low, high = schema.get("minimum"), schema.get("maximum")
    span = f", {low:g} to {high:g}" if low is not None and high is not None and high < 2**31 else ""
    return escape(str(schema.get("format") or schema.get("type", "any"))) + span


def _content(message: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = (
        message.get("content", {}).get("application/json", {}).get("schema", {})
    )
    return schema


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schemas that a reference or a choice of references stands for."""
    parts = schema.get("anyOf", [schema])
    names = [part.get("$ref", "").rpartition("/")[2] for part in parts]
    return [document["components"]["schemas"][name] for name in names if name]


def sample(document: dict[str, Any], schema: dict[str, Any], depth: int = 4) -> Any:
    """A value of a schema: its own example, or one made of its fields."""
    for found in (schema.get("examples"), schema.get("enum"), [schema.get("default")]):
        if found and found[0] is not None:
            return found[0]
    if resolved := _resolved(document, schema):
        return sample(document, resolved[0], depth)
    if choices := schema.get("anyOf") or schema.get("allOf"):
        return sample(document, choices[0], depth)
    if schema.get("type") == "array":
        return [sample(document, schema.get("items", {}), depth - 1)] if depth else []
    if "properties" in schema:
        fields = schema["properties"].items() if depth else ()
        return {name: sample(document, field, depth - 1) for name, field in fields}
    if schema.get("type") in ("integer", "number"):
        return schema.get("minimum", 1)
    return {"boolean": True, "object": {}, "null": None}.get(
        schema.get("type", ""), _SAMPLES.get(schema.get("format", ""), "…")
    )


def _command(
    document: dict[str, Any], base: str, path: str, method: str, operation: dict[str, Any]
) -> str:
    """A call to be copied into a shell; words in capitals are to be replaced."""
    path = _PARAMETER.sub(lambda found: found[1].upper(), path)
    needed = [
        f"{p['name']}={_query_sample(p)}"
        for p in operation.get("parameters", [])
        if p["in"] == "query" and p.get("required")
    ]
    target = f"{base}{path}" + (f"?{'&'.join(needed)}" if needed else "")
    verb = "" if method == "get" else f" -X {method.upper()}"
    example = example_of(document, operation)
    if example is None:
        return f"curl{verb} '{target}'"
    body = json.dumps(example, ensure_ascii=False)
    return f"curl{verb} '{target}' \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"


def _query_sample(parameter: dict[str, Any]) -> str:
    examples = parameter["schema"].get("examples") or [parameter["name"].upper()]
    return str(examples[0]).replace(" ", "+")


def example_of(document: dict[str, Any], operation: dict[str, Any]) -> Any | None:
    """The example of what an operation takes, if it takes anything."""
    for schema in _resolved(document, _content(operation.get("requestBody", {}))):
        examples = schema.get("examples")
        return examples[0] if examples else None
    return None


def _text(words: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(words, quote=False)).replace("\n\n", "<p>")


def _anchor(tag: str) -> str:
    return escape(tag.replace(" ", "-"))
