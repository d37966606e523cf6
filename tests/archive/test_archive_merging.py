"""Many small objects become few, and no row ever refers to bytes that are gone."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from obstore.store import LocalStore

from archived_job import ArchivedJob, Settled, html, select_refs, start_job
from forager.archive import merging, store
from forager.archive.audit import AuditedSegment, SegmentProblem, audit, repair
from forager.archive.deletion import find_orphans, plan_prune, prune
from forager.archive.merging import FEWEST, merge_segments, plan_merges
from forager.archive.objects import ObjectStorage
from forager.archive.reader import read_response
from forager.archive.retention import Policy, SmallSegment
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage, StoredSegment
from forager.archive.store import merges
from forager.db.database import Database
from forager.jobs.queue import Queue
from support.sql import execute

LIMIT = 1_000_000
OWNERS_OF_MERGED = "SELECT job_id FROM archive_segments WHERE name LIKE '%%/merged-%%' ORDER BY 1"
MERGER = Path(__file__).with_name("archive_merger.py")


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    return tmp_path / "bucket"


@pytest.fixture
def storage(bucket: Path) -> ObjectStorage:
    return ObjectStorage(LocalStore(bucket, mkdir=True))


async def commits(job: ArchivedJob, number: int) -> list[ArchiveRef]:
    """Of two pages each, and thereby one object each."""
    refs: list[ArchiveRef] = []
    for first in range(0, 2 * number, 2):
        refs += await job.settle([html(first), html(first + 1)])
    return refs


async def refs_of(database: Database) -> list[ArchiveRef]:
    return [ArchiveRef(*row) for row in await select_refs(database)]


async def bodies(database: Database, storage: Storage) -> dict[str, bytes]:
    found = {}
    for ref in await refs_of(database):
        response = await read_response(storage, ref)
        found[response.url] = response.body
    return found


async def clean_up(database: Database, storage: Storage) -> int:
    plan = await plan_prune(database, Policy())
    return len((await prune(database, storage, plan.delete)).deleted)


async def lapse(database: Database) -> None:
    """Let the time be over for which segments are kept, and merges given."""
    await execute(
        database,
        """
        UPDATE archive_segments
           SET keep_until = now(), created_at = created_at - interval '2 days'
        RETURNING name
        """,
    )


async def names(database: Database) -> set[str]:
    return {row[0] for row in await execute(database, "SELECT name FROM archive_segments")}


async def test_references_move_and_old_objects_go_later(
    database: Database, storage: ObjectStorage, queue: Queue
) -> None:
    job = await start_job(database, storage, queue)
    before = await commits(job, 6)
    await job.end()
    pages = await bodies(database, storage)

    merged = await merge_segments(database, storage, LIMIT)

    assert (merged.segments, merged.into) == (6, 1)
    after = await refs_of(database)
    assert len({ref.segment for ref in after}) == 1
    assert await bodies(database, storage) == pages
    # a reader with a reference from before still finds the record
    assert await clean_up(database, storage) == 0
    assert [(await read_response(storage, ref)).status for ref in before] == [200] * 12
    await lapse(database)
    assert await clean_up(database, storage) == 6
    assert [stored.name for stored in await storage.list_segments()] == [after[0].segment]
    assert await bodies(database, storage) == pages
    assert [finding.problems async for finding in audit(database, storage)] == [()]


async def test_a_merged_segment_is_its_jobs_and_as_old_as_its_youngest_page(
    database: Database, storage: ObjectStorage, queue: Queue
) -> None:
    job = await start_job(database, storage, queue)
    refs = await commits(job, 4)
    await job.end()
    async with database.connection() as connection:
        last = await store.select_segment(connection, refs[-1].segment)
        await merge_segments(database, storage, LIMIT)
        [ref, *_] = await refs_of(database)
        row = await store.select_segment(connection, ref.segment)
    assert last is not None
    assert row is not None
    assert (row.job_id, row.records, row.references, row.open) == (job.id, 8, 8, False)
    assert row.written_at == last.written_at
    assert row.bytes == await storage.size(ref.segment)


async def test_what_may_still_be_written_is_left_alone(
    database: Database, storage: ObjectStorage, queue: Queue
) -> None:
    job = await start_job(database, storage, queue)
    await commits(job, 5)
    assert (await merge_segments(database, storage, LIMIT)).into == 0
    await job.end()
    assert (await merge_segments(database, storage, LIMIT)).into == 1
    assert (await merge_segments(database, storage, LIMIT)).into == 0


async def test_a_reference_that_is_copied_late_keeps_the_old_object(
    database: Database, storage: ObjectStorage, queue: Queue
) -> None:
    job = await start_job(database, storage, queue)
    old, *_ = await commits(job, 4)
    await job.end()
    await merge_segments(database, storage, LIMIT)
    # another process read the reference before the merge, and writes it only now
    async with database.transaction() as connection:
        assert await store.lock_segments(connection, [old.segment]) == {old.segment}
        await connection.execute(
            """
            UPDATE crawl_visited SET segment = %s, segment_offset = %s, segment_length = %s
             WHERE url_hash = (SELECT min(url_hash) FROM crawl_visited)
            """,
            (old.segment, old.offset, old.length),
        )
    await lapse(database)
    assert await clean_up(database, storage) == 3
    assert len(await bodies(database, storage)) >= 7


async def test_two_mergers_do_not_disturb_each_other(
    database: Database, storage: ObjectStorage, queue: Queue
) -> None:
    job = await start_job(database, storage, queue)
    await commits(job, 8)
    await job.end()
    pages = await bodies(database, storage)
    done = await asyncio.gather(*(merge_segments(database, storage, LIMIT) for _ in range(3)))
    assert sum(merged.into for merged in done) == 1
    assert await bodies(database, storage) == pages


@pytest.mark.parametrize("moment", ["before-put", "after-put", "before-commit", "after-commit"])
async def test_killed_anywhere_nothing_is_lost_and_nothing_stays(
    database: Database, storage: ObjectStorage, bucket: Path, queue: Queue, moment: str
) -> None:
    job = await start_job(database, storage, queue)
    await commits(job, 5)
    await job.end()
    pages = await bodies(database, storage)
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(MERGER), database.url, str(bucket), moment
    )
    assert await child.wait() == -signal.SIGKILL

    assert await bodies(database, storage) == pages
    await lapse(database)
    await merge_segments(database, storage, LIMIT)
    assert await bodies(database, storage) == pages
    await lapse(database)
    await clean_up(database, storage)
    assert await bodies(database, storage) == pages
    stored = {each.name for each in await storage.list_segments()}
    assert stored == await names(database) == {ref.segment for ref in await refs_of(database)}
    assert await find_orphans(database, storage) == []


async def test_a_merge_that_was_given_up_moves_nothing(
    database: Database, storage: ObjectStorage, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a process that was frozen for a day between writing and switching."""
    job = await start_job(database, storage, queue)
    before = await commits(job, 4)
    await job.end()
    lock = merges.lock_referring_rows

    async def given_up_meanwhile(connection: Any, segments: Any) -> None:
        async with database.connection() as other:
            await merges.close_abandoned(other, "merged", seconds=-60)
        await lock(connection, segments)

    monkeypatch.setattr(merges, "lock_referring_rows", given_up_meanwhile)
    assert (await merge_segments(database, storage, LIMIT)).into == 0
    assert set(await refs_of(database)) == set(before)
    assert {ref.segment for ref in before} == await names(database)


