"""Records back out of segments: one by its reference, or all of a segment in order."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from forager.archive.errors import DamagedRecord
from forager.archive.record import (
    FRAME_ERRORS,
    MAX_RECORD_BYTES,
    FrameDecoder,
    digest_of,
    frame_decoder,
    unpack,
)
from forager.archive.segment import ArchiveRef, codec_of
from forager.archive.storage import Storage

# a rendered page, which is read like a response that has it as its body
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
    # the page as its scripts left it
    rendered: bool = False


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows the last readable record: a writer died in the middle, or a disk lied."""

    offset: int
    length: int
    reason: str


async def read_records(storage: Storage, ref: ArchiveRef) -> list[ArchivedRecord]:
    """The records at a reference: one, or those of a rendered page, which is the last.

    What is not as it was stored is an error.
    """
    frames = await storage.read(ref)
    records = [parse_record(each) for each in unpack(codec_of(ref.segment), frames)]
    if len(records) > 1 and records[-1].kind != _CONVERSION:
        raise DamagedRecord("a reference into the archive covers records of several pages")
    if not all(record.is_intact for record in records):
        raise DamagedRecord(f"the record at byte {ref.offset} of {ref.segment} is damaged")
    return records


async def read_record(storage: Storage, ref: ArchiveRef) -> ArchivedRecord:
    """The record at a reference; of several, the last, which the others belong to."""
    return (await read_records(storage, ref))[-1]


async def read_response(storage: Storage, ref: ArchiveRef) -> ArchivedResponse:
    """Return the response at a reference."""
    return parse_response(await read_record(storage, ref))


class SegmentScan:
    """Iterate a segment's records with their references; afterwards, `tail` says what was torn."""

    def __init__(self, storage: Storage, segment: str) -> None:
        self.tail: Tail | None = None
        self._storage = storage
        self._segment = segment
        self._codec = codec_of(segment)

    async def __aiter__(self) -> AsyncIterator[tuple[ArchiveRef, ArchivedRecord]]:
        size = await self._storage.size(self._segment)
        start, frame = 0, _Frame(frame_decoder(self._codec))
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
                    start, frame = end, _Frame(frame_decoder(self._codec))
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


class _Frame:
    """One compressed frame being put together from pieces."""

    def __init__(self, decoder: FrameDecoder) -> None:
        self._decoder = decoder
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def complete(self) -> bool:
        return self._decoder.eof

    def feed(self, data: memoryview) -> memoryview:
        """Take what belongs to this frame, and return the rest."""
        try:
            part = self._decoder.decompress(data)
        except FRAME_ERRORS as error:
            raise DamagedRecord(f"a record cannot be decompressed: {error}") from error
        self._parts.append(part)
        self._size += len(part)
        if self._size > MAX_RECORD_BYTES:
            raise DamagedRecord("a record is longer than any can be")
        return memoryview(self._decoder.unused_data)

    def content(self) -> bytes:
        return b"".join(self._parts)


def parse_record(data: bytes) -> ArchivedRecord:
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
        rendered=True,
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
