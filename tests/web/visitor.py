"""A client that requests pages and keeps cookies, without a browser."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

import aiohttp
from multidict import CIMultiDictProxy
from yarl import URL

TOKEN = re.compile(r'name="csrf" value="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: CIMultiDictProxy[str]
    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """What a stream says: its kind, and the values of it."""

    kind: str
    data: dict[str, Any]


class Visitor:
    def __init__(self, address: str) -> None:
        self.address = address
        # browsers send cookies that are `Secure` to their own machine
        jar = aiohttp.CookieJar(unsafe=True, treat_as_secure_origin=URL(address))
        self.session = aiohttp.ClientSession(address, cookie_jar=jar)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def get(self, path: str, **how: Any) -> Answer:
        return await self._send("GET", path, **how)

    async def post(self, path: str, fields: dict[str, str] | None = None, **how: Any) -> Answer:
        return await self._send("POST", path, data=fields or {}, **how)

    async def act(self, path: str, fields: dict[str, str] | None = None, **how: Any) -> Answer:
        """Send a form as a page of ours has it: with the token."""
        return await self.post(path, {"csrf": await self.token(), **(fields or {})}, **how)

    async def token(self) -> str:
        found = TOKEN.search((await self.get("/")).text)
        assert found is not None
        return found[1]

    async def sign_in(self, key: str) -> Answer:
        return await self.post("/sign-in", {"key": key, "next": "/"}, allow_redirects=False)

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[AsyncIterator[Message]]:
        headers = {"Accept": "text/event-stream"}
        async with self.session.get(path, headers=headers) as response:
            assert response.status == 200
            yield _messages(response)

    async def _send(self, method: str, path: str, **how: Any) -> Answer:
        headers = {"Accept": "text/html", **how.pop("headers", {})}
        async with self.session.request(method, path, headers=headers, **how) as response:
            return Answer(response.status, response.headers, await response.text())


async def _messages(response: aiohttp.ClientResponse) -> AsyncIterator[Message]:
    kind = ""
    async for line in response.content:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield Message(kind, json.loads(value))
