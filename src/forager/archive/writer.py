"""The archive writer: appends batches of records to segments."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Self
from uuid import UUID

from forager.archive import store
from forager.archive.options import archive_options
from forager.archive.segment import ArchiveRef, SegmentGrowth, SegmentName
from forager.archive.storage import SegmentWriter, Storage
from forager.archive.store import close_segments_of, lock_segments
from forager.archive.warc_record import ZSTD_MAGIC, InfoRecord, pack
from forager.db.database import Connection, Database
from forager.errors import InvalidInput
from forager.settings import Settings

__all__ = ["close_segments_of", "lock_segments"]

SEGMENT_LIMIT = 256 * 1024 * 1024

Register = Callable[[str], Awaitable[None]]


class ArchiveWriter:
    """All records of one owner under one lease. Its references are durable when it returns them."""

    def __init__(
        self,
        storage: Storage,
        owner: str,
        lease: int,
        register: Register,
        *,
        info: Mapping[str, str] | None = None,
        segment_limit: int = SEGMENT_LIMIT,
    ) -> None:
        """`register` commits the row of a segment, and is awaited before its first byte."""
        self._storage = storage
        self._owner = owner
        self._lease = lease
        self._register = register
        self._info = dict(info or {})
        self._segment_limit = segment_limit
        self._numbers = count()
        self._segment: SegmentWriter | None = None
        self._lock = asyncio.Lock()
        # a bad owner or lease is refused here, not in the middle of a crawl
        SegmentName(datetime.now(UTC).date(), owner, lease, 0)

    @classmethod
    def of(
        cls,
        database: Database,
        settings: Settings,
        owner: str,
        lease: int,
        *,
        user_agent: str,
        job_id: UUID | None = None,
        worker_id: UUID | None = None,
    ) -> Self:
        """The writer of a job or worker whose requests have this user agent."""

        async def register(name: str) -> None:
            await database.run(store.register_segment, name, job_id, worker_id=worker_id)

        options, info = archive_options(settings), {"http-header-user-agent": user_agent}
        limit = options.segment_bytes
        return cls(options.open(), owner, lease, register, info=info, segment_limit=limit)

    async def write(self, frames: Sequence[bytes]) -> list[ArchiveRef]:
        """Write packed records with one sync. If it fails none counts, and it may be retried."""
        if not all(frame.startswith(ZSTD_MAGIC) for frame in frames):
            raise InvalidInput("records of the archive are compressed with zstd")
        if not frames:
            return []
        async with self._lock:
            segment = await self._writable_segment()
            head = [] if segment.size else [self._head(segment.name)]
            refs = await segment.append([*head, *frames])
            return refs[len(head) :]

    async def close(self) -> None:
        """Close the segment; its records stay readable."""
        async with self._lock:
            await self._close_segment()

    async def _writable_segment(self) -> SegmentWriter:
        segment = self._segment
        if segment and not segment.sealed and segment.size < self._segment_limit:
            return segment
        await self._close_segment()
        # spent even if registering fails: its row may have been committed all the same
        name = str(self._next_name())
        await self._register(name)
        self._segment = self._storage.open_segment(name)
        return self._segment

    async def _close_segment(self) -> None:
        segment, self._segment = self._segment, None
        if segment:
            await segment.close()

    def _next_name(self) -> SegmentName:
        today = datetime.now(UTC).date()
        return SegmentName(today, self._owner, self._lease, next(self._numbers))

    def _head(self, segment: str) -> bytes:
        return pack(InfoRecord(self._info, filename=segment))


async def record_growth(connection: Connection, refs: Iterable[ArchiveRef]) -> None:
    """Record the new length of segments in the commit that refers to these records."""
    if growths := growth_of(refs):
        await store.grow_segments(connection, growths)


def growth_of(refs: Iterable[ArchiveRef]) -> list[SegmentGrowth]:
    """The growth of segments by a commit that refers to these records."""
    growths: dict[str, SegmentGrowth] = {}
    for ref in refs:
        before = growths.get(ref.segment, SegmentGrowth(ref.segment, 0, 0))
        growths[ref.segment] = SegmentGrowth(
            ref.segment, max(before.end, ref.end), before.records + 1
        )
    return [growths[name] for name in sorted(growths)]
