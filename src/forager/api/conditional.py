"""ETags: whoever polls gets the body only when it has changed.

Every answer to a GET below /api has one, so an endpoint need do nothing for it. The body must
therefore hold nothing that changes by itself, such as the time of asking.
"""

from __future__ import annotations

from hashlib import blake2b

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATHS = "/api/"
JSON = "application/json"


class Conditional:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"].startswith(PATHS):
            wanted = Headers(scope=scope).get("if-none-match", "")
            send = _Tagging(send, wanted)
        await self._app(scope, receive, send)


class _Tagging:
    """Holds the beginning of an answer back until its body is there; streams pass through."""

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
