"""WARC 1.1 records, built from responses whose every value may be hostile; archive errors."""

from __future__ import annotations

import errno
import hashlib
import re
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Literal, Protocol
from urllib.parse import quote
from uuid import uuid4

import zstandard

from forager import __version__
from forager.errors import DiskFull, ForagerError, NotFound, error_text
from forager.hints import Hint, action

ZSTD_LEVEL = 3
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
GZIP_LEVEL = 6
GZIP_WBITS = 31
# no page may be this large; a damaged length must not allocate all memory
MAX_RECORD_BYTES = 1 << 30


class Codec(StrEnum):
    """Compression of the records of a WARC file; segments are zstd."""

    ZSTD = "zst"
    GZIP = "gz"


# a zstd context may serve only one thread at a time, and making one costs as much as a page
_contexts = threading.local()


def compress(codec: Codec, record: bytes) -> bytes:
    if codec is Codec.GZIP:
        return zlib.compress(record, GZIP_LEVEL, wbits=GZIP_WBITS)
    return _compressor().compress(record)


def unpack(frames: bytes) -> list[bytes]:
    """The records in one or several whole frames; anything less or altered is a DamagedRecord."""
    records: list[bytes] = []
    rest = frames
    try:
        while rest or not records:
            size = zstandard.frame_content_size(rest)
            if size > MAX_RECORD_BYTES:
                raise DamagedRecord(f"a record of the archive claims to be {size} bytes long")
            decoder = zstandard.ZstdDecompressor().decompressobj()
            records.append(decoder.decompress(rest))
            if not decoder.eof:
                raise DamagedRecord("a reference into the archive does not cover whole records")
            rest = decoder.unused_data
    except zstandard.ZstdError as error:
        raise DamagedRecord(
            f"a record of the archive cannot be decompressed: {error_text(error)}"
        ) from error
    return records


def _compressor() -> zstandard.ZstdCompressor:
    compressor: zstandard.ZstdCompressor | None = getattr(_contexts, "compressor", None)
    if compressor is None:
        compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True)
        _contexts.compressor = compressor
    return compressor


Headers = Sequence[tuple[str, str]]

_ABOUT = {
    "software": f"Forager/{__version__}",
    "format": "WARC File Format 1.1",
    "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
}
_HTTP = "application/http;msgtype=response"
_FIELDS = "application/warc-fields"
# The body is stored decoded, so these would lie about it. Common Crawl's names for what they were.
_DESCRIBES_THE_WIRE = frozenset({b"content-encoding", b"transfer-encoding", b"content-length"})
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]+")
_MAX_CACHED_NAME = 100  # characters
_NOT_IN_A_NAME = re.compile(rb"[^!#$%&'*+\-.^_`|~0-9A-Za-z]")
# characters of a URI that are not percent-encoded
_URI_SAFE = "%:/?#[]@!$&'()*+,;=-._~|^`{}\"\\<>"


class Truncation(StrEnum):
    """Reasons of an incomplete body, as the standard names them."""

    LENGTH = "length"
    TIME = "time"


class Record(Protocol):
    """A record that can be written to a segment."""

    def encode(self) -> bytes:
        """The whole record as the standard has it, not compressed."""
        ...


@dataclass(frozen=True, slots=True)
class InfoRecord:
    """The first record of a segment, about all others: software, user agent, robots."""

    fields: Mapping[str, str] = field(default_factory=dict)
    filename: str = ""
    date: datetime | None = None

    def encode(self) -> bytes:
        """The record as bytes, not compressed."""
        named = (("WARC-Filename", self.filename),) if self.filename else ()
        block = _fields_block({**_ABOUT, **self.fields})
        return _record("warcinfo", self.date or datetime.now(UTC), block, _FIELDS, named)


@dataclass(frozen=True, slots=True)
class ResponseRecord:
    """One response: headers as received, body after its content encoding was undone."""

    url: str
    date: datetime
    status: int
    headers: Headers
    body: bytes
    reason: str = ""
    ip: str | None = None
    protocol: str | None = None
    truncated: Truncation | None = None

    def encode(self) -> bytes:
        """The record as bytes, not compressed."""
        fields = [*_origin(self), ("WARC-Payload-Digest", digest_of(self.body))]
        return _record("response", self.date, _http_block(self, self.body), _HTTP, fields)


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """Named facts about a URL (how it was found, how long it took), beside its response."""

    url: str
    date: datetime
    fields: Mapping[str, str]

    def encode(self) -> bytes:
        """The record as bytes, not compressed."""
        target = [("WARC-Target-URI", _uri(self.url))]
        return _record("metadata", self.date, _fields_block(self.fields), _FIELDS, target)


