"""An archive on its way from one place to another: written in the new one, read in both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from forager.archive.segment import ArchiveRef
from forager.archive.storage import SegmentWriter, Storage, StoredSegment
from forager.errors import NotFound

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

    async def size(self, segment: str) -> int:
        return await self._ask(lambda storage: storage.size(segment))

    async def put(self, segment: str, parts: AsyncIterator[bytes]) -> None:
        await self._new.put(segment, parts)

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
