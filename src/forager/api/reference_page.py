"""The API reference as one HTML page: every call, field, response and error, with examples.

It is made from the OpenAPI document, and needs no script and no other server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape

_PARAMETER = re.compile(r"\{(\w+)\}")
_CODE = re.compile(r"`([^`]+)`")
_SAMPLES = {
    "date-time": "2026-11-16T08:30:00Z",
    "date": "2026-11-16",
    "uuid": "0199a5c2-8a00-7000-8000-000000000000",
    "uri": "https://docs.example.org/",
}


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("forager.api"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    made.filters.update(type=_type, content=_content, text=_text, json=_json)
    return made


def reference_page(document: dict[str, Any], base: str, errors: dict[int, str]) -> str:
    groups: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, method, operation in operations(document):
        groups.setdefault(operation["tags"][0], []).append((path, method, operation))
    return (
        _environment()
        .get_template("reference.html")
        .render(
            info=document["info"],
            groups=groups,
            tags=[*groups, "error responses", "schemas"],
            errors=[(status, "", {"description": text}) for status, text in sorted(errors.items())],
            schemas=document["components"]["schemas"],
            command=partial(_command, document, base),
            resolved=partial(_resolved, document),
            sample=partial(sample, document),
        )
    )


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _type(schema: dict[str, Any]) -> Markup:
    """What a value is, in a few words, with links to schemas."""
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return Markup('<a href="#schema-{}">{}</a>').format(name, name)
    if choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        return Markup(" or ").join(dict.fromkeys(_type(choice) for choice in choices))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return Markup(", ").join(Markup("<code>{}</code>").format(value) for value in values)
    if schema.get("type") == "array":
        return Markup("list of {}").format(_type(schema.get("items", {})))
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


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False)


def _text(text: str) -> Markup:
    code = _CODE.sub(r"<code>\1</code>", str(escape(text)))
    return Markup(code.replace("\n\n", "<p>"))  # noqa: S704 - escaped above
