"""Segments as objects. An object cannot grow, so each append is a segment of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, suppress

from obstore.store import ObjectStore

from forager.archive.bucket import (
    PART_BYTES,
    PARTS_AT_ONCE,
    BucketLimits,
    bucket_errors,
    open_bucket_store,
    require_bucket,
)
from forager.archive.errors import ArchiveError, DamagedRecord, SegmentExists, StorageAway
from forager.archive.segment import ArchiveRef, parse_segment_name, refs_of
from forager.archive.storage import StoredSegment
from forager.errors import InvalidInput, NotFound

# what is longer goes up in parts, each of which is tried again on its own
IN_ONE_REQUEST = 2 * PART_BYTES


def open_bucket(url: str, limits: BucketLimits | None = None) -> ObjectStorage:
    return ObjectStorage(open_bucket_store(url, limits))


class ObjectStorage:
    """A bucket of segments."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def open_segment(self, name: str) -> ObjectSegment:
        parse_segment_name(name)
        return ObjectSegment(self._store, name)

    async def read(self, ref: ArchiveRef) -> bytes:
        parse_segment_name(ref.segment)
        with _errors(ref.segment):
            data = await self._store.get_range_async(
                ref.segment, start=ref.offset, length=ref.length
            )
        if len(data) != ref.length:
            raise DamagedRecord(f"archive segment {ref.segment} ends before byte {ref.end}")
        return bytes(data)

    async def size(self, segment: str) -> int:
        parse_segment_name(segment)
        return await _size(self._store, segment)

    async def put(self, segment: str, parts: AsyncIterator[bytes]) -> None:
        parse_segment_name(segment)
        await _put_parts(self._store, segment, parts)

    async def delete(self, segment: str) -> None:
        parse_segment_name(segment)
        with suppress(NotFound), _errors(segment):
            await self._store.delete_async(segment)

    async def list_segments(self, prefix: str = "") -> list[StoredSegment]:
        # stores list whole folders only, so the rest of the prefix is compared here
        folder = prefix.rpartition("/")[0]
        found = []
        with _errors(prefix):
            async for chunk in self._store.list(folder or None):
                for item in chunk:
                    with suppress(InvalidInput):
                        parse_segment_name(item["path"])
                        found.append(
                            StoredSegment(item["path"], item["size"], item["last_modified"])
                        )
        return sorted((s for s in found if s.name.startswith(prefix)), key=lambda s: s.name)


class ObjectSegment:
    """One object, made by the one append it takes."""

    def __init__(self, store: ObjectStore, name: str) -> None:
        self.name = name
        self.size = 0
        self.sealed = False
        self._store = store

    async def append(self, frames: Sequence[bytes]) -> list[ArchiveRef]:
        if self.sealed:
            raise ArchiveError(f"archive segment {self.name} takes no more records")
        # before the request: one that fails or is cancelled may still have made the object
        self.sealed = True
        data = b"".join(frames)
        await self._create(data)
        self.size = len(data)
        return refs_of(self.name, 0, frames)

    async def close(self) -> None:
        self.sealed = True

    async def _create(self, data: bytes) -> None:
        try:
            await self._create_again(data)
        except SegmentExists:
            # a request whose answer got lost is sent again, and then meets what it made itself
            if not await self._holds(data):
                raise

    async def _create_again(self, data: bytes) -> None:
        """The library does not repeat "fail if it exists" once a line broke; here it is safe."""
        try:
            await self._create_once(data)
        except StorageAway:
            await self._create_once(data)

    async def _create_once(self, data: bytes) -> None:
        if len(data) > IN_ONE_REQUEST:
            await self._create_in_parts(data)
        else:
            with _errors(self.name):
                await self._store.put_async(self.name, data, mode="create")

    async def _create_in_parts(self, data: bytes) -> None:
        """Parts know no "fail if it exists": a look before has to do, as no name is used twice."""
        with suppress(NotFound):
            await _size(self._store, self.name)
            raise SegmentExists(f"archive segment {self.name} exists already")
        await _put_parts(self._store, self.name, _pieces(data))

    async def _holds(self, data: bytes) -> bool:
        with _errors(self.name):
            found = await (await self._store.get_async(self.name)).bytes_async()
        return bytes(found) == data


async def _size(store: ObjectStore, segment: str) -> int:
    try:
        with _errors(segment):
            return (await store.head_async(segment))["size"]
    except NotFound:
        await require_bucket(store, segment)
        raise


async def _put_parts(store: ObjectStore, segment: str, parts: AsyncIterator[bytes]) -> None:
    with _errors(segment):
        await store.put_async(
            segment,
            parts,
            use_multipart=True,
            chunk_size=PART_BYTES,
            max_concurrency=PARTS_AT_ONCE,
        )


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), PART_BYTES):
        yield data[start : start + PART_BYTES]


def _errors(segment: str) -> AbstractContextManager[None]:
    return bucket_errors(f"archive segment {segment}")
