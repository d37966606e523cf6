"""Small segments of one owner into larger ones: an object store takes one object per commit.

First the merged segment is written, under a separate row, and read back; then one transaction
lets all rows refer to it; and the small ones are kept for a while, for readers that looked
before. A process that dies on the way leaves all references unchanged, and an abandoned row.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from uuid import UUID, uuid4

from forager.archive import store
from forager.archive.deletion import delete_segment
from forager.archive.retention import SmallSegment
from forager.archive.segment import SegmentName, parse_segment_name
from forager.archive.storage import Storage, put_checked, read_parts
from forager.archive.store import merges
from forager.db.database import Database
from forager.errors import ForagerError, LeaseLost
from forager.logs import get_logger

log = get_logger("archive")

OWNER = "merged"
# longer than any reader takes from finding a reference to reading the record
GRACE = 3600.0
# longer than any merge takes; one that takes longer finds its row closed, and moves nothing
GIVEN_UP_AFTER = 86400.0
# fewer are not worth another write of their bytes
FEWEST = 4
CHUNK = 10_000


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """Counts of a merge."""

    segments: int = 0
    into: int = 0
    bytes: int = 0


def plan_merges(segments: Iterable[SmallSegment], limit: int) -> list[list[SmallSegment]]:
    """Neighbours of one owner and tier, as many as fit below the limit, and never a few only."""
    groups: list[list[SmallSegment]] = []
    for _, of_owner in groupby(segments, key=_owner):
        group: list[SmallSegment] = []
        for segment in of_owner:
            if sum(each.bytes for each in group) + segment.bytes > limit:
                groups.append(group)
                group = []
            group.append(segment)
        groups.append(group)
    return [group for group in groups if len(group) >= FEWEST]


async def merge_segments(database: Database, storage: Storage, limit: int) -> MergeCounts:
    """Merge what is small, until nothing is left to merge."""
    async with database.connection() as connection:
        await merges.close_abandoned(connection, OWNER, seconds=GIVEN_UP_AFTER)
        # so small that the fewest always fit into one: whatever is listed is merged
        small = await merges.select_small(
            connection, below=limit // FEWEST, owner=OWNER, fewest=FEWEST, limit=CHUNK
        )
    done = MergeCounts()
    for group in plan_merges(small, limit):
        if await _merge(database, storage, group):
            size = sum(segment.bytes for segment in group)
            done = MergeCounts(done.segments + len(group), done.into + 1, done.bytes + size)
    return done


async def _merge(database: Database, storage: Storage, group: Sequence[SmallSegment]) -> bool:
    names = [segment.name for segment in group]
    async with database.connection() as connection:
        if await merges.claim_segments(connection, names, seconds=GRACE) < len(names):
            return False  # another merger has some; its claim and ours end by themselves
        target = _new_name(names[0])
        await store.register_segment(connection, target, None)
    try:
        await put_checked(storage, target, _contents(storage, group))
        await _switch(database, target, group)
    except ForagerError as error:
        log.warning("segments not merged", reason=error.message)
        await _discard(database, storage, target)
        return False
    return True


async def _contents(storage: Storage, group: Sequence[SmallSegment]) -> AsyncIterator[bytes]:
    """Behind the size in its row, a segment may hold records without references."""
    for segment in group:
        async for part in read_parts(storage, segment.name, segment.bytes):
            yield part


async def _switch(database: Database, target: str, group: Sequence[SmallSegment]) -> None:
    """All rows at once refer to the merged segment, or none does."""
    names = [segment.name for segment in group]
    starts = list(accumulate((segment.bytes for segment in group[:-1]), initial=0))
    async with database.transaction() as connection:
        await merges.limit_waiting(connection)
        await merges.lock_referring_rows(connection, names)
        if not await merges.lock_unfinished(connection, target):
            raise LeaseLost(f"the merge {target} was given up")
        if await merges.lock_sources(connection, names) != set(names):
            raise LeaseLost("segments went while they were merged")
        await merges.move_references(connection, target, names, starts)
        await merges.finish_merge(connection, _sum(target, group), seconds=GRACE)
        await merges.keep_segments(connection, names, seconds=GRACE)


async def _discard(database: Database, storage: Storage, target: str) -> None:
    """Try to delete a failed merge; the clean-up deletes what stays."""
    try:
        await database.run(store.close_segment, target)
        await delete_segment(database, storage, target)
    except ForagerError as error:
        log.warning("a merge is left for the clean-up", segment=target, reason=error.message)


def _sum(target: str, group: Sequence[SmallSegment]) -> SmallSegment:
    return SmallSegment(
        name=target,
        job_id=group[0].job_id,
        worker_id=group[0].worker_id,
        bytes=sum(segment.bytes for segment in group),
        records=sum(segment.records for segment in group),
        created_at=min(segment.created_at for segment in group),
        written_at=max(segment.written_at for segment in group),
    )


def _owner(segment: SmallSegment) -> tuple[UUID | None, UUID | None, int]:
    return segment.job_id, segment.worker_id, segment.tier


def _new_name(first: str) -> str:
    """A name with the day of the first segment, so that names still sort by day."""
    return str(SegmentName(parse_segment_name(first).day, f"{OWNER}-{uuid4().hex}", 0, 0))
