"""Move image files to another location; an interrupted move is resumed later."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import sha256

from forager.archive.migration import PAGE, MigrationResult, Progress
from forager.archive.storage import Storage, size_of
from forager.archive.warc_record import ArchiveError
from forager.db.cursor import batches
from forager.db.database import Database
from forager.errors import NotFound
from forager.images.store import files as store
from forager.images.store.files import MovableFile


@dataclass(frozen=True, slots=True)
class ImageMove:
    """A move; `place` is the name of the target in the database."""

    database: Database
    source: Storage
    target: Storage
    place: str

    async def count(self) -> int:
        """Number of files that are left to be copied."""
        return await self.database.run(store.count_unmoved, self.place)

    async def run(self, on_progress: Progress) -> MigrationResult:
        """Copy every file that was not copied yet."""
        moved = MigrationResult()
        seen = 0
        async for file in self._files(moved_only=False):
            await self._move(file, moved)
            seen += 1
            on_progress(seen)
        return moved

    async def delete_source(self) -> int:
        """Delete files from the source that the target has; returns how many."""
        deleted = 0
        async for file in self._files(moved_only=True):
            there = await size_of(self.source, file.path)
            if there is not None and await size_of(self.target, file.path) == there:
                await self.source.delete(file.path)
                deleted += 1
        return deleted

    async def _move(self, file: MovableFile, moved: MigrationResult) -> None:
        if await _holds(self.target, file):
            moved.found += 1
        elif await _holds(self.source, file):
            data = await self.source.read_all(file.path)
            await self._copy(file, data)
            moved.copied += 1
            moved.bytes += len(data)
        else:
            if file.used:
                moved.missing.append(file.path)
            return
        await self._mark(file)

    async def _copy(self, file: MovableFile, data: bytes) -> None:
        await self.target.put_all(file.path, data)
        if not await _holds(self.target, file):
            await self.target.delete(file.path)
            raise ArchiveError(f"image file {file.path} did not arrive as it was sent")

    async def _mark(self, file: MovableFile) -> None:
        marked = await self.database.run(store.mark_moved, file.content_hash, self.place)
        if not marked:
            # deleted during the copy: the deletion did not include the target
            await self.target.delete(file.path)

    async def _files(self, *, moved_only: bool) -> AsyncIterator[MovableFile]:
        async def select(after: bytes) -> list[MovableFile]:
            return await self.database.run(
                store.select_movable, self.place, is_moved=moved_only, after=after, limit=PAGE
            )

        async for page in batches(select, b"", lambda file: file.content_hash, PAGE):
            for file in page:
                yield file


async def _holds(files: Storage, file: MovableFile) -> bool:
    """Whether a location has the file with the right content."""
    try:
        return sha256(await files.read_all(file.path)).digest() == file.content_hash
    except NotFound:
        return False
