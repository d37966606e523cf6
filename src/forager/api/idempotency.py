"""`Idempotency-Key`: a request that creates something can be repeated without creating it twice.

The response is stored in the transaction that does the work. A server that dies in the middle
leaves neither, and the request can be repeated; of two requests at the same time the second waits
for the first and gets its response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import Depends, Header, Request
from pydantic import BaseModel
from starlette.responses import Response

from forager.access.answers import StoredAnswer, insert_answer, reserve
from forager.access.caller import NO_OWNER
from forager.api.services import OperatorServices, Services
from forager.validation import matches

REPLAYED = "Idempotency-Replayed"
MEDIA_TYPE = "application/json"

Work = Callable[[Services], Awaitable[Any]]

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=matches(r"^[\x21-\x7e]+$", "ASCII characters without spaces"),
        description="Any text that you choose. A request that is repeated with the same key within"
        " 24 hours is done once and gets the same response.",
    ),
]


@dataclass(frozen=True, slots=True)
class IdempotentWork:
    """Does work once per key; without a key, every time."""

    services: Services
    key: str | None
    request_hash: bytes

    async def do(
        self, work: Work, view: Callable[[Any], BaseModel], *, status: int, secret: bool = False
    ) -> Response:
        """The view of the result of `work`, or the stored response; `secret` ones are encrypted."""
        if self.key is None:
            return _response(status, _encoded(view(await work(self.services))))
        async with self.services.database.transaction() as connection:
            stored = await reserve(connection, self._owner, self.key, self.request_hash)
            if stored is not None:
                return _response(stored.status, self._opened(stored), replayed=True)
            answer = _encoded(view(await work(self.services.within(connection))))
            await insert_answer(
                connection,
                self._owner,
                self.key,
                status=status,
                answer=self._sealed(answer) if secret else answer,
                sealed=secret,
            )
        return _response(status, answer)

    @property
    def _owner(self) -> UUID:
        return self.services.caller.user_id or NO_OWNER

    def _sealed(self, answer: bytes) -> bytes:
        return self.services.vault.encrypt(answer.decode(), self._context)

    def _opened(self, stored: StoredAnswer) -> bytes:
        if not stored.sealed:
            return stored.answer
        return self.services.vault.decrypt(stored.answer, self._context).encode()

    @property
    def _context(self) -> str:
        return f"answer {self._owner} {self.key}"


async def _once(
    request: Request, services: OperatorServices, key: IdempotencyKey = None
) -> IdempotentWork:
    hashed = b"" if key is None else _request_hash(request, await request.body())
    return IdempotentWork(services, key, hashed)


OnlyOnce = Annotated[IdempotentWork, Depends(_once)]


def _request_hash(request: Request, body: bytes) -> bytes:
    """Equal for the same JSON in another spelling."""
    with suppress(orjson.JSONDecodeError):
        body = orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS)
    target = f"{request.method} {request.url.path}?{request.url.query}\n"
    return sha256(target.encode() + body).digest()


def _encoded(answer: BaseModel) -> bytes:
    return answer.model_dump_json().encode()


def _response(status: int, body: bytes, *, replayed: bool = False) -> Response:
    headers = {REPLAYED: "true"} if replayed else None
    return Response(body, status, headers=headers, media_type=MEDIA_TYPE)
