"""Whole segments from one place to another, compared after they have arrived."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import sha256

from forager.archive.errors import ArchiveError
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage

_READ_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What two copies of the same bytes have in common."""

    length: int
    digest: bytes


async def read_parts(storage: Storage, segment: str, length: int) -> AsyncIterator[bytes]:
    """The beginning of a segment, a few megabytes at a time."""
    for offset in range(0, length, _READ_BYTES):
        part = ArchiveRef(segment, offset, min(_READ_BYTES, length - offset))
        yield await storage.read(part)


async def fingerprint(storage: Storage, segment: str, length: int | None = None) -> Fingerprint:
    """Of the whole segment, or of its beginning."""
    if length is None:
        length = await storage.size(segment)
    digest = sha256()
    async for part in read_parts(storage, segment, length):
        digest.update(part)
    return Fingerprint(length, digest.digest())


async def put_checked(storage: Storage, segment: str, parts: AsyncIterator[bytes]) -> Fingerprint:
    """Write a segment and read it back; one that is not what was sent is not left there."""
    sent, length = sha256(), 0

    async def noted() -> AsyncIterator[bytes]:
        nonlocal length
        async for part in parts:
            sent.update(part)
            length += len(part)
            yield part

    await storage.put(segment, noted())
    expected = Fingerprint(length, sent.digest())
    if await fingerprint(storage, segment) != expected:
        await storage.delete(segment)
        raise ArchiveError(f"archive segment {segment} did not arrive as it was sent")
    return expected
