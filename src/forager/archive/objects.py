"""Segments as objects of a bucket. An object cannot grow, so each append is a segment."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore, from_url

from forager.archive.segment import ArchiveRef, parse_segment_name, refs_of
from forager.archive.storage import SEGMENTS, FileKind, StoredSegment
from forager.archive.warc_record import ArchiveError, DamagedRecord, SegmentExists, StorageAway
from forager.errors import InvalidInput, NotFound, error_text
from forager.hints import Hint, action

if TYPE_CHECKING:
    from obstore.store import ClientConfig


# a part of an upload; the store allows no smaller ones than 5 MB, and no more than 10,000
PART_BYTES = 8 * 1024 * 1024
PARTS_AT_ONCE = 4

_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: (\d{3})")
_MISSING_BUCKET = "NoSuchBucket"
_NO_RANGE = "Requested range was invalid"
_MAX_REASON = 300
_KEYS_HINT = "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, and the key's rights."
_AWAY_HINT = Hint(
    "Check AWS_ENDPOINT_URL, or run {}. Work continues when it answers.", action("doctor")
)


@dataclass(frozen=True, slots=True)
class BucketLimits:
    """Time limits of requests to a store, and of their retries, in seconds."""

    connect: float = 10.0
    request: float = 60.0
    retry: float = 60.0


def open_bucket_store(url: str, limits: BucketLimits | None = None) -> ObjectStore:
    """A bucket by URL; region, endpoint and keys come from the usual `AWS_…` environment."""
    limits = limits or BucketLimits()
    options: ClientConfig = {
        "connect_timeout": timedelta(seconds=limits.connect),
        "timeout": timedelta(seconds=limits.request),
        # only an endpoint that the environment names as http:// is spoken to in the clear
        "allow_http": True,
    }
    try:
        return from_url(
            url,
            client_options=options,
            # the time ends the tries, not their number: a store that restarts is not noticed
            retry_config={"max_retries": 100, "retry_timeout": timedelta(seconds=limits.retry)},
        )
    except BaseError as error:
        raise InvalidInput(f"{url!r} is no place for an archive: {_reason(error)}") from error


async def require_bucket(store: ObjectStore, what: str) -> None:
    """An answer to HEAD has no words: whether the object is missing or the bucket is asked here."""
    with bucket_errors(what):
        async for _ in store.list(what, chunk_size=1):
            break


@contextmanager
def bucket_errors(what: str) -> Iterator[None]:
    """Translate errors of the store; `what` names the requested object."""
    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        if _code(error) == _MISSING_BUCKET:
            raise _no_bucket(what) from error
        raise NotFound(f"there is no {what}") from error
    except AlreadyExistsError as error:
        raise SegmentExists(f"{what} exists already") from error
    except BaseError as error:
        raise _translated(what, error) from error


def _translated(what: str, error: BaseError) -> Exception:
    code, status = _code(error), _status(error)
    if code == _MISSING_BUCKET:
        return _no_bucket(what)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or status in (401, 403):
        said = code or "access denied"
        return StorageAway(f"{what}: the object store refuses ({said})", hint=_KEYS_HINT)
    if status == 416 or _NO_RANGE in str(error):
        return DamagedRecord(f"{what} ends before what is referred to")
    if status is not None and 400 <= status < 500 and status not in (408, 429):
        return ArchiveError(f"{what}: the object store answers {status} {code or ''}".rstrip())
    return StorageAway(f"{what}: {_reason(error)}", hint=_AWAY_HINT)


def _no_bucket(what: str) -> StorageAway:
    return StorageAway(
        f"{what}: the bucket does not exist", hint="Make it, or correct FORAGER_ARCHIVE_URL."
    )


def _code(error: Exception) -> str | None:
    match = _CODE.search(str(error))
    return match[1] if match else None


def _status(error: Exception) -> int | None:
    match = _STATUS.search(str(error))
    return int(match[1]) if match else None


def _reason(error: Exception) -> str:
    # the library's message contains pages of debug output
    return error_text(error).partition("\n")[0][:_MAX_REASON]


# larger objects are uploaded in parts, each of which is retried separately
IN_ONE_REQUEST = 2 * PART_BYTES


def open_bucket(
    url: str, limits: BucketLimits | None = None, *, kind: FileKind = SEGMENTS
) -> ObjectStorage:
    return ObjectStorage(open_bucket_store(url, limits), kind)


class ObjectStorage:
    """A bucket of segments or other files."""

    def __init__(self, store: ObjectStore, kind: FileKind = SEGMENTS) -> None:
        self._store = store
        self._kind = kind

    def open_segment(self, name: str) -> ObjectSegment:
        """A writer of a new segment with this name; each append writes an object."""
        return ObjectSegment(self, self._kind.checked(name))

    async def create(self, name: str, data: bytes) -> None:
        """Write a whole file that must not exist."""
        with bucket_errors(self._kind.named(name)):
            await self._store.put_async(self._kind.checked(name), data, mode="create")

    async def read(self, ref: ArchiveRef) -> bytes:
        """The bytes of a record, with one ranged request."""
        self._kind.check(ref.segment)
        with bucket_errors(self._kind.named(ref.segment)):
            data = await self._store.get_range_async(
                ref.segment, start=ref.offset, length=ref.length
            )
        if len(data) != ref.length:
            raise DamagedRecord(f"archive segment {ref.segment} ends before byte {ref.end}")
        return bytes(data)

    async def read_all(self, name: str) -> bytes:
        """The whole object."""
        with bucket_errors(self._kind.named(name)):
            found = await self._store.get_async(self._kind.checked(name))
            return bytes(await found.bytes_async())

    async def size(self, segment: str) -> int:
        """The size of a segment in bytes."""
        try:
            with bucket_errors(self._kind.named(segment)):
                return (await self._store.head_async(self._kind.checked(segment)))["size"]
        except NotFound:
            await require_bucket(self._store, segment)
            raise

    async def put(self, segment: str, parts: AsyncIterator[bytes]) -> None:
        """Write a whole segment; it appears when the upload is complete."""
        with bucket_errors(self._kind.named(segment)):
            await self._store.put_async(
                self._kind.checked(segment),
                parts,
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=PARTS_AT_ONCE,
            )

    async def put_all(self, name: str, data: bytes) -> None:
        """Write a whole object."""
        with bucket_errors(self._kind.named(name)):
            await self._store.put_async(self._kind.checked(name), data)

    async def delete(self, segment: str) -> None:
        """Delete a segment; one that does not exist is no error."""
        with suppress(NotFound), bucket_errors(self._kind.named(segment)):
            await self._store.delete_async(self._kind.checked(segment))

    async def list_segments(self, prefix: str = "") -> list[StoredSegment]:
        """Segments whose names begin with a prefix, by name."""
        # stores list whole folders only, so the rest of the prefix is compared here
        folder = prefix.rpartition("/")[0]
        found = []
        with bucket_errors(self._kind.named(prefix)):
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

    def __init__(self, storage: ObjectStorage, name: str) -> None:
        self.name = name
        self.size = 0
        self.sealed = False
        self._storage = storage

    async def append(self, frames: Sequence[bytes]) -> list[ArchiveRef]:
        """Write the frames as the object, and return their places; once only."""
        if self.sealed:
            raise ArchiveError(f"archive segment {self.name} accepts no more records")
        # before the request: one that fails or is cancelled may still have made the object
        self.sealed = True
        data = b"".join(frames)
        try:
            await self._create(data)
        except SegmentExists:
            # a request whose answer got lost is sent again, and then meets what it made itself
            if await self._storage.read_all(self.name) != data:
                raise
        self.size = len(data)
        return refs_of(self.name, 0, frames)

    async def close(self) -> None:
        """Accept no more records."""
        self.sealed = True

    async def _create(self, data: bytes) -> None:
        """The library does not repeat "fail if it exists" once a line broke; here it is safe."""
        try:
            await self._create_once(data)
        except StorageAway:
            await self._create_once(data)

    async def _create_once(self, data: bytes) -> None:
        if len(data) <= IN_ONE_REQUEST:
            await self._storage.create(self.name, data)
            return
        # parts know no "fail if it exists": a look before has to do, as no name is used twice
        with suppress(NotFound):
            await self._storage.size(self.name)
            raise SegmentExists(f"archive segment {self.name} exists already")
        await self._storage.put(self.name, _pieces(data))


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), PART_BYTES):
        yield data[start : start + PART_BYTES]
