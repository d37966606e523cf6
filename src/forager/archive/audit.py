"""Check that the archive holds what the database refers to, and repair it.

Files are listed before rows are read: a row is there before its file, so a file without a row then
is one whose row is gone, never one that is about to be written. A row without a listed file says
less: a merge may have made both since, so the storage is asked again before anything is lost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from forager.archive import store
from forager.archive.deletion import all_segments, delete_segment, finish_deletion
from forager.archive.reader import SegmentScan, read_record
from forager.archive.retention import SegmentRow
from forager.archive.segment import ArchiveRef, SegmentGrowth, job_of, parse_segment_name
from forager.archive.storage import Storage, StoredSegment, size_of
from forager.archive.warc_record import ArchiveError, DamagedRecord
from forager.db.database import Database
from forager.errors import NotFound

# the file of a runner that has lost its lease may still grow for a moment
ORPHAN_AGE = timedelta(hours=1)


class SegmentProblem(StrEnum):
    """A kind of damage in the archive."""

    TORN = "segments with a torn end: a writer was killed; nothing refers to that end"
    DAMAGED = "segments with damaged records"
    UNUSED_DAMAGED = "segments with damaged records that nothing refers to (any more)"
    BROKEN = "segments with records that rows refer to, and that cannot be read"
    UNWRITTEN = "segments with a row but no file, and nothing refers to them"
    MISSING = "segments whose file is missing, and rows refer to them"
    ORPHAN = "segments with a file but no row, and nothing refers to them"
    UNLISTED = "segments with a file but no row, and rows refer to them"
    UNKNOWN = "segments with neither file nor row, but rows refer to them"
    GOING = "segments whose deletion was interrupted"

    @property
    def harmless(self) -> bool:
        """Whether no referenced record is lost."""
        return self.name not in ("DAMAGED", "BROKEN", "MISSING", "UNKNOWN")

    @property
    def can_be_repaired(self) -> bool:
        return self in _REPAIRS


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedSegment:
    """A segment that was read, and its problems."""

    segment: str
    bytes: int = 0
    records: int = 0
    references: int = 0
    open: bool = False
    problems: tuple[SegmentProblem, ...] = ()
    broken: tuple[ArchiveRef, ...] = ()
    detail: str | None = None

    @property
    def ok(self) -> bool:
        return all(problem.harmless for problem in self.problems)

    @property
    def can_be_repaired(self) -> bool:
        return not self.open and any(problem.can_be_repaired for problem in self.problems)


async def audit(
    database: Database, storage: Storage, only: Collection[str] = ()
) -> AsyncIterator[AuditedSegment]:
    """Read every segment, or only some, and say what is wrong with each."""
    files = {stored.name: stored for stored in await storage.list_segments()}
    rows = {row.name: row for row in await all_segments(database)}
    async with database.connection() as connection:
        unlisted = dict(await store.select_referred_names(connection))
    names = sorted({*files, *rows, *unlisted})
    for name in only or names:
        if name not in names:
            raise NotFound(f"there is no archive segment {name}")
        audited = await _look_at(
            database, storage, name, files.get(name), rows.get(name), unlisted.get(name, 0)
        )
        if audited is not None:
            yield audited


async def repair(database: Database, storage: Storage, audited: AuditedSegment) -> list[str]:
    """Repair one segment; the answer says what was done."""
    if audited.open:
        return []
    repairs = [_REPAIRS[problem] for problem in audited.problems if problem in _REPAIRS]
    return [await each(database, storage, audited) for each in repairs]


async def _finish(database: Database, storage: Storage, audited: AuditedSegment) -> str:
    await finish_deletion(database, storage, audited.segment)
    return "deletion finished"


async def _delete(database: Database, storage: Storage, audited: AuditedSegment) -> str:
    if await size_of(storage, audited.segment) is not None:
        return "left alone: its file is there now"
    dropped = audited.references
    gone = await delete_segment(
        database,
        storage,
        audited.segment,
        drop_references=SegmentProblem.MISSING in audited.problems,
    )
    if not gone:
        return "left alone: it is in use now"
    return f"row and {dropped} reference(s) deleted" if dropped else "row deleted"


async def _delete_file(_: Database, storage: Storage, audited: AuditedSegment) -> str:
    await storage.delete(audited.segment)
    return "file deleted"


async def _forget(database: Database, _: Storage, audited: AuditedSegment) -> str:
    dropped = await database.run(store.drop_references, audited.segment)
    return f"{dropped} reference(s) deleted"


async def _forget_broken(database: Database, _: Storage, audited: AuditedSegment) -> str:
    dropped = await database.run(store.drop_references_at, audited.broken)
    return f"{dropped} reference(s) deleted"


async def _register(database: Database, _: Storage, audited: AuditedSegment) -> str:
    async with database.transaction() as connection:
        owner = parse_segment_name(audited.segment).owner
        await store.register_segment(connection, audited.segment, job_of(owner))
        growth = SegmentGrowth(audited.segment, audited.bytes, audited.references)
        await store.grow_segments(connection, [growth])
        await store.close_segment(connection, audited.segment)
    return "row added"


_REPAIRS = {
    SegmentProblem.GOING: _finish,
    SegmentProblem.UNWRITTEN: _delete,
    SegmentProblem.MISSING: _delete,
    SegmentProblem.ORPHAN: _delete_file,
    SegmentProblem.UNLISTED: _register,
    SegmentProblem.UNKNOWN: _forget,
    SegmentProblem.BROKEN: _forget_broken,
}


async def _look_at(
    database: Database,
    storage: Storage,
    name: str,
    file: StoredSegment | None,
    row: SegmentRow | None,
    unlisted: int,
) -> AuditedSegment | None:
    if row is not None and row.going_at is not None:
        return AuditedSegment(segment=name, bytes=row.bytes, problems=(SegmentProblem.GOING,))
    if file is None:
        return await _without_file(storage, name, row, unlisted)
    if row is None and not unlisted:
        return await _orphan(database, file)
    return await _read(database, storage, file, row)


async def _without_file(
    storage: Storage, name: str, row: SegmentRow | None, unlisted: int
) -> AuditedSegment | None:
    if row is None:
        return AuditedSegment(segment=name, references=unlisted, problems=(SegmentProblem.UNKNOWN,))
    if row.open and not row.references:
        return AuditedSegment(segment=name, open=True)
    if await size_of(storage, name) is not None:
        return None  # written since the files were listed
    problem = SegmentProblem.MISSING if row.references else SegmentProblem.UNWRITTEN
    return AuditedSegment(
        segment=name, references=row.references, open=row.open, problems=(problem,)
    )


async def _orphan(database: Database, file: StoredSegment) -> AuditedSegment | None:
    if datetime.now(UTC) - file.modified < ORPHAN_AGE or await _may_be_written(database, file.name):
        return None
    return AuditedSegment(segment=file.name, bytes=file.size, problems=(SegmentProblem.ORPHAN,))


async def _may_be_written(database: Database, name: str) -> bool:
    segment = parse_segment_name(name)
    job_id = job_of(segment.owner)
    if job_id is None:
        return False
    return await database.run(store.lease_is_current, job_id, segment.lease)


async def _read(
    database: Database, storage: Storage, file: StoredSegment, row: SegmentRow | None
) -> AuditedSegment | None:
    # asked before the file is read: every reference that is known now was safely written before
    references = await database.run(store.select_references, file.name)
    scan = SegmentScan(storage, file.name)
    try:
        intact = {ref: record.is_intact async for ref, record in scan}
    except NotFound:
        return None  # deleted since it was listed
    # a scan ends at the first frame it cannot read; references reach behind that
    broken = [ref for ref in references if not await _readable(storage, ref, intact)]
    torn = scan.tail is not None and not any(ref.end > scan.tail.offset for ref in references)
    is_open = row is not None and row.open
    damaged = not all(intact.values()) or (scan.tail is not None and not torn)
    found = {
        SegmentProblem.UNLISTED: row is None,
        SegmentProblem.DAMAGED: damaged and bool(broken),
        SegmentProblem.UNUSED_DAMAGED: damaged and not broken,
        SegmentProblem.BROKEN: bool(broken),
        # the tail of a segment that is being written is only not finished yet
        SegmentProblem.TORN: torn and not is_open,
    }
    return AuditedSegment(
        segment=file.name,
        bytes=file.size,
        records=len(intact),
        references=len(references),
        open=is_open,
        problems=tuple(problem for problem, is_so in found.items() if is_so),
        broken=tuple(broken),
        detail=scan.tail.reason if scan.tail and not is_open else None,
    )


async def _readable(storage: Storage, ref: ArchiveRef, intact: Mapping[ArchiveRef, bool]) -> bool:
    if ref in intact:
        return intact[ref]
    try:
        await read_record(storage, ref)
    except (DamagedRecord, NotFound):
        return False
    return True


async def audit_sample(
    database: Database, storage: Storage, size: int
) -> tuple[int, dict[ArchiveRef, str]]:
    """Read some records that rows refer to, from as many segments as possible.

    The answer is the number of records, and why some of them cannot be read.
    """
    async with database.connection() as connection:
        names = await store.select_some_segments(connection, limit=size)
        each = -(-size // max(1, len(names)))
        refs = (await store.select_some_references(connection, names, each=each))[:size]
    problems = {ref: await _problem(database, storage, ref) for ref in refs}
    return len(refs), {ref: problem for ref, problem in problems.items() if problem is not None}


async def _problem(database: Database, storage: Storage, ref: ArchiveRef) -> str | None:
    try:
        await read_record(storage, ref)
    except (ArchiveError, NotFound) as error:
        # merged or forgotten since it was listed: nothing refers to it any more
        async with database.connection() as connection:
            return error.message if await store.is_referred_to(connection, ref) else None
    return None