async def test_leftovers_do_not_keep_newer_ones_from_being_merged(
    database: Database, storage: ObjectStorage, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "CHUNK", FEWEST)
    few, large, newer = [await start_job(database, storage, queue) for _ in range(3)]
    await commits(few, FEWEST - 1)
    for number in range(FEWEST):
        # so long that the fewest do not fit into one
        body = random.Random(number).randbytes(4000)
        await large.settle([Settled(f"https://docs.example.org/{number}", body=body)])
    await commits(newer, FEWEST)
    for job in (few, large, newer):
        await job.end()
    assert (await merge_segments(database, storage, 10_000)).segments == FEWEST
    assert [row[0] for row in await execute(database, OWNERS_OF_MERGED)] == [newer.id]


async def test_a_finished_merge_is_not_written_again_for_a_few_new_ones(
    database: Database, storage: ObjectStorage, queue: Queue
) -> None:
    async def more(number: int) -> None:
        job = await start_job(database, storage, queue)
        await commits(job, number)
        await job.end()
        # as of a worker, which continues while a job ends
        await execute(
            database,
            "UPDATE archive_segments SET job_id = NULL, worker_id = %s RETURNING name",
            UUID(int=1),
        )

    await more(FEWEST)
    assert (await merge_segments(database, storage, LIMIT)).segments == FEWEST
    await lapse(database)
    await more(FEWEST - 1)
    assert (await merge_segments(database, storage, LIMIT)).into == 0
    await more(1)
    assert (await merge_segments(database, storage, LIMIT)).segments == FEWEST
    for _ in range(FEWEST - 2):
        await more(FEWEST)
        await merge_segments(database, storage, LIMIT)
    await lapse(database)
    # as many merges as are worth it become one, and that is left alone
    assert (await merge_segments(database, storage, LIMIT)).segments == FEWEST
    await lapse(database)
    assert (await merge_segments(database, storage, LIMIT)).into == 0


async def test_a_merge_while_the_archive_is_verified_is_not_taken_for_lost(
    database: Database, storage: ObjectStorage, bucket: Path, queue: Queue
) -> None:
    class MergedAfterTheList(ObjectStorage):
        async def list_segments(self, prefix: str = "") -> list[StoredSegment]:
            listed = await super().list_segments(prefix)
            await merge_segments(database, storage, LIMIT)
            return listed

    job = await start_job(database, storage, queue)
    await commits(job, 4)
    await job.end()
    pages = await bodies(database, storage)

    found = [each async for each in audit(database, MergedAfterTheList(LocalStore(bucket)))]
    assert [finding.problems for finding in found] == [()] * 4

    # nor by one who came to that conclusion a moment earlier
    await lapse(database)
    [merged] = {ref.segment for ref in await refs_of(database)}
    for problem in (SegmentProblem.MISSING, SegmentProblem.UNWRITTEN):
        hasty = AuditedSegment(segment=merged, references=8, problems=(problem,))
        assert await repair(database, storage, hasty) == ["left alone: its file is there now"]
    assert await bodies(database, storage) == pages


# --- the plan ------------------------------------------------------------------------------------


def small(number: int, size: int, job: int = 1) -> SmallSegment:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    name = f"2026/03/01/{UUID(int=job)}-1-{number:04}.warc.zst"
    return SmallSegment(
        name=name,
        job_id=UUID(int=job),
        worker_id=None,
        bytes=size,
        records=1,
        created_at=at,
        written_at=at,
    )


def test_groups_stay_below_the_limit_and_within_one_owner() -> None:
    segments = [small(number, 30) for number in range(10)] + [small(n, 1, job=2) for n in range(5)]
    assert [[each.bytes for each in group] for group in plan_merges(segments, 120)] == [
        [30] * 4,
        [30] * 4,
        [1] * 5,
    ]


def test_a_few_are_not_worth_it() -> None:
    assert plan_merges([small(number, 1) for number in range(FEWEST - 1)], 100) == []
    assert plan_merges([], 100) == []
