"""Limits on what comes in: the size of a body, and the number of requests."""

from __future__ import annotations

import time
from dataclasses import dataclass
from uuid import UUID

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forager.access.caller import Caller
from forager.access.errors import QuotaExceeded

MAX_LIST = 1000
MAX_BULK = 1000
# owners that were not heard of for a while are forgotten when there are so many
MAX_BUCKETS = 10_000


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
            raise _too_large()
        read = 0

        async def receive_some() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._max_bytes:
                raise _too_large()
            return message

        await self._app(scope, receive_some, send)


def _too_large() -> HTTPException:
    # the line stays open: closed with a body still on its way, it would take the answer with it
    return HTTPException(413)


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class RateLimiter:
    """A bucket per owner, in this process: a minute's requests at once, refilled steadily."""

    def __init__(self, per_minute: int | None) -> None:
        self._per_minute = per_minute
        self._buckets: dict[UUID, _Bucket] = {}

    def take(self, caller: Caller) -> None:
        """Count one request; raises when the owner has none left."""
        limit = caller.quota.requests_per_minute or self._per_minute
        if limit is None or caller.user_id is None:
            return
        bucket = self._refilled(caller.user_id, limit)
        if bucket.left < 1:
            raise QuotaExceeded(
                f"more than {limit} requests in a minute",
                retry_after=(1 - bucket.left) * 60 / limit,
                hint="Wait for as many seconds as Retry-After says.",
            )
        bucket.left -= 1

    def _refilled(self, user_id: UUID, limit: int) -> _Bucket:
        now = time.monotonic()
        if len(self._buckets) > MAX_BUCKETS:
            self._buckets = {u: b for u, b in self._buckets.items() if now - b.at < 60}
        bucket = self._buckets.setdefault(user_id, _Bucket(limit, now))
        bucket.left = min(limit, bucket.left + (now - bucket.at) * limit / 60)
        bucket.at = now
        return bucket
