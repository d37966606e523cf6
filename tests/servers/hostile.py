"""A web server that misbehaves on purpose; the path says how.

/ok                      a small page, with ETag and Last-Modified, answers 304 to both
/echo                    the request's own head as the body
/status/503?Retry-After  any status; the query is `Header=value&...` (percent-encoded)
/redirect?to=URL         302 to anywhere
/loop/1 /loop/2          two pages that redirect to each other
/spiral/N                redirects to /spiral/N+1 for ever
/endless                 claims no length and never ends
/claim                   claims 10 GB, and would send them
/encoded/CODING          a page in gzip, deflate, raw-deflate, br, zstd
/bomb/CODING             a few kilobytes that unpack to 300 MB
/broken/CODING           says it is compressed, and is not
/cut/CODING              a compressed stream cut in the middle
/drip                    the head, then a byte for each release of `drip`, then silence
/silent                  accepts, reads, never answers
/slow-head               half of the head, then silence
/endless-head            headers without end
/long-header             one header of 1 MB
/short                   fewer bytes than Content-Length
/long                    more bytes than Content-Length
/reset                   a reset before the status line
/reset-body              a reset in the middle of the body
/close                   the connection closed before the status line
/garbage                 a status line that is none
/bad-chunks              a chunked body with broken sizes
/empty                   204
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import struct
import sys
import zlib
from collections.abc import Awaitable, Callable
from functools import cache
from urllib.parse import parse_qsl, unquote, urlsplit

import brotli  # type: ignore[import-untyped]

from servers.base import LoopbackServer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PAGE = b"<html><title>ok</title><p>" + b"text " * 400
ETAG = '"v1"'
LAST_MODIFIED = "Sat, 01 Nov 2025 10:00:00 GMT"
BOMB_SIZE = 300 * 1024 * 1024

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


class SilentServer(LoopbackServer):
    """Accepts connections, and never says a word."""

    async def handle(self, reader: Reader, writer: Writer) -> None:
        await asyncio.Event().wait()


class HostileServer(LoopbackServer):
    """Start with `async with`; `requests` is what arrived, `sent` the bytes that left.

    `greeting` is said before anything is asked, as a mail server would.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self.requests: list[bytes] = []
        self.sent = 0
        self.drip = asyncio.Semaphore(0)
        self.greeting = b""

    @property
    def url(self) -> str:
        scheme = "https" if self._tls else "http"
        return f"{scheme}://127.0.0.1:{self.port}"

    async def handle(self, reader: Reader, writer: Writer) -> None:
        """Answer requests until one misbehaviour ends the connection."""
        if self.greeting:
            await self.write(writer, self.greeting)
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head)
            answer = _Answer(self, head, writer)
            route = ROUTES.get(answer.name, _missing)
            if not await route(answer):
                return

    async def write(self, writer: Writer, data: bytes) -> None:
        """Send, and count what was really taken."""
        writer.write(data)
        await writer.drain()
        self.sent += len(data)


class _Answer:
    """One request, and the means to answer it."""

    def __init__(self, server: HostileServer, head: bytes, writer: Writer) -> None:
        self.server = server
        self.head = head
        self.writer = writer
        self.method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        parts = urlsplit(target)
        _, self.name, self.rest, *_ = [*parts.path.split("/"), ""]
        self.query = parts.query

    def header(self, name: str) -> str:
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name.lower():
                return value.strip()
        return ""

    async def raw(self, data: bytes) -> None:
        await self.server.write(self.writer, data)

    async def page(self, body: bytes, status: str = "200 OK", **headers: str) -> bool:
        fields = {"Content-Type": "text/html", "Content-Length": str(len(body))}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields.items())]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")
        await self.raw(head + (b"" if self.method == "HEAD" else body))
        return True

    def reset(self) -> bool:
        """Close with RST rather than FIN."""
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    async def silence(self) -> bool:
        await asyncio.Event().wait()
        return False


async def _missing(answer: _Answer) -> bool:
    return await answer.page(b"nothing here", "404 Not Found")


async def _ok(answer: _Answer) -> bool:
    validators = {"ETag": ETAG, "Last_Modified": LAST_MODIFIED}
    fresh = (answer.header("If-None-Match"), answer.header("If-Modified-Since"))
    if ETAG in fresh or LAST_MODIFIED in fresh:
        await answer.raw(f"HTTP/1.1 304 Not Modified\r\nETag: {ETAG}\r\n\r\n".encode())
        return True
    return await answer.page(PAGE, **validators)


async def _echo(answer: _Answer) -> bool:
    return await answer.page(answer.head)


