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
from forager.archive.record import ArchiveError, DamagedRecord
from forager.archive.retention import SegmentRow
from forager.archive.segment import ArchiveRef, Growth, job_of, parse_segment_name
from forager.archive.storage import Storage, StoredSegment, size_of
from forager.db.database import Database
from forager.errors import NotFound

# the file of a runner that has lost its lease may still grow for a moment
ORPHAN_AGE = timedelta(hours=1)


class Trouble(StrEnum):
    """Problems of a segment."""

    TORN = "its end is torn: a writer was killed; nothing refers to that end"
    DAMAGED = "records are damaged"
    UNUSED_DAMAGED = "records are damaged; nothing refers to them (any more)"
    BROKEN = "rows refer to records that cannot be read"
    UNWRITTEN = "it has a row but no file, and nothing refers to it"
    MISSING = "its file is missing, and rows refer to it"
    ORPHAN = "it has a file but no row, and nothing refers to it"
    UNLISTED = "it has a file but no row, and rows refer to it"
    UNKNOWN = "it has neither file nor row, but rows refer to it"
    GOING = "a clean-up died while deleting it"

    @property
    def harmless(self) -> bool:
        """Whether no referenced record is lost."""
        return self not in (Trouble.DAMAGED, Trouble.BROKEN, Trouble.MISSING, Trouble.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result for one segment."""

    segment: str
    bytes: int = 0
    records: int = 0
    references: int = 0
    open: bool = False
    troubles: tuple[Trouble, ...] = ()
    broken: tuple[ArchiveRef, ...] = ()
    detail: str | None = None

    @property
    def ok(self) -> bool:
        return all(trouble.harmless for trouble in self.troubles)

    @property
    def can_be_repaired(self) -> bool:
        return not self.open and any(trouble in _REPAIRS for trouble in self.troubles)


async def audit(
    database: Database, storage: Storage, only: Collection[str] = ()
) -> AsyncIterator[Finding]:
    """Read every segment, or only some, and say what is wrong with each."""
    files = {stored.name: stored for stored in await storage.list_segments()}
    rows = {row.name: row for row in await all_segments(database)}
    async with database.connection() as connection:
        unlisted = dict(await store.select_referred_names(connection))
    names = sorted({*files, *rows, *unlisted})
    for name in only or names:
        if name not in names:
            raise NotFound(f"there is no archive segment {name}")
        finding = await _look_at(
            database, storage, name, files.get(name), rows.get(name), unlisted.get(name, 0)
        )
        if finding is not None:
            yield finding


async def repair(database: Database, storage: Storage, finding: Finding) -> list[str]:
    """Repair one segment; the answer says what was done."""
    if finding.open:
        return []
    repairs = [_REPAIRS[trouble] for trouble in finding.troubles if trouble in _REPAIRS]
    return [await each(database, storage, finding) for each in repairs]


async def _finish(database: Database, storage: Storage, finding: Finding) -> str:
    await finish_deletion(database, storage, finding.segment)
    return "deletion finished"


async def _delete(database: Database, storage: Storage, finding: Finding) -> str:
    if await size_of(storage, finding.segment) is not None:
        return "left alone: its file is there now"
    dropped = finding.references
    gone = await delete_segment(
        database, storage, finding.segment, drop_references=Trouble.MISSING in finding.troubles
    )
    if not gone:
        return "left alone: it is in use now"
    return f"row and {dropped} reference(s) deleted" if dropped else "row deleted"


async def _delete_file(_: Database, storage: Storage, finding: Finding) -> str:
    await storage.delete(finding.segment)
    return "file deleted"


async def _forget(database: Database, _: Storage, finding: Finding) -> str:
    dropped = await database.run(store.drop_references, finding.segment)
    return f"{dropped} reference(s) deleted"


async def _forget_broken(database: Database, _: Storage, finding: Finding) -> str:
    dropped = await database.run(store.drop_references_at, finding.broken)
    return f"{dropped} reference(s) deleted"


async def _adopt(database: Database, _: Storage, finding: Finding) -> str:
    async with database.transaction() as connection:
        owner = parse_segment_name(finding.segment).owner
        await store.register_segment(connection, finding.segment, job_of(owner))
        growth = Growth(finding.segment, finding.bytes, finding.references)
        await store.grow_segments(connection, [growth])
        await store.close_segment(connection, finding.segment)
    return "row added"


_REPAIRS = {
    Trouble.GOING: _finish,
    Trouble.UNWRITTEN: _delete,
    Trouble.MISSING: _delete,
    Trouble.ORPHAN: _delete_file,
    Trouble.UNLISTED: _adopt,
    Trouble.UNKNOWN: _forget,
    Trouble.BROKEN: _forget_broken,
}


async def _look_at(
    database: Database,
    storage: Storage,
    name: str,
    file: StoredSegment | None,
    row: SegmentRow | None,
    unlisted: int,
) -> Finding | None:
    if row is not None and row.going_at is not None:
        return Finding(segment=name, bytes=row.bytes, troubles=(Trouble.GOING,))
    if file is None:
        return await _without_file(storage, name, row, unlisted)
    if row is None and not unlisted:
        return await _orphan(database, file)
    return await _read(database, storage, file, row)


async def _without_file(
    storage: Storage, name: str, row: SegmentRow | None, unlisted: int
) -> Finding | None:
    if row is None:
        return Finding(segment=name, references=unlisted, troubles=(Trouble.UNKNOWN,))
    if row.open and not row.references:
        return Finding(segment=name, open=True)
    if await size_of(storage, name) is not None:
        return None  # written since the files were listed
    trouble = Trouble.MISSING if row.references else Trouble.UNWRITTEN
    return Finding(segment=name, references=row.references, open=row.open, troubles=(trouble,))


async def _orphan(database: Database, file: StoredSegment) -> Finding | None:
    if datetime.now(UTC) - file.modified < ORPHAN_AGE or await _may_be_written(database, file.name):
        return None
    return Finding(segment=file.name, bytes=file.size, troubles=(Trouble.ORPHAN,))


async def _may_be_written(database: Database, name: str) -> bool:
    segment = parse_segment_name(name)
    job_id = job_of(segment.owner)
    if job_id is None:
        return False
    return await database.run(store.lease_is_current, job_id, segment.lease)


async def _read(
    database: Database, storage: Storage, file: StoredSegment, row: SegmentRow | None
) -> Finding | None:
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
        Trouble.UNLISTED: row is None,
        Trouble.DAMAGED: damaged and bool(broken),
        Trouble.UNUSED_DAMAGED: damaged and not broken,
        Trouble.BROKEN: bool(broken),
        # the tail of a segment that is being written is only not finished yet
        Trouble.TORN: torn and not is_open,
    }
    return Finding(
        segment=file.name,
        bytes=file.size,
        records=len(intact),
        references=len(references),
        open=is_open,
        troubles=tuple(trouble for trouble, is_so in found.items() if is_so),
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


@dataclass(frozen=True, slots=True)
class CheckedRecord:
    """One reference, and what is wrong with the record there."""

    ref: ArchiveRef
    problem: str | None


async def sample_references(
    database: Database, storage: Storage, size: int
) -> AsyncIterator[CheckedRecord]:
    """Read some records that rows refer to, from as many segments as possible."""
    async with database.connection() as connection:
        names = await store.select_some_segments(connection, limit=size)
        each = -(-size // max(1, len(names)))
        refs = await store.select_some_references(connection, names, each=each)
    for ref in refs[:size]:
        yield CheckedRecord(ref, await _problem(database, storage, ref))


async def _problem(database: Database, storage: Storage, ref: ArchiveRef) -> str | None:
    try:
        await read_record(storage, ref)
    except (ArchiveError, NotFound) as error:
        # merged or forgotten since it was listed: nothing refers to it any more
        async with database.connection() as connection:
            return error.message if await store.is_referred_to(connection, ref) else None
    return None
