"""A client that says what it got."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

import aiohttp
from multidict import CIMultiDictProxy


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def is_problem(self) -> bool:
        """Whether it is an error in the form that all errors have."""
        return (
            self.headers["Content-Type"] == "application/problem+json"
            and self.json["status"] == self.status
            and bool(self.json["detail"])
            and self.json["request_id"] == self.headers["X-Request-Id"]
        )


class Api:
    def __init__(self, address: str, *, key: str | None = None, owner: UUID | None = None) -> None:
        self.address = address
        self.owner = owner
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.session = aiohttp.ClientSession(address, headers=headers)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def get(self, path: str, **how: Any) -> Answer:
        return await self.send("GET", path, **how)

    async def post(self, path: str, body: Any = None, **how: Any) -> Answer:
        return await self.send("POST", path, body, **how)

    async def send(self, method: str, path: str, body: Any = None, **how: Any) -> Answer:
        if body is not None:
            how["json"] = body
        async with self.session.request(method, path, **how) as response:
            return Answer(response.status, response.headers, await response.read())

    async def crawl(self, url: str = "https://docs.example.org/", **order: Any) -> Any:
        """Ask for a crawl that must be accepted."""
        answer = await self.post("/api/v1/crawls", {"urls": [url], **order})
        assert answer.status == 202, answer.body
        return answer.json
