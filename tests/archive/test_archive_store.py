"""No row refers to deleted bytes, whichever process dies when; nothing stays for ever."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from archived_job import ArchivedJob, Settled, html, rows_of, select_refs, start_job
from forager.archive import store
from forager.archive.audit import Finding, Trouble, audit, repair
from forager.archive.deletion import (
    clean_up_archive,
    delete_segment,
    finish_deletions,
    growth_of,
    plan_prune,
    prune,
)
from forager.archive.reader import read_response
from forager.archive.record import StorageFull
from forager.archive.retention import Policy, Reason
from forager.archive.segment import ArchiveRef, Growth, parse_ref
from forager.archive.storage import Storage, open_storage
from forager.archive.store import merges
from forager.db.database import Database
from forager.errors import DiskFull, InvalidInput, NotFound
from forager.jobs.queue import Queue
from forager.settings import Settings

HERE = Path(__file__).parent
LATE_NAME = "2026/03/01/worker-1-0000.warc.zst"


@pytest.fixture
def folder(settings: Settings) -> Path:
    return settings.home / "archive"


@pytest.fixture
def storage(folder: Path) -> Storage:
    return open_storage(folder)


@pytest.fixture
async def job(database: Database, storage: Storage, queue: Queue) -> AsyncIterator[ArchivedJob]:
    job = await start_job(database, storage, queue)
    yield job
    await job.writer.close()


async def finished(job: ArchivedJob, pages: int = 3) -> list[ArchiveRef]:
    refs = await job.settle([html(number) for number in range(pages)])
    await job.end()
    return refs


async def segment_row(database: Database, name: str) -> Any:
    async with database.connection() as connection:
        return await store.select_segment(connection, name)


async def findings(database: Database, storage: Storage) -> list[Finding]:
    return [finding async for finding in audit(database, storage)]


async def troubles(database: Database, storage: Storage) -> list[tuple[Trouble, ...]]:
    return [finding.troubles for finding in await findings(database, storage)]


async def repair_all(database: Database, storage: Storage) -> list[list[str]]:
    return [await repair(database, storage, found) for found in await findings(database, storage)]


async def age_segments(database: Database, days: float) -> None:
    await rows_of(
        database,
        "UPDATE archive_segments SET written_at = now() - %s * interval '1 day' RETURNING name",
        days,
    )


# --- writing -------------------------------------------------------------------------------------


def test_a_full_archive_makes_work_wait() -> None:
    assert issubclass(StorageFull, DiskFull)


def test_growth_is_one_entry_for_each_segment() -> None:
    refs = [ArchiveRef("b", 0, 5), ArchiveRef("a", 10, 5), ArchiveRef("a", 15, 7)]
    assert growth_of(refs) == [Growth("a", 22, 2), Growth("b", 5, 1)]


async def test_a_commit_in_a_pipeline_counts_bytes_and_records(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    [first] = await job.settle([html(1)])
    await job.settle([html(2), html(3), Settled("https://docs.example.org/x", "failed")])
    row = await segment_row(database, first.segment)
    assert (row.job_id, row.lease, row.records, row.references) == (job.id, 1, 3, 3)
    assert row.bytes == await storage.size(first.segment)
    assert row.open


async def test_a_row_that_is_registered_twice_stays_one(
    database: Database, job: ArchivedJob
) -> None:
    await job.register(LATE_NAME)
    await job.register(LATE_NAME)
    assert len(await rows_of(database, "SELECT name FROM archive_segments")) == 1


async def test_a_segment_without_a_job_is_open_until_it_is_closed(database: Database) -> None:
    async with database.connection() as connection:
        await store.register_segment(connection, LATE_NAME, None)
        assert (await segment_row(database, LATE_NAME)).open
        await store.close_segment(connection, LATE_NAME)
    assert not (await segment_row(database, LATE_NAME)).open


async def test_every_table_that_refers_to_segments_is_known_and_indexed(
    database: Database,
) -> None:
    referring = await rows_of(
        database,
        """
        SELECT c.relname,
               array_agg(a.attname ORDER BY a.attname),
               EXISTS (SELECT FROM pg_index i
                        WHERE i.indrelid = c.oid
                          AND pg_get_indexdef(i.indexrelid, 1, true) = 'segment')
          FROM pg_class c
          JOIN pg_attribute a
            ON a.attrelid = c.oid
           AND a.attname IN ('segment', 'segment_offset', 'segment_length')
         WHERE c.relkind = 'r'
         GROUP BY c.oid
        """,
    )
    async with database.connection() as connection:
        known = await store.referring_tables(connection)
    assert sorted(f'"{table}"' for table, *_ in referring) == [table.as_string() for table in known]
    for _, columns, indexed in referring:
        assert columns == ["segment", "segment_length", "segment_offset"]
        assert indexed


def test_references_as_text() -> None:
    ref = ArchiveRef(LATE_NAME, 12, 345)
    assert parse_ref(str(ref)) == ref
    for wrong in ("", "x:1:2", LATE_NAME, f"{LATE_NAME}:1", f"{LATE_NAME}:-1:5", f"{ref}:6"):
        with pytest.raises(InvalidInput):
            parse_ref(wrong)


# --- deleting ------------------------------------------------------------------------------------


async def test_a_manifest_keeps_its_segments_when_the_job_is_forgotten(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    ref, *_ = await finished(job)
    await rows_of(
        database,
        "INSERT INTO generation_documents"
        " SELECT 1, url_hash, 1, NULL, NULL, NULL, segment, segment_offset, segment_length, now()"
        " FROM crawl_visited LIMIT 1 RETURNING 1",
    )
    await rows_of(database, "DELETE FROM crawl_visited RETURNING url")
    assert not await delete_segment(database, storage, ref.segment)
    assert (await segment_row(database, ref.segment)).references == 1
    assert await troubles(database, storage) == [()]
    assert await delete_segment(database, storage, ref.segment, drop_references=True)
    left = await rows_of(database, "SELECT segment, segment_offset FROM generation_documents")
    assert left == [(None, None)]


async def test_what_is_referred_to_stays(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    ref, *_ = await finished(job)
    assert not await delete_segment(database, storage, ref.segment)
    assert (await read_response(storage, ref)).status == 200


async def test_what_a_job_may_still_write_stays(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    [ref] = await job.archive([html(1)])
    assert not await delete_segment(database, storage, ref.segment, drop_references=True)
    await job.queue.pause(job.id)
    assert not await delete_segment(database, storage, ref.segment, drop_references=True)
    await job.queue.cancel(job.id)
    assert await delete_segment(database, storage, ref.segment)
    assert await segment_row(database, ref.segment) is None
    assert await storage.list_segments() == []


async def test_a_reference_that_is_being_committed_saves_its_segment(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    pages = [html(1)]
    refs = await job.archive(pages)
    async with database.transaction() as connection:
        await job.commit(connection, pages, refs)
        # it waits for the commit: until then the lease is current, afterwards the row is there
        cancelled = asyncio.create_task(job.queue.cancel(job.id))
        assert not await delete_segment(database, storage, refs[0].segment)
    await cancelled
    assert not await delete_segment(database, storage, refs[0].segment)
    assert (await read_response(storage, refs[0])).status == 200


async def test_dropped_references_are_gone_before_the_file_is(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    ref, *_ = await finished(job)
    assert await delete_segment(database, storage, ref.segment, drop_references=True)
    assert await select_refs(database) == []
    assert len(await rows_of(database, "SELECT url FROM crawl_visited")) == 3


@pytest.mark.parametrize("moment", ["before-file", "after-file"])
async def test_a_clean_up_that_is_killed_is_finished_by_the_next(
    database: Database,
    database_url: str,
    storage: Storage,
    folder: Path,
    job: ArchivedJob,
    moment: str,
) -> None:
    ref, *_ = await finished(job)
    child = await asyncio.create_subprocess_exec(
        sys.executable, HERE / "archive_reaper.py", database_url, folder, ref.segment, moment
    )
    assert await child.wait() == -signal.SIGKILL
    assert await select_refs(database) == []
    assert (folder / ref.segment).exists() == (moment == "before-file")
    assert await troubles(database, storage) == [(Trouble.GOING,)]
    assert await finish_deletions(database, storage) == [ref.segment]
    assert await findings(database, storage) == []
    assert not (folder / ref.segment).exists()


async def test_many_clean_ups_at_once(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    await finished(job)
    await rows_of(database, "DELETE FROM crawl_visited RETURNING url")
    plan = await plan_prune(database, Policy())
    await asyncio.gather(*(prune(database, storage, plan.delete) for _ in range(4)))
    assert await findings(database, storage) == []


# --- retention -----------------------------------------------------------------------------------


async def test_upkeep_deletes_what_nothing_refers_to(
    database: Database, settings: Settings, storage: Storage, job: ArchivedJob
) -> None:
    await finished(job)
    assert (await clean_up_archive(database, settings)).deleted == []
    await rows_of(database, "DELETE FROM crawl_visited RETURNING url")
    pruned = await clean_up_archive(database, settings)
    assert [deletion.reason for deletion in pruned.deleted] == [Reason.UNREFERENCED]
    assert pruned.freed_bytes > 0
    assert await storage.list_segments() == []


async def test_limits_take_the_oldest_and_leave_what_is_running(
    database: Database, storage: Storage, queue: Queue
) -> None:
    old, young = [await start_job(database, storage, queue) for _ in range(2)]
    [gone, *_] = await finished(old)
    await age_segments(database, 40)
    [kept] = await young.settle([html(1)])
    await age_segments(database, 40)
    policy = Policy(max_bytes=0, drop_references=True)
    plan = await plan_prune(database, policy)
    assert [(d.segment.name, d.reason) for d in plan.delete] == [(gone.segment, Reason.SIZE)]
    pruned = await prune(database, storage, plan.delete)
    assert len(pruned.deleted) == 1
    assert await select_refs(database) == [(kept.segment, kept.offset, kept.length)]
    await young.writer.close()


async def test_upkeep_keeps_to_the_settings(
    database: Database, settings: Settings, storage: Storage, job: ArchivedJob
) -> None:
    await finished(job)
    await age_segments(database, 40)
    limited = settings.model_copy(update={"archive_max_age_days": 30.0})
    pruned = await clean_up_archive(database, limited)
    assert [deletion.reason for deletion in pruned.deleted] == [Reason.AGE]
    assert await storage.list_segments() == []


async def test_a_reference_that_came_after_the_plan_is_respected(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    refs = await finished(job)
    await rows_of(database, "UPDATE crawl_visited SET segment = NULL RETURNING url")
    plan = await plan_prune(database, Policy())
    await rows_of(database, "UPDATE crawl_visited SET segment = %s RETURNING url", refs[0].segment)
    pruned = await prune(database, storage, plan.delete)
    assert (len(pruned.deleted), len(pruned.spared)) == (0, 1)
    assert (await read_response(storage, refs[0])).status == 200


# --- verify and repair ---------------------------------------------------------------------------


async def test_a_good_archive_has_no_troubles(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    await job.settle([html(1), html(2)])
    [running] = await findings(database, storage)
    assert (running.ok, running.open, running.troubles) == (True, True, ())
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
    assert found.troubles == (Trouble.TORN,)
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
    assert found.troubles == (Trouble.DAMAGED, Trouble.BROKEN)
    assert found.broken == (bad,)
    assert not found.ok
    assert await repair(database, storage, found) == ["1 reference(s) deleted"]
    assert await select_refs(database) == [
        (ref.segment, ref.offset, ref.length) for ref in (good, behind)
    ]
    [found] = await findings(database, storage)
    assert (found.troubles, found.ok) == ((Trouble.UNUSED_DAMAGED,), True), "known, and harmless"


async def test_a_missing_file_takes_its_references_with_it(
    database: Database, storage: Storage, folder: Path, job: ArchivedJob
) -> None:
    ref, *_ = await finished(job)
    (folder / ref.segment).unlink()
    [found] = await findings(database, storage)
    assert (found.troubles, found.ok) == ((Trouble.MISSING,), False)
    assert await repair(database, storage, found) == ["row and 3 reference(s) deleted"]
    assert await select_refs(database) == []
    assert await findings(database, storage) == []


async def test_a_row_whose_file_was_never_written(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    await job.register(f"2026/03/01/{job.id}-{job.lease.number}-0009.warc.zst")
    assert await troubles(database, storage) == [()]
    await job.end()
    assert await troubles(database, storage) == [(Trouble.UNWRITTEN,)]
    assert await repair_all(database, storage) == [["row deleted"]]
    assert await findings(database, storage) == []


async def test_an_orphan_is_deleted_once_nobody_can_be_writing_it(
    database: Database, storage: Storage, folder: Path, job: ArchivedJob
) -> None:
    [ref] = await job.archive([html(1)])
    await rows_of(database, "DELETE FROM archive_segments RETURNING name")
    old = time.time() - 7200
    os.utime(folder / ref.segment, (old, old))
    assert await findings(database, storage) == []  # its lease is current
    await job.end()
    os.utime(folder / ref.segment)
    assert await findings(database, storage) == []  # it may have been written just now
    os.utime(folder / ref.segment, (old, old))
    assert await troubles(database, storage) == [(Trouble.ORPHAN,)]
    assert await repair_all(database, storage) == [["file deleted"]]
    assert await storage.list_segments() == []


async def test_a_file_that_rows_refer_to_gets_its_row_back(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    ref, *_ = await finished(job)
    await rows_of(database, "DELETE FROM archive_segments RETURNING name")
    assert await troubles(database, storage) == [(Trouble.UNLISTED,)]
    assert await repair_all(database, storage) == [["row added"]]
    row = await segment_row(database, ref.segment)
    assert (row.job_id, row.references, row.open) == (job.id, 3, False)
    assert await troubles(database, storage) == [()]


async def test_references_to_nothing_at_all(
    database: Database, storage: Storage, folder: Path, job: ArchivedJob
) -> None:
    ref, *_ = await finished(job)
    (folder / ref.segment).unlink()
    await rows_of(database, "DELETE FROM archive_segments RETURNING name")
    assert await troubles(database, storage) == [(Trouble.UNKNOWN,)]
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


async def test_a_clean_up_that_comes_to_nothing_drops_no_references(
    database: Database, storage: Storage, job: ArchivedJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref, *_ = await finished(job)
    drop = store.drop_references

    async def referred_to_meanwhile(connection: Any, segment: str) -> int:
        dropped = await drop(connection, segment)
        await rows_of(
            database,
            "INSERT INTO generation_documents"
            " SELECT 1, %s, 1, NULL, NULL, NULL, %s, 0, 1, now() RETURNING 1",
            b"late",
            segment,
        )
        return dropped

    monkeypatch.setattr(store, "drop_references", referred_to_meanwhile)
    assert not await delete_segment(database, storage, ref.segment, drop_references=True)
    assert len(await select_refs(database)) == 3
    assert (await read_response(storage, ref)).status == 200


async def test_what_a_merge_has_claimed_after_the_plan_stays(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    ref, *_ = await finished(job)
    plan = await plan_prune(database, Policy(max_bytes=0, drop_references=True))
    async with database.connection() as connection:
        assert await merges.claim_segments(connection, [ref.segment], seconds=600) == 1
    pruned = await prune(database, storage, plan.delete)
    assert (len(pruned.deleted), len(pruned.spared)) == (0, 1)
    assert (await read_response(storage, ref)).status == 200
