"""The page of the API: every endpoint with an example to copy. Needs no script and no network."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from threading import Lock
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from starlette.responses import HTMLResponse, JSONResponse

from forager.api.problems import MEDIA_TYPE, FieldProblem, Problem, QuotaUse

router = APIRouter(include_in_schema=False)

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 0 auto; padding: 1rem }
h3 { margin: 2rem 0 .25rem; font-size: 1rem; overflow-wrap: anywhere }
h3 b { display: inline-block; min-width: 4.5rem }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8886; border-radius: .4rem }
table { border-collapse: collapse } td { padding: .1rem 1rem .1rem 0; vertical-align: top }
nav a { margin-right: 1rem } td:first-child { font-family: monospace }
"""
_PARAMETER = re.compile(r"\{(\w+)\}")
_MODULE_PATH = re.compile(r"\bforager__([a-z]+)__(?:[a-z_]+__)*(\w+)")
_LIST = re.compile(r"\bListed(?:_|\[)(\w+?)(?:_\b|\])")
DESCRIPTIONS = Path(__file__).parent / "descriptions.toml"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"


@router.get("/openapi.json")
async def openapi(request: Request) -> JSONResponse:
    return JSONResponse(await _document(request))


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    page = _page(await _document(request), str(request.base_url).rstrip("/"))
    return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})


async def _document(request: Request) -> dict[str, Any]:
    """The description. It takes a second to make, in which others must not wait."""
    document: dict[str, Any] = await asyncio.to_thread(request.app.openapi)
    return document


def _page(document: dict[str, Any], base: str) -> str:
    groups: dict[str, list[str]] = {}
    for path, method, operation in _operations(document):
        entry = _entry(document, base, path, method, operation)
        groups.setdefault(operation["tags"][0], []).append(entry)
    links = "".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in groups)
    parts = "".join(
        f'<h2 id="{escape(tag)}">{escape(tag)}</h2>{"".join(found)}'
        for tag, found in groups.items()
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Forager API</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{STYLE}</style><h1>Forager API {escape(document['info']['version'])}</h1>"
        f"<p>{escape(document['info']['description'])}</p>"
        '<p>For programs: <a href="openapi.json">openapi.json</a>. Where keys exist, every call'
        " needs one: <code>Authorization: Bearer fgr_…</code></p>"
        f"<nav>{links}</nav>{parts}</html>"
    )


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _entry(
    document: dict[str, Any], base: str, path: str, method: str, operation: dict[str, Any]
) -> str:
    rows = "".join(
        f"<tr><td>{escape(parameter['name'])}<td>{escape(parameter['in'])}"
        f"<td>{escape(parameter.get('description', ''))}"
        for parameter in operation.get("parameters", [])
    )
    words = escape(operation.get("description", "")).replace("\n\n", "<p>")
    command = _command(base, path, method, operation, example_of(document, operation))
    return (
        f"<h3><b>{method.upper()}</b> {escape(path)}</h3><p>{words}</p>"
        f"<pre>{escape(command)}</pre>" + (f"<table>{rows}</table>" if rows else "")
    )


def _command(
    base: str, path: str, method: str, operation: dict[str, Any], example: Any | None
) -> str:
    """A call to be copied into a shell; what is in capitals is to be replaced."""
    path = _PARAMETER.sub(lambda found: found[1].upper(), path)
    needed = [
        f"{p['name']}={_sample(p)}"
        for p in operation.get("parameters", [])
        if p["in"] == "query" and p.get("required")
    ]
    target = f"{base}{path}" + (f"?{'&'.join(needed)}" if needed else "")
    verb = "" if method == "get" else f" -X {method.upper()}"
    if example is None:
        return f"curl{verb} '{target}'"
    body = json.dumps(example, ensure_ascii=False)
    return f"curl{verb} '{target}' \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"


def _sample(parameter: dict[str, Any]) -> str:
    examples = parameter["schema"].get("examples") or [f"{parameter['name'].upper()}"]
    return str(examples[0]).replace(" ", "+")


def example_of(document: dict[str, Any], operation: dict[str, Any]) -> Any | None:
    """The example of what an operation takes, if it takes anything."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    for part in schema.get("anyOf", [schema]):
        name = part.get("$ref", "").rpartition("/")[2]
        if name:
            examples = document["components"]["schemas"][name].get("examples")
            return examples[0] if examples else None
    return None


SCHEMAS = "#/components/schemas/"
SECURITY: dict[str, Any] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`fgr_<id>_<secret>`"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
PROTECTED = "/api/"
METHODS = {"get", "post", "put", "patch", "delete"}
# of FastAPI's own errors, which are never sent
UNUSED = ("HTTPValidationError", "ValidationError")

IF_NONE_MATCH: dict[str, Any] = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The ETag of an answer that is known: 304 if it would be the same.",
    "schema": {"type": "string", "maxLength": 1000},
}


_making = Lock()


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once, whichever threads ask for it."""
    with _making:
        if app.openapi_schema is None:
            app.openapi_schema = _made(app)
    return app.openapi_schema


def _made(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
    )
    components = document.setdefault("components", {})
    components["securitySchemes"] = SECURITY
    schemas = components.setdefault("schemas", {})
    for name in UNUSED:
        schemas.pop(name, None)
    for model in (Problem, FieldProblem, QuotaUse):
        schema = model.model_json_schema(ref_template=SCHEMAS + "{model}")
        schema.pop("$defs", None)
        schemas[model.__name__] = schema
    for path, methods in document["paths"].items():
        for method in METHODS & methods.keys():
            _complete(path, method, methods[method])
    return _described(_with_short_names(document))


def _with_short_names(document: dict[str, Any]) -> dict[str, Any]:
    """`JobList`, and a package instead of a module path where two schemas share a name."""
    text = _MODULE_PATH.sub(lambda found: found[1].capitalize() + found[2], json.dumps(document))
    renamed: dict[str, Any] = json.loads(_LIST.sub(r"\1List", text))
    return renamed


def _described(document: dict[str, Any]) -> dict[str, Any]:
    """Describe fields and parameters whose declaration does not, by their name."""
    words = tomllib.loads(DESCRIPTIONS.read_text(encoding="utf-8"))
    for schema in document["components"]["schemas"].values():
        for name, field in schema.get("properties", {}).items():
            field.setdefault("description", words["fields"].get(name, ""))
    for _, _, operation in _operations(document):
        for parameter in operation.get("parameters", []):
            parameter.setdefault("description", words["parameters"].get(parameter["name"], ""))
    return document


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    """Add what every endpoint may answer."""
    responses = operation["responses"]
    responses.pop("422", None)
    responses["default"] = {
        "description": "It was not done, and why",
        "content": {MEDIA_TYPE: {"schema": {"$ref": SCHEMAS + "Problem"}}},
    }
    if not path.startswith(PROTECTED):
        return
    operation["security"] = [{name: []} for name in SECURITY]
    if method == "get" and "application/json" in responses["200"].get("content", {}):
        operation.setdefault("parameters", []).append(IF_NONE_MATCH)
        responses["200"]["headers"] = {"ETag": {"schema": {"type": "string"}}}
        responses["304"] = {"description": "The same as what is known"}
