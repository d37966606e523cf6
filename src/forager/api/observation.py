"""Every request, as metrics and traces see it: by its route, never by what was asked for."""

from __future__ import annotations

import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forager import tracing
from forager.metrics.recorded import API_REQUESTS, API_SECONDS

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
NO_ROUTE = "none"
OTHER = "other"
PREFIX = "/api/"
STREAM = "text/event-stream"


class Observation:
    """Outermost: also what the others refuse is seen."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else OTHER
        caller = Headers(scope=scope).get(tracing.HEADER)
        with tracing.span(f"{method} request", parent=caller) as span:
            status, route = await self._watch(scope, receive, send, method)
            span.rename(f"{method} {route}")
            span.set({"http.route": route, "http.response.status_code": status})

    async def _watch(
        self, scope: Scope, receive: Receive, send: Send, method: str
    ) -> tuple[int, str]:
        began = time.perf_counter()
        status, is_stream = 0, False

        async def watched(message: Message) -> None:
            nonlocal status, is_stream
            if message["type"] == "http.response.start":
                status = message["status"]
                kind = Headers(raw=message["headers"]).get("content-type", "")
                is_stream = kind.startswith(STREAM)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            route = route_of(scope)
            API_REQUESTS.add(route, method, str(status))
            if not is_stream:
                API_SECONDS.observe(time.perf_counter() - began, route)
        return status, route


def route_of(scope: Scope) -> str:
    """The template of the path: there are as many paths as people think of."""
    template: str | None = getattr(scope.get("route"), "path", None)
    if template is None:
        return NO_ROUTE
    # a route knows its path within its router, and not where that was put
    inside = scope["path"].startswith(PREFIX) and not template.startswith(PREFIX)
    return PREFIX.rstrip("/") + template if inside else template
