"""A receiver of webhooks that takes, refuses, hangs, redirects or drips, and keeps what it got."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from servers.base import LoopbackServer

TAKES = b"HTTP/1.1 204 No Content\r\n\r\n"


def answering(status: int, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} So", *headers, "Content-Length: 0"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@dataclass(frozen=True, slots=True)
class Got:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.body)
        return content


class Receiver(LoopbackServer):
    """Answers `answer`, or never if that is None; 500 if `refuses` says so."""

    def __init__(self, answer: bytes | None = TAKES) -> None:
        super().__init__()
        self.answer = answer
        self.refuses: Callable[[Got], bool] | None = None
        self.drips: bytes | None = None
        self.got: list[Got] = []
        self.arrived = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, *fields = head.strip().split("\r\n")
            headers = {k.lower(): v for k, v in (field.split(": ", 1) for field in fields)}
            body = await reader.readexactly(int(headers["content-length"]))
            self.got.append(Got(line.split()[1], headers, body))
            self.arrived.set()
            if self.answer is None:
                await asyncio.Event().wait()
            assert self.answer is not None
            is_refused = self.refuses is not None and self.refuses(self.got[-1])
            writer.write(answering(500) if is_refused else self.answer)
            while self.drips is not None:
                writer.write(self.drips)
                await writer.drain()
                await asyncio.sleep(0.01)
