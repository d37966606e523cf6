"""Files that belong to nobody: no row tells of them, and no row refers to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from forager.archive import store
from forager.archive.storage import Storage, StoredSegment
from forager.db.database import Database

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
