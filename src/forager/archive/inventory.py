"""What the database knows of the archive: its segments, and how they grow."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from forager.archive import store
from forager.archive.retention import SegmentRow
from forager.archive.segment import ArchiveRef, Growth
from forager.archive.storage import Storage, StoredSegment
from forager.db.cursor import Page
from forager.db.database import Database
from forager.errors import NotFound
from forager.hints import Hint, action


def growth_of(refs: Iterable[ArchiveRef]) -> list[Growth]:
    """What a commit that refers to these records adds to their segments."""
    growths: dict[str, Growth] = {}
    for ref in refs:
        before = growths.get(ref.segment, Growth(ref.segment, 0, 0))
        growths[ref.segment] = Growth(ref.segment, max(before.end, ref.end), before.records + 1)
    return [growths[name] for name in sorted(growths)]


async def list_segments(
    database: Database, *, job_id: UUID | None = None, cursor: str = "", limit: int = 50
) -> Page[SegmentRow]:
    """Segments, oldest first; the cursor is the name of the last one."""
    async with database.connection() as connection:
        found = await store.select_segments(
            connection, after=cursor, job_id=job_id, limit=limit + 1
        )
    return Page(found[:limit], found[limit - 1].name if len(found) > limit else None)


async def get_segment(database: Database, name: str) -> SegmentRow:
    async with database.connection() as connection:
        found = await store.select_segment(connection, name)
    if found is None:
        hint = Hint("{} lists segments.", action("archive list"))
        raise NotFound(f"there is no archive segment {name}", hint=hint)
    return found


# an upload that its writer has given up may still arrive
ORPHAN_AGE = timedelta(days=1)
_PAGE = 1000


async def find_orphans(
    database: Database, storage: Storage, *, older_than: timedelta = ORPHAN_AGE
) -> list[StoredSegment]:
    """Listed before rows are read: a row is there before its file, so none of these gets one."""
    before = datetime.now(UTC) - older_than
    old = [stored for stored in await storage.list_segments() if stored.modified < before]
    orphans: list[StoredSegment] = []
    for start in range(0, len(old), _PAGE):
        page = old[start : start + _PAGE]
        async with database.connection() as connection:
            unknown = await store.select_unknown(connection, [stored.name for stored in page])
        orphans += [stored for stored in page if stored.name in unknown]
    return orphans
