"""`archive verify` finds every damage, and repairs it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from archive.archive_rows import findings, finished, segment_row, troubles
from archived_job import ArchivedJob, html, select_refs
from forager.archive.audit import SegmentProblem, audit, repair
from forager.archive.storage import Storage
from forager.db.database import Database
from forager.errors import NotFound
from support.sql import execute


async def repair_all(database: Database, storage: Storage) -> list[list[str]]:
    return [await repair(database, storage, found) for found in await findings(database, storage)]


async def test_a_good_archive_has_no_troubles(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    await job.settle([html(1), html(2)])
    [running] = await findings(database, storage)
    assert (running.ok, running.open, running.problems) == (True, True, ())
    await job.end()
    [found] = await findings(database, storage)
    assert (found.ok, found.open, found.records, found.references) == (True, False, 3, 2)
    assert not found.can_be_repaired


async def test_a_torn_tail_is_reported_and_harms_nobody(
    database: Database, storage: Storage, folder: Path, job: ArchivedJob
) -> None:
    refs = await finished(job)
    with (folder / refs[0].segment).open("ab") as file:
        file.write(b"\x28\xb5\x2f\xfd half a frame")
    [found] = await findings(database, storage)
    assert found.problems == (SegmentProblem.TORN,)
    assert found.ok
    assert await repair(database, storage, found) == []


async def test_one_damaged_record_does_not_discredit_those_behind_it(
    database: Database, storage: Storage, folder: Path, job: ArchivedJob
) -> None:
    good, bad, behind = await finished(job)
    path = folder / bad.segment
    data = bytearray(path.read_bytes())
    data[bad.offset + bad.length // 2] ^= 1
    path.write_bytes(data)
    [found] = await findings(database, storage)
    assert found.problems == (SegmentProblem.DAMAGED, SegmentProblem.BROKEN)
    assert found.broken == (bad,)
    assert not found.ok
    assert await repair(database, storage, found) == ["1 reference(s) deleted"]
    assert await select_refs(database) == [
        (ref.segment, ref.offset, ref.length) for ref in (good, behind)
    ]
    [found] = await findings(database, storage)
    assert (found.problems, found.ok) == ((SegmentProblem.UNUSED_DAMAGED,), True), (
        "known, and harmless"
    )


async def test_a_missing_file_takes_its_references_with_it(
    database: Database, storage: Storage, folder: Path, job: ArchivedJob
) -> None:
    ref, *_ = await finished(job)
    (folder / ref.segment).unlink()
    [found] = await findings(database, storage)
    assert (found.problems, found.ok) == ((SegmentProblem.MISSING,), False)
    assert await repair(database, storage, found) == ["row and 3 reference(s) deleted"]
    assert await select_refs(database) == []
    assert await findings(database, storage) == []


async def test_a_row_whose_file_was_never_written(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    await job.register(f"2026/03/01/{job.id}-{job.lease.number}-0009.warc.zst")
    assert await troubles(database, storage) == [()]
    await job.end()
    assert await troubles(database, storage) == [(SegmentProblem.UNWRITTEN,)]
    assert await repair_all(database, storage) == [["row deleted"]]
    assert await findings(database, storage) == []


async def test_an_orphan_is_deleted_once_nobody_can_be_writing_it(
    database: Database, storage: Storage, folder: Path, job: ArchivedJob
) -> None:
    [ref] = await job.archive([html(1)])
    await execute(database, "DELETE FROM archive_segments RETURNING name")
    old = time.time() - 7200
    os.utime(folder / ref.segment, (old, old))
    assert await findings(database, storage) == []  # its lease is current
    await job.end()
    os.utime(folder / ref.segment)
    assert await findings(database, storage) == []  # it may have been written just now
    os.utime(folder / ref.segment, (old, old))
    assert await troubles(database, storage) == [(SegmentProblem.ORPHAN,)]
    assert await repair_all(database, storage) == [["file deleted"]]
    assert await storage.list_segments() == []


async def test_a_file_that_rows_refer_to_gets_its_row_back(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    ref, *_ = await finished(job)
    await execute(database, "DELETE FROM archive_segments RETURNING name")
    assert await troubles(database, storage) == [(SegmentProblem.UNLISTED,)]
    assert await repair_all(database, storage) == [["row added"]]
    row = await segment_row(database, ref.segment)
    assert (row.job_id, row.references, row.open) == (job.id, 3, False)
    assert await troubles(database, storage) == [()]


async def test_references_to_nothing_at_all(
    database: Database, storage: Storage, folder: Path, job: ArchivedJob
) -> None:
    ref, *_ = await finished(job)
    (folder / ref.segment).unlink()
    await execute(database, "DELETE FROM archive_segments RETURNING name")
    assert await troubles(database, storage) == [(SegmentProblem.UNKNOWN,)]
    assert await repair_all(database, storage) == [["3 reference(s) deleted"]]
    assert await findings(database, storage) == []


async def test_only_the_segments_asked_for_are_read(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    ref, *_ = await finished(job)
    found = [finding async for finding in audit(database, storage, [ref.segment])]
    assert [finding.segment for finding in found] == [ref.segment]
    with pytest.raises(NotFound):
        [finding async for finding in audit(database, storage, ["nonsense"])]
