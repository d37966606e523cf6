"""Errors as `application/problem+json` (RFC 9457): what happened, which field, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import psycopg
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from forager.access.caller import QuotaExceeded, RequestInProgress, Unauthorized
from forager.analytics.clickhouse import ClickHouseUnavailable
from forager.api.actions import as_call
from forager.api.observation import current_request_id
from forager.archive.warc_record import StorageAway
from forager.errors import (
    AlreadyThere,
    DatabaseUnavailable,
    DiskFull,
    ErrorKind,
    ForagerError,
    InvalidInput,
    LeaseLost,
    NotAllowed,
    NotFound,
    NotPermitted,
    SchemaMismatch,
    TooManyRequests,
    WorkFailed,
)
from forager.hints import Render, render
from forager.logs import get_logger
from forager.secrets import SecretsUnavailable
from forager.validation import message_of, name_of, sentence

log = get_logger("api")

MEDIA_TYPE = "application/problem+json"
MAX_FIELDS = 20
RETRY_SOON = 5


class RequestFieldProblem(BaseModel):
    """One part of the request that is wrong."""

    field: str = Field(
        description="Path of the invalid field in the request.", examples=["body.urls.0"]
    )
    message: str = Field(
        description="Why the value is invalid.",
        examples=["'ftp://example.org' cannot be crawled: scheme"],
    )


class QuotaUse(BaseModel):
    """What of a quota is used up."""

    what: str = Field(description="Name of the quota.", examples=["active_jobs"])
    used: int = Field(description="Amount that is in use.", examples=[5])
    limit: int = Field(description="Maximum amount.", examples=[5])


class Problem(BaseModel):
    """Why a request failed."""

    model_config = ConfigDict(json_schema_extra={"required": ["type", "title", "status", "detail"]})

    type: str = Field(
        description="URN of the problem, for programs.", examples=["urn:forager:problem:not-found"]
    )
    title: str = Field(description="Short name of the problem.", examples=["Not found"])
    status: int = Field(description="HTTP status of the response.", examples=[404])
    detail: str = Field(
        description="What happened, in a sentence.",
        examples=["there is no job 0199a5c2-8a00-7000-8000-000000000000"],
    )
    fix: str | None = Field(default=None, description="Suggested fix.")
    errors: list[RequestFieldProblem] | None = Field(
        default=None, description="Invalid fields; at most 20."
    )
    quota: QuotaUse | None = Field(default=None, description="The quota that is used up.")
    retry_after: int | None = Field(
        default=None, description="Seconds until the next attempt can succeed."
    )
    request_id: str | None = Field(default=None, description="Also in the server's log.")


class InvalidFields(InvalidInput):
    """Parts of the request are not valid."""

    def __init__(self, fields: Sequence[RequestFieldProblem]) -> None:
        super().__init__(
            "; ".join(sentence(each.field, each.message) for each in fields[:3]),
            hint="Correct the fields in `errors`; /api/docs describes each call.",
        )
        self.fields = list(fields[:MAX_FIELDS])


class WrongHost(ForagerError):
    """The Host header names another server."""


# What each error means to a caller; the first line that matches applies.
MEANINGS: tuple[tuple[type[Exception], int, str], ...] = (
    (NotFound, 404, "Not found"),
    (InvalidInput, 422, "Invalid request"),
    (Unauthorized, 401, "A valid API key is required"),
    (NotPermitted, 403, "Not permitted"),
    (QuotaExceeded, 429, "Quota exceeded"),
    (TooManyRequests, 429, "Too many at the same time"),
    (AlreadyThere, 409, "Already exists"),
    (NotAllowed, 409, "Not possible in the current state"),
    (LeaseLost, 409, "Not possible in the current state"),
    (WrongHost, 421, "Unknown host name"),
    (DatabaseUnavailable, 503, "The database is unavailable"),
    (StorageAway, 503, "The object store is unavailable"),
    (ClickHouseUnavailable, 503, "The ClickHouse server is unavailable"),
    (DiskFull, 503, "No disk space left"),
    (SchemaMismatch, 503, "The database has a different schema version"),
    (SecretsUnavailable, 503, "Stored secrets cannot be decrypted"),
    (WorkFailed, 502, "The attempt failed"),
    # values that passed validation but that PostgreSQL cannot store
    (psycopg.DataError, 422, "Invalid request"),
    (UnicodeEncodeError, 422, "Invalid request"),
)
NAMES = {
    400: "bad-request",
    401: "unauthorised",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    409: "conflict",
    413: "too-large",
    415: "unsupported-media-type",
    421: "misdirected",
    422: "invalid",
    429: "quota",
    500: "internal",
    502: "failed",
    503: "unavailable",
}
# texts for errors of the framework
HTTP_MESSAGES = {
    404: ("Not found", "there is no endpoint at this path", "See /api/docs for the endpoints."),
    405: ("Method not allowed", "this path does not accept the method",
          "The header Allow lists the accepted methods."),
    413: ("The request is too large", "",
          "Send less at once, or raise FORAGER_API_MAX_BODY_MB."),
    415: ("Unsupported media type", "", "Send `Content-Type: application/json`."),
    503: ("The server is busy", "", "Try again later, or raise FORAGER_API_MAX_REQUESTS."),
}  # fmt: skip
# for the reference: each status, and the titles that come with it
STATUS_TITLES: dict[int, str] = {
    status: "; ".join(
        dict.fromkeys(
            [title for _, code, title in MEANINGS if code == status]
            + [message[0] for code, message in HTTP_MESSAGES.items() if code == status]
        )
    )
    or NAMES[status].replace("-", " ").capitalize()
    for status in NAMES
}


def problem_of(error: Exception, show: Render = as_call) -> Problem:
    """An error as a caller sees it; unexpected ones reveal nothing about the inside.

    `show` writes the actions of a hint.
    """
    if isinstance(error, HTTPException):
        return _of_http(error)
    if isinstance(error, RequestValidationError):
        return problem_of(InvalidFields(field_problems(error.errors())), show)
    if isinstance(error, WorkFailed) and error.kind in (ErrorKind.NOT_ALLOWED, ErrorKind.ROBOTS):
        return _problem(403, "This URL must not be fetched", error.message, fix=_fix(error, show))
    for kind, status, title in MEANINGS:
        if isinstance(error, kind):
            return _of_known(error, status, title, show)
    return _problem(
        500,
        "Internal error",
        "an unexpected error occurred",
        fix="The server log has details under this request id. Please report it.",
    )


def problem_response(error: Exception) -> Response:
    problem = problem_of(error)
    if problem.status == 500:
        log.error("a request failed", exc_info=error)
    return Response(
        problem.model_dump_json(exclude_none=True),
        problem.status,
        headers=_headers(error, problem.status),
        media_type=MEDIA_TYPE,
    )


async def answer_with_problem(request: Request, error: Exception) -> Response:
    """The exception handler of the application."""
    if isinstance(error, RequestValidationError):
        error = InvalidFields(field_problems(error.errors(), known=_body_fields(request)))
    return problem_response(error)


def _body_fields(request: Request) -> Iterable[str]:
    """The fields of the body that the endpoint expects."""
    route = request.scope.get("route")
    bodies = route.dependant.body_params if isinstance(route, APIRoute) else []
    models = [body.field_info.annotation for body in bodies]
    return {name for model in models for name in getattr(model, "model_fields", ())}


def field_problems(
    errors: Sequence[Any], *prefix: str, known: Iterable[str] = ()
) -> list[RequestFieldProblem]:
    """The errors of a Pydantic model; what was sent is not repeated, it may be long or secret.

    `known` are the names of the top-level fields.
    """
    return [
        RequestFieldProblem(
            field=name_of((*prefix, *problem["loc"]))[:200],
            message=message_of(problem, known if len(problem["loc"]) == 2 else ())[:500],
        )
        for problem in errors[:MAX_FIELDS]
    ]


def _of_known(error: Exception, status: int, title: str, show: Render) -> Problem:
    if not isinstance(error, ForagerError):
        return _problem(status, title, "a value cannot be stored: out of range, or not text")
    return _problem(
        status,
        title,
        error.message,
        fix=_fix(error, show),
        errors=error.fields if isinstance(error, InvalidFields) else None,
        quota=QuotaUse(what=error.what, used=error.used, limit=error.limit)
        if isinstance(error, QuotaExceeded)
        else None,
        retry_after=error.retry_after if isinstance(error, TooManyRequests) else None,
    )


def _fix(error: ForagerError, show: Render) -> str | None:
    return None if error.hint is None else render(error.hint, show)


def _of_http(error: HTTPException) -> Problem:
    title, message, fix = HTTP_MESSAGES.get(error.status_code, (str(error.detail), "", None))
    return _problem(error.status_code, title, message or str(error.detail), fix=fix)


def _problem(status: int, title: str, detail: str, **more: Any) -> Problem:
    return Problem(
        type=f"urn:forager:problem:{NAMES.get(status, 'other')}",
        title=title,
        status=status,
        detail=detail,
        request_id=current_request_id(),
        **more,
    )


def _headers(error: Exception, status: int) -> dict[str, str]:
    headers: Mapping[str, str] = getattr(error, "headers", None) or {}
    if isinstance(error, Unauthorized):
        place = error.metadata_url
        more = "" if place is None else f', resource_metadata="{place}"'
        return {"WWW-Authenticate": f'Bearer realm="forager"{more}'}
    if isinstance(error, TooManyRequests):
        return {"Retry-After": str(error.retry_after)}
    if isinstance(error, RequestInProgress):
        return {"Retry-After": "1"}
    return {"Retry-After": str(RETRY_SOON)} if status == 503 else dict(headers)
