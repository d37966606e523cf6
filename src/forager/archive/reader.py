"""Reading records from segments: one by its reference, all in order, or into a WARC file."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import zstandard

from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage
from forager.archive.warc_record import (
    MAX_RECORD_BYTES,
    Codec,
    DamagedRecord,
    InfoRecord,
    compress,
    digest_of,
    unpack,
)
from forager.errors import InvalidInput, NotFound, error_text
from forager.extract.kinds import MARKDOWN_TYPE

# a rendered page, or the markdown of a page: read like a response that has it as its body
_CONVERSION = "conversion"
# one request to an object store, and what is fed to a decoder at once
_FETCH_BYTES = 4 * 1024 * 1024
_FEED_BYTES = 64 * 1024
_COUNT = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class ArchivedRecord:
    """Any record: its type, its named fields (in lower case) and its block."""

    kind: str
    fields: dict[str, str]
    block: bytes

    @property
    def url(self) -> str:
        return self.fields.get("warc-target-uri", "")

    @property
    def is_intact(self) -> bool:
        """The block still has the digest it was stored with."""
        return self.fields.get("warc-block-digest") in (None, digest_of(self.block))

    @property
    def date(self) -> datetime:
        return _date(self.fields.get("warc-date", ""))


@dataclass(frozen=True, slots=True)
class ArchivedResponse:
    """A response as it was stored: the body decoded, header values as they came."""

    url: str
    date: datetime
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    ip: str | None = None
    protocol: str | None = None
    truncated: str | None = None
    digest: str | None = None
    # the page as its scripts left it, and a picture of it if one was stored
    rendered: bool = False
    picture: bytes = field(default=b"", repr=False)

    @property
    def content_type(self) -> str | None:
        return next((value for name, value in self.headers if name.lower() == "content-type"), None)


@dataclass(frozen=True, slots=True)
class Tail:
    """The unreadable end of a segment: its writer died, or the disk lost data."""

    offset: int
    length: int
    reason: str


async def read_records(storage: Storage, ref: ArchiveRef) -> list[ArchivedRecord]:
    """The records at a reference: one, or those of a rendered page, which is the last.

    What is not as it was stored is an error.
    """
    frames = await storage.read(ref)
    records = [parse_record(each) for each in unpack(frames)]
    if len(records) > 1 and records[-1].kind != _CONVERSION:
        raise DamagedRecord("a reference into the archive covers records of several pages")
    if not all(record.is_intact for record in records):
        raise DamagedRecord(f"the record at byte {ref.offset} of {ref.segment} is damaged")
    return records


async def read_record(storage: Storage, ref: ArchiveRef) -> ArchivedRecord:
    """The record at a reference; of several, the last, which the others belong to."""
    return (await read_records(storage, ref))[-1]


async def read_response(storage: Storage, ref: ArchiveRef) -> ArchivedResponse:
    """Return the response at a reference; of a rendered page, the page; or its markdown."""
    *others, last = await read_records(storage, ref)
    pictures = (record.block for record in others if record.kind == "resource")
    return replace(parse_response(last), picture=next(pictures, b""))


class SegmentScan:
    """Iterate a segment's records with their references; afterwards, `tail` says what was torn."""

    def __init__(self, storage: Storage, segment: str) -> None:
        self.tail: Tail | None = None
        self._storage = storage
        self._segment = segment

    async def __aiter__(self) -> AsyncIterator[tuple[ArchiveRef, ArchivedRecord]]:
        size = await self._storage.size(self._segment)
        start, frame = 0, _OpenFrame()
        try:
            async for position, piece in self._pieces(size):
                data = piece
                while data:
                    data = frame.feed(data)
                    if not frame.complete:
                        break
                    end = position + len(piece) - len(data)
                    record = parse_record(frame.content())
                    yield ArchiveRef(self._segment, start, end - start), record
                    start, frame = end, _OpenFrame()
        except DamagedRecord as error:
            self.tail = Tail(start, size - start, error.message)
        else:
            if start < size:
                self.tail = Tail(start, size - start, "the last record is not complete")

    async def _pieces(self, size: int) -> AsyncIterator[tuple[int, memoryview]]:
        for offset in range(0, size, _FETCH_BYTES):
            length = min(_FETCH_BYTES, size - offset)
            view = memoryview(await self._storage.read(ArchiveRef(self._segment, offset, length)))
            for inner in range(0, length, _FEED_BYTES):
                yield offset + inner, view[inner : inner + _FEED_BYTES]


