"""Response bodies, decoded in bounded steps so that a compression bomb is noticed early."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator

import brotli  # type: ignore[import-untyped]

from forager.errors import ErrorKind, GiveUp, Retry, error_text

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ACCEPTED = "gzip, deflate, br, zstd"

# the output limit of one step
_STEP = 1024 * 1024
# every further gzip member or zstd frame copies the rest of its chunk
_MEMBER_LIMIT = 1000
_CODING_LIMIT = 3
# RFC 9659: a zstd window on the web is at most 8 MB
_ZSTD_OPTIONS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 23}


class Body:
    """Collects one body; raises an error as soon as it exceeds its limit."""

    def __init__(self, coding: str, limit: int) -> None:
        self._decoders = decoders(coding)
        self._coding = coding
        self._limit = limit
        self._pieces: list[bytes] = []
        self.wire_size = 0
        self.size = 0

    def expect(self, length: int | None) -> None:
        """Reject a Content-Length above the limit before reading the body."""
        if length is not None and length > self._limit:
            raise _too_large(f"the body is announced with {length:,} bytes,", self._limit)

    def feed(self, data: bytes) -> None:
        """Add received bytes; raises GiveUp for a body that is too large."""
        self.wire_size += len(data)
        if self.wire_size > self._limit:
            raise _too_large("the body is longer", self._limit)
        for piece in self._decoded(data):
            self.size += len(piece)
            if self.size > self._limit:
                raise _too_large(
                    f"the body unpacks, from only {self.wire_size:,} bytes,", self._limit
                )
            self._pieces.append(piece)

    def finish(self) -> bytes:
        """The decoded body; raises Retry for one that was cut short."""
        if self.wire_size and not all(decoder.finished for decoder in self._decoders):
            raise Retry(
                f"the {self._coding} body ended in the middle of its data", kind=ErrorKind.NETWORK
            )
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def _decoded(self, data: bytes, index: int = 0) -> Iterator[bytes]:
        if index == len(self._decoders):
            yield data
            return
        try:
            for piece in self._decoders[index].feed(data):
                yield from self._decoded(piece, index + 1)
        except (zlib.error, brotli.error, zstd.ZstdError, EOFError) as error:
            raise GiveUp(
                f"the body is not valid {self._coding}: {error_text(error)}", kind=ErrorKind.PARSE
            ) from error


def _too_large(what: str, limit: int) -> GiveUp:
    return GiveUp(f"{what} past the limit of {limit:,} bytes", kind=ErrorKind.TOO_LARGE)


def decoders(coding: str) -> list[Decoder]:
    """Decoders for a Content-Encoding value, in the order they are applied."""
    names = [name.strip().lower() for name in coding.split(",")]
    # Unknown names are ignored: servers write `utf-8`, `none` or `binary` here.
    known = [_DECODERS[name] for name in names if name in _DECODERS]
    if len(known) > _CODING_LIMIT:
        raise GiveUp(f"the body has {len(known)} content codings", kind=ErrorKind.PARSE)
    return [make() for make in reversed(known)]


class _Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self._members = 1

    @property
    def finished(self) -> bool:
        return self._inner.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inner.eof and not self._next_member(data):
                return
            yield from _inflate(self._inner, data)
            data = self._inner.unused_data

    def _next_member(self, data: bytes) -> bool:
        # bytes after the last member that do not start another are padding
        if not data.startswith(b"\x1f"):
            return False
        self._members += 1
        _check_members(self._members)
        self._inner = zlib.decompressobj(wbits=31)
        return True


class _Deflate:
    """`deflate` is zlib by the standard, but many servers send raw deflate."""

    def __init__(self) -> None:
        self._inner: zlib._Decompress | None = None

    @property
    def finished(self) -> bool:
        return self._inner is not None and self._inner.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._inner is None:
            wrapped = data[0] & 0x0F == 8 and data[0] >> 4 <= 7
            self._inner = zlib.decompressobj(wbits=15 if wrapped else -15)
        if not self._inner.eof:
            yield from _inflate(self._inner, data)


def _inflate(inner: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    while True:
        piece = inner.decompress(data, _STEP)
        if piece:
            yield piece
        data = inner.unconsumed_tail
        if inner.eof or (not data and len(piece) < _STEP):
            return


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()

    @property
    def finished(self) -> bool:
        return bool(self._inner.is_finished())

    def feed(self, data: bytes) -> Iterator[bytes]:
        while not self._inner.is_finished():
            piece = self._inner.process(data, output_buffer_limit=_STEP)
            if piece:
                yield piece
            data = b""
            if self._inner.can_accept_more_data():
                return


class _Zstd:
    def __init__(self) -> None:
        self._inner = zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)
        self._frames = 1

    @property
    def finished(self) -> bool:
        return self._inner.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inner.eof:
                self._frames += 1
                _check_members(self._frames)
                self._inner = zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)
            yield from self._frame(data)
            data = self._inner.unused_data if self._inner.eof else b""

    def _frame(self, data: bytes) -> Iterator[bytes]:
        while True:
            piece = self._inner.decompress(data, max_length=_STEP)
            if piece:
                yield piece
            data = b""
            if self._inner.eof or self._inner.needs_input:
                return


def _check_members(count: int) -> None:
    if count > _MEMBER_LIMIT:
        raise GiveUp(
            f"the body is compressed in more than {_MEMBER_LIMIT} parts", kind=ErrorKind.TOO_LARGE
        )


Decoder = _Gzip | _Deflate | _Brotli | _Zstd
_DECODERS: dict[str, type[Decoder]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
