"""Listing and deleting segments, so that no row ever refers to bytes that are gone.

The mark comes first, and commits only if nothing refers to the segment; then the file goes, then
the row. A process that dies in between leaves a marked row, and the next clean-up resumes there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from forager.archive import store
from forager.archive.options import archive_options
from forager.archive.retention import Deletion, Policy, RetentionPlan, SegmentRow, plan_retention
from forager.archive.storage import Storage, StoredSegment
from forager.db.cursor import Page, batches, page_of
from forager.db.database import Database
from forager.db.rows import select_now
from forager.errors import NotFound
from forager.hints import Hint, action
from forager.logs import get_logger
from forager.settings import Settings

_PAGE = 1000


@dataclass(slots=True)
class DeletionResult:
    """The result of a clean-up."""

    deleted: list[Deletion] = field(default_factory=list)
    # planned, but written to or referred to by the time they were locked
    spared: list[Deletion] = field(default_factory=list)
    # deletions of earlier clean-ups that died half-way
    finished: list[str] = field(default_factory=list)

    @property
    def freed_bytes(self) -> int:
        return sum(deletion.segment.bytes for deletion in self.deleted)


async def all_segments(database: Database) -> list[SegmentRow]:
    """All segments by name."""

    async def select(after: str) -> list[SegmentRow]:
        return await database.run(store.select_segments, after=after, limit=_PAGE)

    pages = batches(select, "", lambda segment: segment.name, _PAGE)
    return [segment async for page in pages for segment in page]


async def plan_prune(database: Database, policy: Policy) -> RetentionPlan:
    """Plan the deletions of a policy, with their reasons."""
    now = await database.run(select_now)
    rows = await all_segments(database)
    staying = (row for row in rows if row.going_at is None and not row.is_kept(now))
    return plan_retention(staying, policy, now)


async def prune(
    database: Database, storage: Storage, deletions: Iterable[Deletion]
) -> DeletionResult:
    """Delete what a plan says, as far as that is still right."""
    pruned = DeletionResult(finished=await finish_deletions(database, storage))
    for deletion in deletions:
        gone = await delete_segment(
            database, storage, deletion.segment.name, drop_references=deletion.drops_references
        )
        (pruned.deleted if gone else pruned.spared).append(deletion)
    return pruned


async def delete_segment(
    database: Database, storage: Storage, name: str, *, drop_references: bool = False
) -> bool:
    """Delete one segment; not if it may still be written to, or is referred to."""
    if not await _mark(database, name, drop_references):
        return False
    await finish_deletion(database, storage, name)
    return True


async def finish_deletions(database: Database, storage: Storage) -> list[str]:
    """Resume clean-ups that were interrupted."""
    going = await database.run(store.select_going)
    for name in going:
        await finish_deletion(database, storage, name)
    return going


async def finish_deletion(database: Database, storage: Storage, name: str) -> None:
    """Delete the file and then the row of a segment that is marked as going."""
    await storage.delete(name)
    await database.run(store.delete_row, name)


class _ReferredTo(Exception):
    """A new reference appeared while others were dropped, which is rolled back."""


async def _mark(database: Database, name: str, drop_references: bool) -> bool:
    try:
        async with database.transaction() as connection:
            if not await store.lock_closed_segment(connection, name):
                return False
            if drop_references:
                await store.drop_references(connection, name)
            if not await store.mark_going(connection, name):
                raise _ReferredTo
    except _ReferredTo:
        return False
    return True


log = get_logger("archive")


async def clean_up_archive(database: Database, settings: Settings) -> DeletionResult:
    """Merge small segments of a bucket, and delete segments as the settings say."""
    options = archive_options(settings)
    storage = options.open()
    if options.in_bucket:
        await _merge(database, storage, options.segment_bytes)
    plan = await plan_prune(database, options.policy)
    pruned = await prune(database, storage, plan.delete)
    if pruned.deleted:
        log.info("archive segments deleted", segments=len(pruned.deleted), bytes=pruned.freed_bytes)
    return pruned


async def _merge(database: Database, storage: Storage, segment_bytes: int) -> None:
    from forager.archive.merging import merge_segments

    merged = await merge_segments(database, storage, segment_bytes)
    if merged.into:
        log.info("archive segments merged", segments=merged.segments, into=merged.into)


async def list_segments(
    database: Database, *, job_id: UUID | None = None, cursor: str = "", limit: int = 50
) -> Page[SegmentRow]:
    """Segments, oldest first; the cursor is the name of the last one."""
    found = await database.run(store.select_segments, after=cursor, job_id=job_id, limit=limit + 1)
    return page_of(found, limit, lambda segment: segment.name)


async def get_segment(database: Database, name: str) -> SegmentRow:
    """A segment by its name; raises NotFound."""
    found = await database.run(store.select_segment, name)
    if found is None:
        hint = Hint("{} lists segments.", action("archive list"))
        raise NotFound(f"there is no archive segment {name}", hint=hint)
    return found


# an upload that its writer has given up may still arrive
ORPHAN_AGE = timedelta(days=1)


async def find_orphans(database: Database, storage: Storage) -> list[StoredSegment]:
    """Files without a row. Files are listed first: a row exists before its file is written."""
    before = datetime.now(UTC) - ORPHAN_AGE
    old = [stored for stored in await storage.list_segments() if stored.modified < before]
    orphans: list[StoredSegment] = []
    for start in range(0, len(old), _PAGE):
        page = old[start : start + _PAGE]
        unknown = await database.run(store.select_unknown, [stored.name for stored in page])
        orphans += [stored for stored in page if stored.name in unknown]
    return orphans
