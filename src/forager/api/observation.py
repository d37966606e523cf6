"""Middleware: the ID, log, metrics and trace of every request, and ETags of answers to GET.

A body below /api must hold nothing that changes by itself, such as the current time.
"""

from __future__ import annotations

import re
import time
from contextvars import ContextVar
from hashlib import blake2b
from secrets import token_hex

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from forager import tracing
from forager.api.actions import API
from forager.logs import get_logger
from forager.metrics.catalog import API_REQUESTS, API_SECONDS

PATHS = "/api/"
JSON = "application/json"


class ConditionalRequests:
    """Answers a GET with 304 if the client knows the response already."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"].startswith(PATHS):
            wanted = Headers(scope=scope).get("if-none-match", "")
            send = _Tagging(send, wanted)
        await self._app(scope, receive, send)


class _Tagging:
    """Holds the start of a response back until its body is known; streams pass through."""

    def __init__(self, send: Send, wanted: str) -> None:
        self._send = send
        self._wanted = wanted
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_tagged(message):
            self._start = message
            return
        if self._start is not None:
            start, self._start = self._start, None
            if not message.get("more_body"):
                message = self._tag(start, message)
            await self._send(start)
        await self._send(message)

    def _tag(self, start: Message, body: Message) -> Message:
        etag = f'"{blake2b(body.get("body", b""), digest_size=16).hexdigest()}"'
        headers = MutableHeaders(scope=start)
        headers["ETag"] = etag
        # it may be another one for another key, and must be asked for again each time
        headers["Cache-Control"] = "private, no-cache"
        headers["Vary"] = "Authorization, X-Api-Key, Cookie"
        if not _matches(self._wanted, etag):
            return body
        start["status"] = 304
        del headers["content-length"]
        del headers["content-type"]
        return {**body, "body": b""}


def _is_tagged(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    return start["status"] == 200 and headers.get("content-type", "").startswith(JSON)


def _matches(wanted: str, etag: str) -> bool:
    tags = [tag.strip().removeprefix("W/") for tag in wanted.split(",")]
    return wanted.strip() == "*" or etag in tags


log = get_logger("api")

HEADER = "X-Request-Id"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
NO_ROUTE = "none"
OTHER = "other"
STREAM = "text/event-stream"
_GIVEN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_current: ContextVar[str | None] = ContextVar("request_id", default=None)


def current_request_id() -> str | None:
    return _current.get()


class Observation:
    """The outermost middleware: it also observes rejected requests, and answers every error."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get(HEADER, "")
        request_id = given if _GIVEN.fullmatch(given) else token_hex(8)
        method = scope["method"] if scope["method"] in METHODS else OTHER
        token = _current.set(request_id)
        try:
            with (
                bound_contextvars(request_id=request_id),
                tracing.span(f"{method} request", parent=headers.get(tracing.HEADER)) as span,
            ):
                status = await self._answer(scope, receive, send, request_id, method)
                route = route_of(scope)
                span.update_name(f"{method} {route}")
                span.set_attributes({"http.route": route, "http.response.status_code": status})
        finally:
            _current.reset(token)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, request_id: str, method: str
    ) -> int:
        from forager.api.problems import problem_response

        began = time.perf_counter()
        status, is_stream = 0, False

        async def send_named(message: Message) -> None:
            nonlocal status, is_stream
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[HEADER] = request_id
                is_stream = headers.get("content-type", "").startswith(STREAM)
            await send(message)

        try:
            await self._app(scope, receive, send_named)
        except Exception as error:
            if status:  # the answer has begun: all that is left is to break it off
                log.error("an answer was broken off", exc_info=error)
                raise
            await problem_response(error)(scope, receive, send_named)
        finally:
            seconds, route = time.perf_counter() - began, route_of(scope)
            API_REQUESTS.add(route, method, str(status))
            if not is_stream:
                API_SECONDS.observe(seconds, route)
            log.info(
                "request",
                method=scope["method"],
                path=scope["path"],
                status=status,
                ms=round(seconds * 1000, 1),
            )
        return status


def route_of(scope: Scope) -> str:
    """The template of the path, because the number of paths is unlimited."""
    template: str | None = getattr(scope.get("route"), "path", None)
    if template is None:
        return NO_ROUTE
    # a route knows its path within its router, and not the prefix of that
    prefix = next((each for each in (API, "/api") if scope["path"].startswith(f"{each}/")), "")
    return template if template.startswith("/api/") else prefix + template
