"""The description of the API: an OpenAPI document for programs, a page for people."""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from html import escape
from threading import Lock
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from starlette.responses import HTMLResponse, JSONResponse

from forager.api.problems import MEDIA_TYPE, STATUS_TITLES, Problem, QuotaUse, RequestFieldProblem
from forager.api.reference_page import reference_page

router = APIRouter(include_in_schema=False)

_MODULE_PATH = re.compile(r"\bforager__([a-z]+)__(?:[a-z_]+__)*(\w+)")
_LIST = re.compile(r"\bListed(?:_|\[)(\w+?)(?:_\b|\])")
# stands for the address of the server
SERVER = "http://server.invalid"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"


@router.get("/openapi.json")
async def openapi(request: Request) -> JSONResponse:
    return JSONResponse(await _document(request))


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """The page is made once; only the address of the server depends on the request."""
    state = request.app.state
    if not hasattr(state, "reference_page"):
        document = await _document(request)
        make = partial(reference_page, document, SERVER, STATUS_TITLES)
        state.reference_page = await asyncio.to_thread(make)
    address = escape(str(request.base_url).rstrip("/"))
    page = state.reference_page.replace(SERVER, address)
    return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})


async def _document(request: Request) -> dict[str, Any]:
    """The OpenAPI document. It takes a second to make, in a thread so that requests do not wait."""
    document: dict[str, Any] = await asyncio.to_thread(request.app.openapi)
    return document


SCHEMAS = "#/components/schemas/"
SECURITY: dict[str, Any] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`fgr_<id>_<secret>`"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
PROTECTED = "/api/"
METHODS = {"get", "post", "put", "patch", "delete"}
# FastAPI's error schemas, which are never sent
UNUSED = ("HTTPValidationError", "ValidationError")

IF_NONE_MATCH: dict[str, Any] = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The ETag of an earlier response: 304 if nothing changed.",
    "schema": {"type": "string", "maxLength": 1000},
}


_making = Lock()


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once for all threads."""
    with _making:
        if app.openapi_schema is None:
            app.openapi_schema = _made(app)
    return app.openapi_schema


def _made(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    components = document.setdefault("components", {})
    components["securitySchemes"] = SECURITY
    schemas = components.setdefault("schemas", {})
    for name in UNUSED:
        schemas.pop(name, None)
    for model in (Problem, RequestFieldProblem, QuotaUse):
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
    for name, schema in renamed["components"]["schemas"].items():
        schema["title"] = name  # client generators name classes by it
    return renamed


def _described(document: dict[str, Any]) -> dict[str, Any]:
    """Give fields that may be null the description of their type."""
    for schema in document["components"]["schemas"].values():
        for field in schema.get("properties", {}).values():
            inner = [each.pop("description", "") for each in field.get("anyOf", ())]
            if text := next(filter(None, inner), ""):
                field.setdefault("description", text)
    return document


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    """Add the responses that every endpoint shares."""
    responses = operation["responses"]
    responses.pop("422", None)
    responses["default"] = {
        "description": "The request failed.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": SCHEMAS + "Problem"}}},
    }
    if not path.startswith(PROTECTED):
        return
    operation["security"] = [{name: []} for name in SECURITY]
    if method == "get" and "application/json" in responses["200"].get("content", {}):
        operation.setdefault("parameters", []).append(IF_NONE_MATCH)
        responses["200"]["headers"] = {"ETag": {"schema": {"type": "string"}}}
        responses["304"] = {"description": "Not modified since the ETag that was sent."}
