"""Limits on what comes in: the size of a body, and the length of a list."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_LIST = 1000
MAX_BULK = 1000


class BodyLimit:
    """Refuses a body that says it is too large, and stops reading one that turns out to be."""

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > self._max_bytes:
            raise _too_large(self._max_bytes)
        read = 0

        async def receive_some() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._max_bytes:
                raise _too_large(self._max_bytes)
            return message

        await self._app(scope, receive_some, send)


def _too_large(max_bytes: int) -> HTTPException:
    # the line stays open: closed with a body still on its way, it would take the answer with it
    return HTTPException(413, f"the body is larger than the {max_bytes:,} bytes that are read")
