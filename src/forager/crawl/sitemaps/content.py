"""The bytes of a sitemap: decompressed within limits, and decoded."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator

from forager.errors import ErrorKind, GiveUp

GZIP_MAGIC = b"\x1f\x8b"
PIECE = 64 * 1024
"""Everything is worked on in pieces of this size, so that no input decides how much memory is."""

_RATIO_LIMIT = 500
_RATIO_FROM = 4 * 1024 * 1024
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(rb"""<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
# Python knows more codecs than the web has encodings, and some of them do odd things.
_WEB_ENCODING = re.compile(
    r"utf-8|iso8859-\d+|cp\d+|koi8-[rtu]|gb2312|gbk|gb18030|big5|shift_jis|euc_(jp|kr)"
)


class BrokenSitemap(GiveUp):
    """The sitemap cannot be read any further."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind=ErrorKind.PARSE)


class Unpacker:
    """Chunks in, pieces of bounded size out, decompressed if they are gzip."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._start: bytes | None = b""
        self._gunzip: _Gunzip | None = None
        self._read = 0
        self._written = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        if self._start is not None:
            self._start += chunk
            if len(self._start) < len(GZIP_MAGIC):
                return
            chunk, self._start = self._start, None
            if chunk.startswith(GZIP_MAGIC):
                self._gunzip = _Gunzip()
        yield from self._pieces(chunk)

    def close(self) -> Iterator[bytes]:
        if self._start:
            yield self._start
        if self._gunzip:
            yield self._gunzip.close()

    def _pieces(self, chunk: bytes) -> Iterator[bytes]:
        for begin in range(0, len(chunk), PIECE):
            part = chunk[begin : begin + PIECE]
            self._read += len(part)
            for piece in self._gunzip.feed(part) if self._gunzip else (part,):
                self._written += len(piece)
                self._check_size()
                yield piece

    def _check_size(self) -> None:
        if self._written > self._max_bytes:
            raise BrokenSitemap(f"it is larger than {self._max_bytes:,} bytes")
        if self._written > max(_RATIO_FROM, self._read * _RATIO_LIMIT):
            raise BrokenSitemap(f"it decompresses to more than {_RATIO_LIMIT} times its size")


class _Gunzip:
    """One or more gzip members, and whatever padding comes after them."""

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(wbits=31)
        self._ended = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        while chunk and not self._ended:
            if self._inflater.eof:
                chunk = self._next_member(chunk)
                continue
            yield self._inflate(chunk)
            # of these two, only one is ever filled: after the member's end, or before it
            chunk = self._inflater.unused_data or self._inflater.unconsumed_tail

    def close(self) -> bytes:
        # the last few bytes may still be inside, when the piece before was exactly full
        rest = self._inflate(b"")
        if not self._inflater.eof:
            raise BrokenSitemap("the gzip data ends early")
        return rest

    def _next_member(self, chunk: bytes) -> bytes:
        chunk = chunk.lstrip(b"\0")
        if chunk.startswith(GZIP_MAGIC[:1]):
            self._inflater = zlib.decompressobj(wbits=31)
        elif chunk:
            self._ended = True
        return chunk

    def _inflate(self, chunk: bytes) -> bytes:
        try:
            return self._inflater.decompress(chunk, PIECE)
        except zlib.error as error:
            raise BrokenSitemap(f"the gzip data is damaged ({error})") from None


def text_decoder(head: bytes) -> codecs.IncrementalDecoder:
    """A decoder for what begins like this. It never fails: wrong bytes become U+FFFD."""
    return codecs.getincrementaldecoder(_encoding(head))(errors="replace")


def _encoding(head: bytes) -> str:
    for mark, name in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return name
    if head[:2] in (b"<\0", b"\0<"):
        return "utf-16-le" if head[0] else "utf-16-be"
    declared = _DECLARED.match(head.lstrip())
    return _known_encoding(declared[1].decode("ascii")) if declared else "utf-8"


def _known_encoding(name: str) -> str:
    try:
        canonical = codecs.lookup(name).name
    except LookupError:
        return "utf-8"
    # also for utf-16: a declaration that could be read as single bytes is not UTF-16
    return canonical if _WEB_ENCODING.fullmatch(canonical) else "utf-8"
