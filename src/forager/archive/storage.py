"""Storage of segments and files: one interface for a folder and an object store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from forager.archive.segment import ArchiveRef, parse_segment_name
from forager.archive.warc_record import ArchiveError
from forager.errors import InvalidInput, NotFound


@dataclass(frozen=True, slots=True)
class FileKind:
    """The kind of files in a place: a noun for messages, and a check of names."""

    noun: str
    check: Callable[[str], object]

    def checked(self, name: str) -> str:
        """Names come from the database, and must not lead elsewhere."""
        self.check(name)
        return name

    def named(self, name: str) -> str:
        """The file as it is called in messages."""
        return f"{self.noun} {name}"


SEGMENTS = FileKind("archive segment", parse_segment_name)


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A segment as the storage sees it."""

    name: str
    size: int
    modified: datetime


class SegmentWriter(Protocol):
    """Writes one segment from its first byte to its last; it cannot be opened again."""

    @property
    def name(self) -> str:
        """The name of the segment."""
        ...

    @property
    def size(self) -> int:
        """Bytes safely written so far."""
        ...

    @property
    def sealed(self) -> bool:
        """The segment is full; open another one."""
        ...

    async def append(self, frames: Sequence[bytes]) -> list[ArchiveRef]:
        """Write all of them or none, and return only when they outlive a power cut."""
        ...

    async def close(self) -> None:
        """Release the file or the connection; what was appended stays."""
        ...


class Storage(Protocol):
    """A place for segments and files, which `open_storage` opens.

    NotFound is raised for what is not there, and ArchiveError for a place that fails. Everything
    that a call has written when it returns outlives a power cut.

        storage = open_storage("s3://bucket/archive")
        record = await storage.read(ArchiveRef(segment, offset, length))
    """

    def open_segment(self, name: str) -> SegmentWriter:
        """Open a new segment. Nothing is written before the first append."""
        ...

    async def read(self, ref: ArchiveRef) -> bytes:
        """Exactly the bytes referred to, or an error."""
        ...

    async def read_all(self, name: str) -> bytes:
        """A whole file."""
        ...

    async def size(self, segment: str) -> int:
        """The size of a segment in bytes."""
        ...

    async def put(self, segment: str, parts: AsyncIterator[bytes]) -> None:
        """Write a whole segment, which appears only when it is complete.

        What is there of that name is replaced: a copy that was cut short is made again.
        """
        ...

    async def put_all(self, name: str, data: bytes) -> None:
        """Write a whole file; return only when it outlives a power cut."""
        ...

    async def delete(self, segment: str) -> None:
        """Deleting what is gone already is no error: a clean-up may have died half-way."""
        ...

    async def list_segments(self, prefix: str = "") -> list[StoredSegment]:
        """All segments whose name starts with the prefix, by name; other files are ignored."""
        ...


def open_storage(url: str | Path, kind: FileKind = SEGMENTS) -> Storage:
    """A folder (a path or `file:///…`) or a bucket (`s3://bucket/folder`)."""
    folder = local_folder(url)
    if folder is None:
        from forager.archive.objects import open_bucket

        return open_bucket(str(url), kind=kind)
    from forager.archive.local import LocalStorage

    return LocalStorage(folder, kind)


def local_folder(place: str | Path) -> Path | None:
    """The folder that a place is, however it is written; None for a bucket."""
    parts = urlsplit(str(place))
    if isinstance(place, Path) or not parts.scheme:
        return Path(place).absolute()
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path.strip("/"):
        return Path(unquote(parts.path)).absolute()
    if parts.scheme == "s3" and parts.netloc:
        return None
    raise InvalidInput(
        f"{place!r} is no place for an archive",
        hint="use a folder, file:///folder or s3://bucket/folder",
    )


P = ParamSpec("P")
T = TypeVar("T")

_pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="archive")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run it beside the event loop. Cancelling the caller does not stop it."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_pool, lambda: function(*args, **kwargs))


async def size_of(storage: Storage, name: str) -> int | None:
    """The size of a file; None if there is none."""
    try:
        return await storage.size(name)
    except NotFound:
        return None


_READ_BYTES = 4 * 1024 * 1024


async def read_parts(storage: Storage, segment: str, length: int) -> AsyncIterator[bytes]:
    """The beginning of a segment, a few megabytes at a time."""
    for offset in range(0, length, _READ_BYTES):
        part = ArchiveRef(segment, offset, min(_READ_BYTES, length - offset))
        yield await storage.read(part)


async def digest(storage: Storage, segment: str, length: int | None = None) -> bytes:
    """The SHA-256 of the whole segment, or of its beginning."""
    if length is None:
        length = await storage.size(segment)
    read = sha256()
    async for part in read_parts(storage, segment, length):
        read.update(part)
    return read.digest()


async def put_checked(storage: Storage, segment: str, parts: AsyncIterator[bytes]) -> None:
    """Write a segment and read it back; one that is not what was sent is not left there."""
    sent = sha256()

    async def hashed() -> AsyncIterator[bytes]:
        async for part in parts:
            sent.update(part)
            yield part

    await storage.put(segment, hashed())
    if await digest(storage, segment) != sent.digest():
        await storage.delete(segment)
        raise ArchiveError(f"archive segment {segment} did not arrive as it was sent")