async def _status(answer: _Answer) -> bool:
    headers = {name.replace("-", "_"): value for name, value in parse_qsl(answer.query)}
    return await answer.page(b"as asked", f"{answer.rest} As-Asked", **headers)


async def _redirect(answer: _Answer) -> bool:
    target = unquote(answer.query.partition("to=")[2], errors="surrogateescape")
    return await answer.page(b"", "302 Found", Location=target)


async def _loop(answer: _Answer) -> bool:
    return await answer.page(b"", "301 Moved", Location="1" if answer.rest == "2" else "2")


async def _spiral(answer: _Answer) -> bool:
    return await answer.page(b"", "302 Found", Location=f"/spiral/{int(answer.rest) + 1}")


async def _endless(answer: _Answer) -> bool:
    await answer.raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    while True:
        await answer.raw(b"x" * 65536)


async def _claim(answer: _Answer) -> bool:
    await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
    while True:
        await answer.raw(b"x" * 65536)


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "raw-deflate": _raw_deflate,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


def _coding(name: str) -> str:
    return "deflate" if name == "raw-deflate" else name


async def _encoded(answer: _Answer) -> bool:
    body = CODERS[answer.rest](PAGE)
    return await answer.page(body, Content_Encoding=_coding(answer.rest))


@cache
def bomb(coding: str) -> bytes:
    """Zeros packed without ever holding them all; gzip in members of 10 MB each.

    Packing may take longer than a client waits: call it before the first request.
    """
    part = bytes(10 * 1024 * 1024)
    repeats = BOMB_SIZE // len(part)
    if coding == "br":
        packer = brotli.Compressor(quality=3)
        packed = b"".join(packer.process(part) for _ in range(repeats))
        return bytes(packed + packer.finish())
    return CODERS[coding](part) * repeats


async def _bomb(answer: _Answer) -> bool:
    return await answer.page(bomb(answer.rest), Content_Encoding=answer.rest)


async def _broken(answer: _Answer) -> bool:
    return await answer.page(PAGE, Content_Encoding=answer.rest)


async def _cut(answer: _Answer) -> bool:
    body = CODERS[answer.rest](PAGE)
    return await answer.page(body[: len(body) // 2], Content_Encoding=answer.rest)


async def _drip(answer: _Answer) -> bool:
    await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        await answer.server.drip.acquire()
        await answer.raw(b"x")


async def _silent(answer: _Answer) -> bool:
    return await answer.silence()


async def _slow_head(answer: _Answer) -> bool:
    await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Ty")
    return await answer.silence()


async def _endless_head(answer: _Answer) -> bool:
    await answer.raw(b"HTTP/1.1 200 OK\r\n")
    while True:
        await answer.raw(b"X-More: and more\r\n" * 1000)


async def _long_header(answer: _Answer) -> bool:
    return await answer.page(b"", X_Long="x" * 1024 * 1024)


async def _short(answer: _Answer) -> bool:
    await answer.page(PAGE, Content_Length=str(len(PAGE) + 100))
    return False


async def _long(answer: _Answer) -> bool:
    return await answer.page(PAGE + b"and more than was said", Content_Length=str(len(PAGE)))


async def _reset(answer: _Answer) -> bool:
    return answer.reset()


async def _reset_body(answer: _Answer) -> bool:
    await answer.page(PAGE, Content_Length=str(len(PAGE) + 100))
    return answer.reset()


async def _close(answer: _Answer) -> bool:
    return False


async def _garbage(answer: _Answer) -> bool:
    await answer.raw(b"\x00\x01 SMTP ready, no web here\r\n\r\n")
    return False


async def _bad_chunks(answer: _Answer) -> bool:
    await answer.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n")
    return False


async def _empty(answer: _Answer) -> bool:
    await answer.raw(b"HTTP/1.1 204 No Content\r\n\r\n")
    return True


ROUTES: dict[str, Callable[[_Answer], Awaitable[bool]]] = {
    "ok": _ok,
    "echo": _echo,
    "status": _status,
    "redirect": _redirect,
    "loop": _loop,
    "spiral": _spiral,
    "endless": _endless,
    "claim": _claim,
    "encoded": _encoded,
    "bomb": _bomb,
    "broken": _broken,
    "cut": _cut,
    "drip": _drip,
    "silent": _silent,
    "slow-head": _slow_head,
    "endless-head": _endless_head,
    "long-header": _long_header,
    "short": _short,
    "long": _long,
    "reset": _reset,
    "reset-body": _reset_body,
    "close": _close,
    "garbage": _garbage,
    "bad-chunks": _bad_chunks,
    "empty": _empty,
}
