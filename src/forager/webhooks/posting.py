"""Posting: one message to one URL, behind the same guard as crawls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import aiohttp
from yarl import URL

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
from forager.fetch.response import REDIRECTS, Limits, parse_retry_after

LIMITS = Limits(connect=5.0, read=10.0, total=10.0, body=64 * 1024, header_bytes=16 * 1024)
# a body is read only so that the connection can be used again
DRAIN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Posted:
    """The outcome of a message: it is taken if the status is 2xx."""

    status: int | None
    error: str | None
    seconds: float
    retry_after: float | None = None

    @property
    def taken(self) -> bool:
        return self.error is None


class Poster:
    """Posts messages without redirects and cookies; an error of a receiver is an outcome."""

    def __init__(self, user_agent: str, limits: Limits = LIMITS) -> None:
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
    ) -> Posted:
        began = time.perf_counter()
        token = stopwatch.set(Stopwatch(began))
        try:
            status, retry_after = await self._post(url, body, headers, allow_private)
        except Exception as error:
            failure = classify(error, self._limits, None)
            return Posted(None, failure.message, time.perf_counter() - began)
        finally:
            stopwatch.reset(token)
        return Posted(status, _refusal(status), time.perf_counter() - began, retry_after)

    async def _post(
        self, url: str, body: bytes, headers: Mapping[str, str], allow_private: bool
    ) -> tuple[int, float | None]:
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
        await _drain(answer, limits.body)
        return answer.status, parse_retry_after(answer.headers)

    def _session(self, allow_private: bool) -> aiohttp.ClientSession:
        session = self._sessions.get(allow_private)
        if session is None:
            session = self._sessions[allow_private] = self._new_session(allow_private)
        return session

    def _new_session(self, allow_private: bool) -> aiohttp.ClientSession:
        guard = GuardPolicy(allow_private=allow_private)
        limits = self._limits
        return aiohttp.ClientSession(
            connector=GuardedConnector(
                guard, GuardedResolver(self._resolver, guard), PoolSize(), None
            ),
            headers={"User-Agent": self._user_agent, "Content-Type": "application/json"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(
                total=limits.total, sock_connect=limits.connect, sock_read=limits.read
            ),
        )


async def _drain(answer: aiohttp.ClientResponse, limit: int) -> None:
    """Read a short response to its end; abort a long, slow or broken one."""
    size = 0
    with suppress(aiohttp.ClientError, OSError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while size <= limit and (chunk := await answer.content.readany()):
                size += len(chunk)
            if size <= limit:
                return
    answer.close()


def _refusal(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    if status in REDIRECTS:
        return f"the receiver answered {status}; redirects are not followed"
    return f"the receiver answered {status}"
