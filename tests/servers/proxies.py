"""Real forward proxies on loopback: HTTP (CONNECT and absolute form) and SOCKS5."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import urlsplit

from servers.base import LoopbackServer

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


class _Proxy(LoopbackServer):
    """Knows where the names it is asked for live; everything else it dials as it stands."""

    def __init__(
        self,
        username: str | None = None,
        password: str | None = None,
        names: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(tls)
        self.credentials = None if username is None else (username, password or "")
        self.names = dict(names or {})
        self.targets: list[str] = []

    async def dial(self, host: str, port: int) -> tuple[Reader, Writer]:
        self.targets.append(f"{host}:{port}")
        return await asyncio.open_connection(self.names.get(host, host), port)


class HttpProxy(_Proxy):
    """Speaks CONNECT and absolute-form requests, with Basic credentials if it has any."""

    async def handle(self, reader: Reader, writer: Writer) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        if not self._admitted(fields):
            await _answer(writer, "407 Proxy Authentication Required")
            return
        method, target, _ = line.split(" ")
        split = urlsplit(f"//{target}" if method == "CONNECT" else target)
        try:
            far_reader, far_writer = await self.dial(split.hostname or "", split.port or 80)
        except OSError:
            await _answer(writer, "502 Bad Gateway")
            return
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            path = f"{split.path or '/'}?{split.query}" if split.query else split.path or "/"
            kept = [f for f in fields if not f.lower().startswith(("proxy-", "connection:"))]
            request = "\r\n".join([f"{method} {path} HTTP/1.1", "Connection: close", *kept])
            far_writer.write(request.encode("latin-1"))
        await _relay(reader, writer, far_reader, far_writer)

    def _admitted(self, fields: list[str]) -> bool:
        if self.credentials is None:
            return True
        wanted = b64encode(":".join(self.credentials).encode()).decode()
        return f"proxy-authorization: basic {wanted}".lower() in [f.lower() for f in fields]


class Socks5Proxy(_Proxy):
    """Speaks SOCKS5 CONNECT, with username and password if it has any (RFC 1928, 1929)."""

    async def handle(self, reader: Reader, writer: Writer) -> None:
        _, count = await reader.readexactly(2)
        offered = await reader.readexactly(count)
        if not await self._admitted(offered, reader, writer):
            return
        host, port = await _destination(reader)
        try:
            far_reader, far_writer = await self.dial(host, port)
        except OSError:
            writer.write(b"\x05\x05\x00\x01" + bytes(6))
            await writer.drain()
            return
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        await _relay(reader, writer, far_reader, far_writer)

    async def _admitted(self, offered: bytes, reader: Reader, writer: Writer) -> bool:
        method = 0 if self.credentials is None else 2
        if method not in offered:
            writer.write(b"\x05\xff")
            await writer.drain()
            return False
        writer.write(bytes([5, method]))
        if method == 0:
            return True
        await reader.readexactly(1)
        given = (await _text(reader), await _text(reader))
        writer.write(b"\x01\x00" if given == self.credentials else b"\x01\x01")
        await writer.drain()
        return given == self.credentials


async def _text(reader: Reader) -> str:
    (length,) = await reader.readexactly(1)
    return (await reader.readexactly(length)).decode()


async def _destination(reader: Reader) -> tuple[str, int]:
    _, _, _, kind = await reader.readexactly(4)
    if kind == 1:
        host = ".".join(map(str, await reader.readexactly(4)))
    else:
        host = await _text(reader)
    (port,) = struct.unpack("!H", await reader.readexactly(2))
    return host, port


async def _answer(writer: Writer, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()


async def _relay(
    near_reader: Reader, near_writer: Writer, far_reader: Reader, far_writer: Writer
) -> None:
    """Both ways, until one side is done."""
    pumps = {
        asyncio.create_task(_pump(near_reader, far_writer)),
        asyncio.create_task(_pump(far_reader, near_writer)),
    }
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pump in pumps:
            pump.cancel()
        far_writer.transport.abort()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pump(reader: Reader, writer: Writer) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
