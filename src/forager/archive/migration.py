"""Move the archive to another location while it is in use; an interrupted move is resumed later.

A segment has the same name in both places, so no reference changes: that a segment has moved is
one update of its row, after its copy was read back. Its source is deleted only after that, and
only on request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from forager.archive import store
from forager.archive.retention import MovableSegment
from forager.archive.storage import Storage, digest, put_checked, read_parts, size_of
from forager.archive.store import merges as moves
from forager.db.cursor import batches
from forager.db.database import Database
from forager.errors import NotFound

PAGE = 500

Progress = Callable[[int], None]


@dataclass(slots=True)
class MigrationResult:
    """The result of a run: files that were copied, and those that were at the target already."""

    copied: int = 0
    bytes: int = 0
    found: int = 0
    # rows refer to them, but they are in neither place
    missing: list[str] = field(default_factory=list)


@dataclass(slots=True)
class MovedSegments(MigrationResult):
    """Complete when nothing is left to be copied."""

    # may still be written to: their turn is in a later run
    waiting: int = 0

    @property
    def complete(self) -> bool:
        return not self.waiting and not self.missing


@dataclass(frozen=True, slots=True)
class StorageMove:
    """Source and target; `place` is the name of the target in the database."""

    database: Database
    source: Storage
    target: Storage
    place: str

    async def recheck(self) -> int:
        """Count as not copied what the new place has lost since; how many segments."""
        sizes = {stored.name: stored.size for stored in await self.target.list_segments()}
        lost = 0
        async for page in self._pages(moved=True):
            names = [each.name for each in page if sizes.get(each.name, -1) < each.bytes]
            await self.database.run(moves.mark_unmoved, names, self.place)
            lost += len(names)
        return lost

    async def count(self) -> int:
        return await self.database.run(moves.count_unmoved, self.place)

    async def run(self, on_progress: Progress) -> MovedSegments:
        """Copy every segment that was not copied yet."""
        moved = MovedSegments()
        seen = 0
        async for page in self._pages(moved=False):
            for segment in page:
                await self._move(segment, moved)
                seen += 1
                on_progress(seen)
        return moved

    async def delete_source(self) -> int:
        """Delete from the old place what the new one has; how many segments."""
        deleted = 0
        there = {stored.name for stored in await self.source.list_segments()}
        async for page in self._pages(moved=True):
            for name in [each.name for each in page if each.name in there]:
                # checked again: a copy that was deleted since must not be the last one
                await self.target.size(name)
                await self.source.delete(name)
                deleted += 1
        return deleted

    async def _move(self, segment: MovableSegment, moved: MovedSegments) -> None:
        if segment.open:
            moved.waiting += 1
            return
        try:
            size = await self._copy(segment.name)
        except NotFound:
            await self._without_source(segment, moved)
            return
        if size is None:
            moved.found += 1
        else:
            moved.copied += 1
            moved.bytes += size
        await self._mark(segment.name)

    async def _copy(self, name: str) -> int | None:
        """Copy a segment and return its size; None if an earlier run had copied it."""
        size = await self.source.size(name)
        if await self._is_there(name, size):
            return None
        await put_checked(self.target, name, read_parts(self.source, name, size))
        return size

    async def _is_there(self, name: str, size: int) -> bool:
        if await size_of(self.target, name) != size:
            return False
        return await digest(self.target, name) == await digest(self.source, name, size)

    async def _without_source(self, segment: MovableSegment, moved: MovedSegments) -> None:
        """Written in the new place, never written, deleted since it was listed, or lost."""
        there = await size_of(self.target, segment.name)
        if there is not None and there >= segment.bytes:
            moved.found += 1
            await self._mark(segment.name)
            return
        row = await self.database.run(store.select_segment, segment.name)
        if row is not None and row.going_at is None and row.references:
            moved.missing.append(segment.name)

    async def _mark(self, name: str) -> None:
        marked = await self.database.run(moves.mark_moved, name, self.place)
        if not marked:
            # deleted while it was copied, by a process that did not know of the copy
            await self.target.delete(name)

    def _pages(self, *, moved: bool) -> AsyncIterator[list[MovableSegment]]:
        async def select(after: str) -> list[MovableSegment]:
            return await self.database.run(
                moves.select_movable, self.place, is_moved=moved, after=after, limit=PAGE
            )

        return batches(select, "", lambda segment: segment.name, PAGE)
