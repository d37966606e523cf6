"""Segments as objects. An object cannot grow, so each append is a segment of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import ObjectStore, from_url

from forager.archive.errors import ArchiveError, DamagedRecord, SegmentExists
from forager.archive.segment import ArchiveRef, parse_segment_name, refs_of
from forager.archive.storage import StoredSegment
from forager.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from obstore.store import ClientConfig

CONNECT_TIMEOUT = timedelta(seconds=10)
REQUEST_TIMEOUT = timedelta(seconds=60)
RETRY_TIMEOUT = timedelta(seconds=60)


def open_bucket(url: str) -> ObjectStorage:
    """A bucket by URL; region, endpoint and keys come from the usual `AWS_…` environment."""
    options: ClientConfig = {
        "connect_timeout": CONNECT_TIMEOUT,
        "timeout": REQUEST_TIMEOUT,
        # only an endpoint that the environment names as http:// is spoken to in the clear
        "allow_http": True,
    }
    try:
        store = from_url(
            url,
            client_options=options,
            retry_config={"max_retries": 5, "retry_timeout": RETRY_TIMEOUT},
        )
    except BaseError as error:
        raise InvalidInput(f"{url!r} is no place for an archive: {error}") from error
    return ObjectStorage(store)


class ObjectStorage:
    """A bucket of segments."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def open_segment(self, name: str) -> ObjectSegment:
        parse_segment_name(name)
        return ObjectSegment(self._store, name)

    async def read(self, ref: ArchiveRef) -> bytes:
        parse_segment_name(ref.segment)
        with _store_errors(ref.segment):
            data = await self._store.get_range_async(
                ref.segment, start=ref.offset, length=ref.length
            )
        if len(data) != ref.length:
            raise DamagedRecord(f"archive segment {ref.segment} ends before byte {ref.end}")
        return bytes(data)

    async def size(self, segment: str) -> int:
        parse_segment_name(segment)
        with _store_errors(segment):
            return (await self._store.head_async(segment))["size"]

    async def delete(self, segment: str) -> None:
        parse_segment_name(segment)
        with suppress(NotFound), _store_errors(segment):
            await self._store.delete_async(segment)

    async def list_segments(self, prefix: str = "") -> list[StoredSegment]:
        # stores list whole folders only, so the rest of the prefix is compared here
        folder = prefix.rpartition("/")[0]
        found = []
        with _store_errors(prefix):
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
        with _store_errors(self.name):
            await self._store.put_async(self.name, data, mode="create")
        self.size = len(data)
        return refs_of(self.name, 0, frames)

    async def close(self) -> None:
        self.sealed = True


@contextmanager
def _store_errors(segment: str) -> Iterator[None]:
    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        raise NotFound(f"there is no archive segment {segment}") from error
    except AlreadyExistsError as error:
        raise SegmentExists(f"archive segment {segment} exists already") from error
    except BaseError as error:
        # the library's message goes on for pages of debug output
        reason = str(error).partition("\n")[0]
        raise ArchiveError(f"archive segment {segment}: {reason}") from error
