"""A TCP proxy between Forager and PostgreSQL that can delay, cut and silence connections."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

CHUNK = 65536
# the network closes a silent connection after this time
SILENT_LIMIT = 40.0


class ConnectionProxy:
    """A proxy on loopback in front of the server at `url` (TCP or Unix socket)."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._wires: set[_Wire] = set()
        self.delay = 0.0
        self.is_down = False
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        user = quote(self._parts.username or "postgres")
        password = f":{quote(self._parts.password)}" if self._parts.password else ""
        place = f"{user}{password}@127.0.0.1:{port}"
        self.url = urlunsplit(("postgresql", place, self._parts.path, "", ""))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()

    def cut(self) -> int:
        """Cut all connections; return their number."""
        wires = list(self._wires)
        for wire in wires:
            wire.end()
        return len(wires)

    def silence(self) -> int:
        """Keep all connections open, but transfer nothing; return their number."""
        wires = [wire for wire in self._wires if not wire.silent]
        for wire in wires:
            wire.silence()
        return len(wires)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.transport.abort()
            return
        try:
            back, forth = await self._connect()
        except OSError:  # the server is unavailable, and so is the proxy
            writer.transport.abort()
            return
        wire = _Wire(self, (reader, forth), (back, writer))
        self._wires.add(wire)
        try:
            await wire.carry()
        finally:
            self._wires.discard(wire)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        query = parse_qs(self._parts.query)
        host = query.get("host", [self._parts.hostname or "localhost"])[0]
        port = int(query.get("port", [str(self._parts.port or 5432)])[0])
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)


Way = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Wire:
    """One connection through the proxy."""

    def __init__(self, line: ConnectionProxy, *ways: Way) -> None:
        self.silent = False
        self._line = line
        self._ways = ways
        self._ended = asyncio.Event()

    async def carry(self) -> None:
        copies = [asyncio.ensure_future(self._copy(*way)) for way in self._ways]
        try:
            await self._ended.wait()
        finally:
            for copy in copies:
                copy.cancel()
            for _, writer in self._ways:
                writer.transport.abort()
            await asyncio.gather(*copies, return_exceptions=True)

    def end(self) -> None:
        self._ended.set()

    def silence(self) -> None:
        self.silent = True
        asyncio.get_running_loop().call_later(SILENT_LIMIT, self.end)

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(CHUNK):
                if self._line.delay:
                    await asyncio.sleep(self._line.delay)
                if not self.silent:
                    target.write(data)
                    await target.drain()
        if not self.silent:
            self.end()
