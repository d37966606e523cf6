"""The description of the API: what FastAPI says of it, and what all endpoints have in common."""

from __future__ import annotations

from threading import Lock
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from forager.api.problems import MEDIA_TYPE, FieldProblem, Problem, QuotaUse

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
        separate_input_output_schemas=False,
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
