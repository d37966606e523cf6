"""Posting: one message to one URL, behind the same guard as crawls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self

import aiohttp
from yarl import URL

from forager.extract.text import readable
from forager.fetch.connector import (
    GuardedConnector,
    GuardedResolver,
    PoolSize,
    Stopwatch,
    SystemResolver,
    stopwatch,
)
from forager.fetch.failure import classify
from forager.fetch.guard import GuardPolicy
from forager.fetch.response import REDIRECTS, ResponseLimits, parse_retry_after

LIMITS = ResponseLimits(connect=5.0, read=10.0, total=10.0, body=64 * 1024, header_bytes=16 * 1024)
# a body is read to its end only to reuse the connection
DRAIN_SECONDS = 1.0
# limit of the stored body and of the stored headers
SHOWN_BYTES = 2048


@dataclass(frozen=True, slots=True)
class PostOutcome:
    """The outcome of a message: it is taken if the status is 2xx.

    `headers` and `body` are the beginning of the response, without control characters.
    """

    status: int | None
    error: str | None
    seconds: float
    retry_after: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    # a retry would fail the same way
    is_permanent: bool = False

    @property
    def taken(self) -> bool:
        """Whether the receiver accepted the message."""
        return self.error is None

    def record(self, attempt: int) -> dict[str, Any]:
        """The stored attempt."""
        return {
            "attempt": attempt,
            "at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "status": self.status,
            "error": self.error,
            "seconds": round(self.seconds, 3),
            "headers": dict(self.headers),
            "body": self.body,
        }


class WebhookPoster:
    """Posts messages without redirects and cookies; errors are returned as outcomes."""

    def __init__(self, user_agent: str, limits: ResponseLimits = LIMITS) -> None:
        self._user_agent = user_agent
        self._limits = limits
        self._resolver = SystemResolver()
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in self._sessions.values():
            await session.close()
        await self._resolver.close()

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, allow_private: bool
    ) -> PostOutcome:
        """Send a message; the outcome says how it ended, and no error is raised."""
        began = time.perf_counter()
        token = stopwatch.set(Stopwatch(began))
        try:
            posted = await self._post(url, body, headers, allow_private)
        except Exception as error:
            posted = PostOutcome(None, classify(error, self._limits, None).message, 0.0)
        finally:
            stopwatch.reset(token)
        return replace(posted, seconds=time.perf_counter() - began)

    async def _post(
        self, url: str, body: bytes, headers: Mapping[str, str], allow_private: bool
    ) -> PostOutcome:
        limits = self._limits
        answer = await self._session(allow_private).post(
            URL(url, encoded=True),
            data=body,
            headers=dict(headers),
            allow_redirects=False,
            max_line_size=limits.header_bytes,
            max_field_size=limits.header_bytes,
            max_headers=limits.header_count,
        )
        beginning = await _drain(answer, limits.body)
        return PostOutcome(
            answer.status,
            _refusal(answer.status),
            0.0,
            parse_retry_after(answer.headers),
            _shown_headers(answer.headers),
            readable(beginning.decode("utf-8", "replace")),
        )

    def _session(self, allow_private: bool) -> aiohttp.ClientSession:
        if allow_private not in self._sessions:
            self._sessions[allow_private] = self._new_session(allow_private)
        return self._sessions[allow_private]

    def _new_session(self, allow_private: bool) -> aiohttp.ClientSession:
        guard = GuardPolicy(allow_private=allow_private)
        limits = self._limits
        return aiohttp.ClientSession(
            connector=GuardedConnector(
                guard, GuardedResolver(self._resolver, guard), PoolSize(), None
            ),
            headers={
                "User-Agent": self._user_agent,
                "Content-Type": "application/json",
                # the stored beginning of a response must be readable
                "Accept-Encoding": "identity",
            },
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(
                total=limits.total, sock_connect=limits.connect, sock_read=limits.read
            ),
        )


async def _drain(answer: aiohttp.ClientResponse, limit: int) -> bytes:
    """The beginning of a response; a short one is read to its end, others are aborted."""
    size, beginning = 0, b""
    with suppress(aiohttp.ClientError, OSError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while size <= limit and (chunk := await answer.content.readany()):
                size += len(chunk)
                beginning += chunk[: SHOWN_BYTES - len(beginning)]
            if size <= limit:
                return beginning
    answer.close()
    return beginning


def _shown_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The first headers, without cookies."""
    shown: dict[str, str] = {}
    left = SHOWN_BYTES
    for name, value in headers.items():
        left -= len(name) + len(value)
        if left < 0:
            break
        if name.lower() != "set-cookie":
            shown[readable(str(name))] = readable(value)
    return shown


def _refusal(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    if status in REDIRECTS:
        return f"the receiver answered {status}; redirects are not followed"
    return f"the receiver answered {status}"