@dataclass(frozen=True, slots=True)
class DerivedRecord:
    """A record derived from a response that is archived beside it.

    A `conversion` is the page as its scripts left it, a `resource` a picture of that.
    """

    kind: Literal["conversion", "resource"]
    url: str
    date: datetime
    body: bytes
    content_type: str

    def encode(self) -> bytes:
        """The record as bytes, not compressed."""
        fields = [
            ("WARC-Target-URI", _uri(self.url)),
            ("WARC-Payload-Digest", digest_of(self.body)),
        ]
        return _record(self.kind, self.date, self.body, self.content_type, fields)


def pack(record: Record) -> bytes:
    """The record as it is stored. Takes no lock and no disk: any thread or process may do it."""
    return compress(Codec.ZSTD, record.encode())


def digest_of(data: bytes) -> str:
    """A digest as WARC fields write it: of a body to find it again, of a block to verify it."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _record(
    kind: str, date: datetime, block: bytes, content_type: str, fields: Headers = ()
) -> bytes:
    lines = [
        b"WARC/1.1",
        b"WARC-Type: " + kind.encode(),
        f"WARC-Record-ID: <urn:uuid:{uuid4()}>".encode(),
        b"WARC-Date: " + _timestamp(date).encode(),
        *(name.encode() + b": " + _one_line(value) for name, value in fields),
        b"WARC-Block-Digest: " + digest_of(block).encode(),
        b"Content-Type: " + content_type.encode(),
        b"Content-Length: %d" % len(block),
        b"",
        block,
        b"",
        b"",
    ]
    return b"\r\n".join(lines)


def _origin(response: ResponseRecord) -> list[tuple[str, str]]:
    fields = [("WARC-Target-URI", _uri(response.url))]
    if response.ip:
        fields.append(("WARC-IP-Address", response.ip))
    if response.protocol:
        fields.append(("WARC-Protocol", response.protocol))
    if response.truncated:
        fields.append(("WARC-Truncated", response.truncated.value))
    return fields


def _http_block(response: ResponseRecord, body: bytes) -> bytes:
    # always HTTP/1.1: readers of WARC know no other status line; WARC-Protocol says what it was
    lines = [b"HTTP/1.1 %03d " % response.status + _one_line(response.reason)]
    lines += (line for name, value in response.headers if (line := _http_header(name, value)))
    lines += (b"Content-Length: %d" % len(body), b"", body)
    return b"\r\n".join(lines)


def _http_header(name: str, value: str) -> bytes:
    clean = _header_name(name) if len(name) <= _MAX_CACHED_NAME else _header_name.__wrapped__(name)
    return clean + b": " + _one_line(value) if clean else b""


@lru_cache(maxsize=256)
def _header_name(name: str) -> bytes:
    clean = _NOT_IN_A_NAME.sub(b"_", _encode(name))
    return b"X-Crawler-" + clean if clean.lower() in _DESCRIBES_THE_WIRE else clean


def _fields_block(fields: Mapping[str, str]) -> bytes:
    lines = (line for name, value in fields.items() if (line := _http_header(name, value)))
    return b"".join(line + b"\r\n" for line in lines)


def _one_line(value: str) -> bytes:
    return _CONTROL.sub(b" ", _encode(value)).strip()


def _encode(text: str) -> bytes:
    """Bytes of a header; what was no UTF-8 on the wire comes back as the bytes it was."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _uri(url: str) -> str:
    return quote(_encode(url), safe=_URI_SAFE)


def _timestamp(moment: datetime) -> str:
    plain = moment.astimezone(UTC).replace(tzinfo=None)
    return plain.isoformat(timespec="microseconds") + "Z"


class ArchiveError(ForagerError):
    """The archive cannot be used."""


class StorageFull(ArchiveError, DiskFull):
    """The archive's storage is full; work waits until it is not."""


class StorageAway(DiskFull):
    """The archive's storage does not answer, or does not let us in; work waits until it does.

    Not an ArchiveError: the requested record is not damaged.
    """


class SegmentExists(ArchiveError):
    """A segment of this name exists already; segments are never reopened."""


class DamagedRecord(ArchiveError):
    """The bytes in the archive are not the record that was written."""


FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def disk_errors(what: str) -> Iterator[None]:
    """Translate errors of the operating system; `what` names the file."""
    try:
        yield
    except FileExistsError as error:
        raise SegmentExists(f"{what} exists already") from error
    except FileNotFoundError as error:
        raise NotFound(f"there is no {what}") from error
    except OSError as error:
        if error.errno in FULL:
            raise StorageFull(
                f"no space to write {what}: {error.strerror}",
                hint=Hint("Free some space, or delete old segments: {}", action("archive prune")),
            ) from error
        raise ArchiveError(f"{what}: {error.strerror or error}") from error
