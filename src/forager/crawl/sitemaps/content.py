"""The bytes of a sitemap: decompressed within limits, and decoded."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator

from forager.errors import ErrorKind, GiveUp, error_text

GZIP_MAGIC = b"\x1f\x8b"
# everything is processed in pieces of this size, so that the input does not decide on the memory
PIECE = 64 * 1024

_RATIO_LIMIT = 500
_RATIO_FROM = 4 * 1024 * 1024
# enough to see a byte order mark or a declared encoding
_HEAD = 1024
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


def unpack(body: bytes, max_bytes: int) -> Iterator[bytes]:
    """Pieces of bounded size, decompressed if the body is gzip."""
    written = 0
    for read, piece in _inflate(body) if body.startswith(GZIP_MAGIC) else _slices(body):
        written += len(piece)
        if written > max_bytes:
            raise BrokenSitemap(f"it is larger than {max_bytes:,} bytes")
        if written > max(_RATIO_FROM, read * _RATIO_LIMIT):
            raise BrokenSitemap(f"it decompresses to more than {_RATIO_LIMIT} times its size")
        yield piece


def _slices(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Pieces of the body, each with the number of bytes read so far."""
    for begin in range(0, len(body), PIECE):
        piece = body[begin : begin + PIECE]
        yield begin + len(piece), piece


def _inflate(body: bytes) -> Iterator[tuple[int, bytes]]:
    try:
        yield from _members(body)
    except zlib.error as error:
        raise BrokenSitemap(f"the gzip data is damaged ({error_text(error)})") from None


def _members(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Decompressed pieces of one or more gzip members, which padding may follow."""
    inflater = zlib.decompressobj(wbits=31)
    for read, chunk in _slices(body):
        while chunk:
            if inflater.eof:
                chunk = chunk.lstrip(b"\0")
                if chunk and not chunk.startswith(GZIP_MAGIC[:1]):
                    return
                inflater = zlib.decompressobj(wbits=31) if chunk else inflater
                continue
            yield read, inflater.decompress(chunk, PIECE)
            # after the end of a member the first one is filled, before it the second one
            chunk = inflater.unused_data or inflater.unconsumed_tail
    # the last bytes may still be inside, if the piece before was exactly full
    while rest := inflater.decompress(b"", PIECE):
        yield len(body), rest
    if not inflater.eof:
        raise BrokenSitemap("the gzip data ends early")


def decode(pieces: Iterator[bytes]) -> Iterator[str]:
    """Decode without ever failing: wrong bytes become U+FFFD."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= _HEAD:
            break
    decoder = codecs.getincrementaldecoder(_encoding(head))(errors="replace")
    yield decoder.decode(head)
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


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
