"""Rows of segments are written and deleted; no row refers to deleted bytes."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from archive.archive_rows import findings, finished, segment_row, troubles
from archived_job import ArchivedJob, Settled, html, select_refs
from forager.archive import store
from forager.archive.audit import SegmentProblem
from forager.archive.deletion import delete_segment, finish_deletions, plan_prune, prune
from forager.archive.reader import read_response
from forager.archive.retention import Policy
from forager.archive.segment import ArchiveRef, SegmentGrowth, parse_ref
from forager.archive.storage import Storage
from forager.archive.warc_record import StorageFull
from forager.archive.writer import growth_of
from forager.db.database import Database
from forager.errors import DiskFull, InvalidInput
from support.sql import execute

FOLDER = Path(__file__).parent
LATE_NAME = "2026/03/01/worker-1-0000.warc.zst"


def test_a_full_archive_makes_work_wait() -> None:
    assert issubclass(StorageFull, DiskFull)


def test_growth_is_one_entry_for_each_segment() -> None:
    refs = [ArchiveRef("b", 0, 5), ArchiveRef("a", 10, 5), ArchiveRef("a", 15, 7)]
    assert growth_of(refs) == [SegmentGrowth("a", 22, 2), SegmentGrowth("b", 5, 1)]


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
    assert len(await execute(database, "SELECT name FROM archive_segments")) == 1


async def test_a_segment_without_a_job_is_open_until_it_is_closed(database: Database) -> None:
    async with database.connection() as connection:
        await store.register_segment(connection, LATE_NAME, None)
        assert (await segment_row(database, LATE_NAME)).open
        await store.close_segment(connection, LATE_NAME)
    assert not (await segment_row(database, LATE_NAME)).open


async def test_every_table_that_refers_to_segments_is_known_and_indexed(database: Database) -> None:
    referring = await execute(
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


async def test_a_manifest_keeps_its_segments_when_the_job_is_forgotten(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    ref, *_ = await finished(job)
    await execute(
        database,
        "INSERT INTO generation_documents"
        " SELECT 1, url_hash, 1, NULL, NULL, NULL, segment, segment_offset, segment_length, now()"
        " FROM crawl_visited LIMIT 1 RETURNING 1",
    )
    await execute(database, "DELETE FROM crawl_visited RETURNING url")
    assert not await delete_segment(database, storage, ref.segment)
    assert (await segment_row(database, ref.segment)).references == 1
    assert await troubles(database, storage) == [()]
    assert await delete_segment(database, storage, ref.segment, drop_references=True)
    left = await execute(database, "SELECT segment, segment_offset FROM generation_documents")
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
    assert len(await execute(database, "SELECT url FROM crawl_visited")) == 3


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
        sys.executable, FOLDER / "archive_reaper.py", database_url, folder, ref.segment, moment
    )
    assert await child.wait() == -signal.SIGKILL
    assert await select_refs(database) == []
    assert (folder / ref.segment).exists() == (moment == "before-file")
    assert await troubles(database, storage) == [(SegmentProblem.GOING,)]
    assert await finish_deletions(database, storage) == [ref.segment]
    assert await findings(database, storage) == []
    assert not (folder / ref.segment).exists()


async def test_many_clean_ups_at_once(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    await finished(job)
    await execute(database, "DELETE FROM crawl_visited RETURNING url")
    plan = await plan_prune(database, Policy())
    await asyncio.gather(*(prune(database, storage, plan.delete) for _ in range(4)))
    assert await findings(database, storage) == []
