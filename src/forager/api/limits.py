"""Limits on requests at a time, the size of a body, the length of a list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forager.api.problems import InvalidFields, RequestFieldProblem
from forager.operations.models import AFTER, LARGEST_BIGINT, MAX_CURSOR, PlainText
from forager.operations.models import Listed as Listed
from forager.operations.models import Paging as Paging
from forager.operations.models import cut as cut
from forager.operations.models import listed as listed

MAX_LIST = 1000


# health checks are answered at any load
ALWAYS_ANSWERED = frozenset({"/healthz", "/readyz"})


class RequestLimit:
    """Rejects requests while too many others wait for their response to start.

    Streams and downloads count only until they start: they have separate limits.
    """

    def __init__(self, app: ASGIApp, *, max_requests: int) -> None:
        self._app = app
        self._max_requests = max_requests
        self._unanswered = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in ALWAYS_ANSWERED:
            await self._app(scope, receive, send)
            return
        if self._unanswered >= self._max_requests:
            raise HTTPException(503, f"{self._max_requests} requests are being answered already")
        counted = 1
        self._unanswered += counted

        async def send_counted(message: Message) -> None:
            nonlocal counted
            self._unanswered -= counted
            counted = 0
            await send(message)

        try:
            await self._app(scope, receive, send_counted)
        finally:
            self._unanswered -= counted


class BodyLimit:
    """Rejects a body that is declared too large, and stops reading one that grows too large."""

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > self._max_bytes:
            raise _too_large(self._max_bytes)
        has_body = int(length[:20]) > 0 or "transfer-encoding" in headers
        if has_body and scope["path"].startswith("/api/") and not _is_json(headers):
            raise HTTPException(415, "the body is not declared as JSON")
        read = 0

        async def receive_some() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._max_bytes:
                raise _too_large(self._max_bytes)
            return message

        await self._app(scope, receive_some, send)


def _is_json(headers: Headers) -> bool:
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return media_type == "application/json" or media_type.endswith("+json")


def _too_large(max_bytes: int) -> HTTPException:
    # the connection stays open: closed while the body arrives, the client would lose the response
    return HTTPException(413, f"the body is larger than the {max_bytes:,} bytes that are read")


Limit = Annotated[int, Query(ge=1, le=MAX_LIST, description="Maximum number of items.")]
Cursor = Annotated[PlainText | None, Query(max_length=MAX_CURSOR, description=AFTER)]


def paging_of(default: int) -> Any:
    """The parameters of a list as one dependency."""

    def paging(limit: Limit = default, cursor: Cursor = None) -> Paging:
        return Paging(cursor=cursor, limit=limit)

    return Depends(paging)


Paged = Annotated[Paging, paging_of(50)]
RowId = Annotated[int, Path(ge=1, le=LARGEST_BIGINT)]
ANY_DOMAIN = "Only this host, its subdomains, or the domain that covers it."
Domain = Annotated[PlainText | None, Query(min_length=1, max_length=300, description=ANY_DOMAIN)]


async def refuse_unknown_query(request: Request) -> None:
    """Reject misspelled parameters."""
    known = _query_parameters(request.scope["route"].dependant)
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        expected = f"unknown; expected: {', '.join(sorted(known)) or 'none'}"
        raise InvalidFields(
            [RequestFieldProblem(field=f"query.{n}", message=expected) for n in unknown]
        )


def _query_parameters(dependant: Dependant) -> set[str]:
    own = {name for field in dependant.query_params for name in _names(field)}
    return own.union(*(_query_parameters(each) for each in dependant.dependencies))


def _names(field: ModelField) -> Iterable[str]:
    """The name of a parameter, or those of the fields of a model of parameters."""
    kind = field.field_info.annotation
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind.model_fields
    return [field.alias]
