"""One id for each request: in its answer, in every log line it causes, and in its problems."""

from __future__ import annotations

import re
import time
from contextvars import ContextVar
from secrets import token_hex

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from forager.logs import get_logger

log = get_logger("api")

HEADER = "X-Request-Id"
_GIVEN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_current: ContextVar[str | None] = ContextVar("request_id", default=None)


def current_request_id() -> str | None:
    return _current.get()


class RequestIds:
    """Outermost: names the request, logs how it ended, and lets no error through unanswered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _id_of(scope)
        token = _current.set(request_id)
        try:
            with bound_contextvars(request_id=request_id):
                await self._answer(scope, receive, send, request_id)
        finally:
            _current.reset(token)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        from forager.api.problems import problem_response

        began = time.perf_counter()
        status = 0

        async def send_named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        try:
            await self._app(scope, receive, send_named)
        except Exception as error:
            if status:  # the answer has begun: all that is left is to break it off
                log.error("an answer was broken off", exc_info=error)
                raise
            await problem_response(error)(scope, receive, send_named)
        finally:
            log.info(
                "request",
                method=scope["method"],
                path=scope["path"],
                status=status,
                ms=round((time.perf_counter() - began) * 1000, 1),
            )


def _id_of(scope: Scope) -> str:
    given = Headers(scope=scope).get(HEADER, "")
    return given if _GIVEN.fullmatch(given) else token_hex(8)
