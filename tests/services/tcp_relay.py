"""A line to a server that is slow, silent, or loses an answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self

PIECE = 4096


class Relay:
    """Passes bytes on to a port on loopback.

    `pause`: before each piece of an answer. `lost`: how many answers are cut off instead of passed
    on, after the server has given them. `silent`: nothing is passed on at all.
    """

    def __init__(
        self, port: int, *, pause: float = 0.0, lost: int = 0, silent: bool = False
    ) -> None:
        self._target = port
        self.pause = pause
        self.lost = lost
        self.silent = silent
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.CancelledError):
                await self._relay(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.silent:
            await reader.read()
            return
        theirs, to_them = await asyncio.open_connection("127.0.0.1", self._target)
        there = asyncio.create_task(_pass_on(reader, to_them))
        try:
            while data := await theirs.read(PIECE):
                if self.lost:
                    self.lost -= 1
                    return
                await asyncio.sleep(self.pause)
                writer.write(data)
                await writer.drain()
        finally:
            there.cancel()
            await asyncio.gather(there, return_exceptions=True)
            to_them.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()
