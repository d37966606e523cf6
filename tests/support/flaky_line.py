"""A TCP line to PostgreSQL that can go silent: it stays open, and nothing comes through."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit


class FlakyLine:
    """A proxy on loopback before the server behind `url` (TCP or Unix socket)."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._silent: set[int] = set()
        self._lines = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        user = quote(self._parts.username or "postgres")
        password = f":{self._parts.password}" if self._parts.password else ""
        self.url = urlunsplit(
            ("postgresql", f"{user}{password}@127.0.0.1:{port}", self._parts.path, "", "")
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def silence(self) -> int:
        """All lines there are now go silent, for ever; how many. New ones work."""
        before = len(self._silent)
        self._silent |= set(range(self._lines))
        return len(self._silent) - before

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number, self._lines = self._lines, self._lines + 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        back, forth = await self._connect()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._copy(number, reader, forth))
                group.create_task(self._copy(number, back, writer))
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            for end in (writer, forth):
                end.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        query = parse_qs(self._parts.query)
        host = query.get("host", [self._parts.hostname or "localhost"])[0]
        port = int(query.get("port", [str(self._parts.port or 5432)])[0])
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)

    async def _copy(
        self, number: int, source: asyncio.StreamReader, target: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                if number not in self._silent:
                    target.write(data)
        # the end of one direction is the end of the line, unless it is silent
        if number not in self._silent:
            target.transport.abort()
