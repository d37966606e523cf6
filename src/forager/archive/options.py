"""Location, segment size and retention of the archive, from the settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from forager.archive.retention import Policy
from forager.archive.segment import ArchiveRef
from forager.archive.storage import (
    SEGMENTS,
    FileKind,
    SegmentWriter,
    Storage,
    StoredSegment,
    local_folder,
    open_storage,
)
from forager.errors import NotFound
from forager.settings import Settings

MEGABYTE = 1_000_000
# the name of the folder in the home, where the archive is if nothing else is said
LOCAL = "local"


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """The settings of the archive in its own terms."""

    place: str | Path
    segment_bytes: int
    policy: Policy
    # the previous place, which is also read while the archive is moved
    old_place: str | Path | None = None

    @property
    def in_bucket(self) -> bool:
        """Whether the archive is in an object store."""
        return isinstance(self.place, str) and self.place.startswith("s3://")

    def open(self, kind: FileKind = SEGMENTS) -> Storage:
        """The storage; during a move, both places together."""
        storage = open_storage(self.place, kind)
        if self.old_place is None:
            return storage
        return MovingStorage(storage, open_storage(self.old_place, kind))


def archive_options(settings: Settings) -> ArchiveOptions:
    """A limit that is set is strict: pages past it are deleted even if rows refer to them."""
    old = settings.archive_old_url
    days, megabytes = settings.archive_max_age_days, settings.archive_max_mb
    return ArchiveOptions(
        place=place_of(settings.archive_url or LOCAL, settings),
        old_place=None if old is None else place_of(old, settings),
        segment_bytes=settings.archive_segment_mb * MEGABYTE,
        policy=Policy(
            max_age=None if days is None else timedelta(days=days),
            max_bytes=None if megabytes is None else megabytes * MEGABYTE,
            drop_references=True,
        ),
    )


def place_of(name: str, settings: Settings) -> str | Path:
    """The place that a name in the database means."""
    return settings.home / "archive" if name == LOCAL else name


def place_name(place: str | Path) -> str:
    """One name for one place, however it was written."""
    folder = local_folder(place)
    return str(place).rstrip("/") if folder is None else str(folder.resolve())


def is_same_place(one: str | Path, other: str | Path) -> bool:
    """Whether two places are the same, also if a folder is mounted twice."""
    if place_name(one) == place_name(other):
        return True
    folder, another = local_folder(one), local_folder(other)
    if folder is None or another is None:
        return False
    try:
        return folder.samefile(another)
    except FileNotFoundError:
        return False


Answer = TypeVar("Answer")


class MovingStorage:
    """Two places that act as one. A segment is whole in each place that has it."""

    def __init__(self, new: Storage, old: Storage) -> None:
        self._new = new
        self._old = old

    def open_segment(self, name: str) -> SegmentWriter:
        return self._new.open_segment(name)

    async def read(self, ref: ArchiveRef) -> bytes:
        return await self._ask(lambda storage: storage.read(ref))

    async def read_all(self, name: str) -> bytes:
        return await self._ask(lambda storage: storage.read_all(name))

    async def size(self, segment: str) -> int:
        return await self._ask(lambda storage: storage.size(segment))

    async def put(self, segment: str, parts: AsyncIterator[bytes]) -> None:
        await self._new.put(segment, parts)

    async def put_all(self, name: str, data: bytes) -> None:
        await self._new.put_all(name, data)

    async def delete(self, segment: str) -> None:
        await self._old.delete(segment)
        await self._new.delete(segment)

    async def list_segments(self, prefix: str = "") -> list[StoredSegment]:
        # the old place first: what is moved meanwhile is then found in one of them at least
        found = {stored.name: stored for stored in await self._old.list_segments(prefix)}
        found |= {stored.name: stored for stored in await self._new.list_segments(prefix)}
        return [found[name] for name in sorted(found)]

    async def _ask(self, ask: Callable[[Storage], Awaitable[Answer]]) -> Answer:
        for storage in (self._new, self._old):
            try:
                return await ask(storage)
            except NotFound:
                continue
        # moved between the two looks
        return await ask(self._new)