class _OpenFrame:
    """One compressed frame being put together from pieces."""

    def __init__(self) -> None:
        self._decoder = zstandard.ZstdDecompressor().decompressobj()
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def complete(self) -> bool:
        return self._decoder.eof

    def feed(self, data: memoryview) -> memoryview:
        """Take what belongs to this frame, and return the rest."""
        try:
            part = self._decoder.decompress(data)
        except zstandard.ZstdError as error:
            raise DamagedRecord(f"a record cannot be decompressed: {error_text(error)}") from error
        self._parts.append(part)
        self._size += len(part)
        if self._size > MAX_RECORD_BYTES:
            raise DamagedRecord("a record is longer than any can be")
        return memoryview(self._decoder.unused_data)

    def content(self) -> bytes:
        return b"".join(self._parts)


def parse_record(data: bytes) -> ArchivedRecord:
    """A record from its bytes; raises DamagedRecord for bytes that are none."""
    head, separator, rest = data.partition(b"\r\n\r\n")
    version, *lines = head.split(b"\r\n")
    if not separator or not version.startswith(b"WARC/1."):
        raise DamagedRecord("what is stored there is not a WARC record")
    fields = {name.lower(): value for name, value in map(_header, lines)}
    length = fields.get("content-length", "")
    if len(rest) != _count(length) + 4 or not rest.endswith(b"\r\n\r\n"):
        raise DamagedRecord("a WARC record is not as long as it says")
    return ArchivedRecord(fields.get("warc-type", ""), fields, rest[:-4])


def parse_response(record: ArchivedRecord) -> ArchivedResponse:
    """The response of a record; raises DamagedRecord for a record without one."""
    if record.kind == _CONVERSION:
        return _rendered(record)
    if record.kind != "response":
        raise DamagedRecord(f"what is stored there is a {record.kind} record, not a response")
    head, _, body = record.block.partition(b"\r\n\r\n")
    status_line, *lines = head.split(b"\r\n")
    _, status, reason = [*_decode(status_line).split(" ", 2), "", ""][:3]
    if _count(status) < 0:
        raise DamagedRecord("a stored response has no status")
    fields = record.fields
    return ArchivedResponse(
        url=record.url,
        date=record.date,
        status=_count(status),
        reason=reason,
        headers=tuple(map(_header, lines)),
        body=body,
        ip=fields.get("warc-ip-address"),
        protocol=fields.get("warc-protocol"),
        truncated=fields.get("warc-truncated"),
        digest=fields.get("warc-payload-digest"),
    )


def _rendered(record: ArchivedRecord) -> ArchivedResponse:
    content_type = record.fields.get("content-type", "")
    return ArchivedResponse(
        url=record.url,
        date=record.date,
        status=200,
        reason="OK",
        headers=(("Content-Type", content_type),),
        body=record.block,
        digest=record.fields.get("warc-payload-digest"),
        rendered=not content_type.startswith(MARKDOWN_TYPE),
    )


def _count(text: str) -> int:
    """The number that a field says, or -1 where it says none."""
    # Python refuses to read a number of thousands of digits, and reads those of other alphabets
    return int(text) if _COUNT.fullmatch(text) else -1


def _header(line: bytes) -> tuple[str, str]:
    name, _, value = _decode(line).partition(":")
    return name, value.strip()


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _date(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise DamagedRecord(f"a WARC record has no date but {text!r}") from None


_SUFFIXES = {".warc.zst": Codec.ZSTD, ".warc.gz": Codec.GZIP, ".warc": None}
# failures that are named; the others are only counted
_NAMED_FAILURES = 100


@dataclass(slots=True)
class ExportReport:
    """Counts of copied and missed records, and the first missed ones by name."""

    written: int = 0
    missed: int = 0
    failed: list[tuple[ArchiveRef, str]] = field(default_factory=list)

    def miss(self, ref: ArchiveRef, reason: str) -> None:
        self.missed += 1
        if len(self.failed) < _NAMED_FAILURES:
            self.failed.append((ref, reason))


async def warc_parts(
    storage: Storage,
    refs: AsyncIterable[ArchiveRef],
    codec: Codec | None,
    info: Mapping[str, str],
    report: ExportReport,
) -> AsyncIterator[bytes]:
    """A file of these records, a record at a time; no codec means no compression."""
    yield _packed(codec, InfoRecord(info).encode())
    async for ref in refs:
        try:
            frame = await storage.read(ref)
            # unpacked even if it could be copied as it is: a damaged record is not passed on
            records = unpack(frame)
        except (DamagedRecord, NotFound) as error:
            report.miss(ref, error.message)
            continue
        report.written += 1
        if codec is Codec.ZSTD:
            yield frame
        else:
            yield b"".join(_packed(codec, record) for record in records)


def _packed(codec: Codec | None, record: bytes) -> bytes:
    return compress(codec, record) if codec else record


def warc_codec(name: str) -> Codec | None:
    """The compression of a file with this name."""
    for suffix, codec in _SUFFIXES.items():
        if name.endswith(suffix):
            return codec
    raise InvalidInput(
        f"{name!r} does not say which kind of WARC file it is to be",
        hint="End the name in .warc.gz, .warc.zst or .warc.",
    )
