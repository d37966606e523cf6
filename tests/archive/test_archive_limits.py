"""Upkeep deletes what is old or unused, and keeps what is running."""

from __future__ import annotations

from typing import Any

import pytest

from archive.archive_rows import finished
from archived_job import ArchivedJob, html, select_refs, start_job
from forager.archive import store
from forager.archive.deletion import clean_up_archive, delete_segment, plan_prune, prune
from forager.archive.reader import read_response
from forager.archive.retention import Policy, RetentionReason
from forager.archive.storage import Storage
from forager.archive.store import merges
from forager.db.database import Database
from forager.jobs.queue import Queue
from forager.settings import Settings
from support.sql import execute


async def age_segments(database: Database, days: float) -> None:
    await execute(
        database,
        "UPDATE archive_segments SET written_at = now() - %s * interval '1 day' RETURNING name",
        days,
    )


async def test_upkeep_deletes_what_nothing_refers_to(
    database: Database, settings: Settings, storage: Storage, job: ArchivedJob
) -> None:
    await finished(job)
    assert (await clean_up_archive(database, settings)).deleted == []
    await execute(database, "DELETE FROM crawl_visited RETURNING url")
    pruned = await clean_up_archive(database, settings)
    assert [deletion.reason for deletion in pruned.deleted] == [RetentionReason.UNREFERENCED]
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
    assert [(d.segment.name, d.reason) for d in plan.delete] == [
        (gone.segment, RetentionReason.SIZE)
    ]
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
    assert [deletion.reason for deletion in pruned.deleted] == [RetentionReason.AGE]
    assert await storage.list_segments() == []


async def test_a_reference_that_came_after_the_plan_is_respected(
    database: Database, storage: Storage, job: ArchivedJob
) -> None:
    refs = await finished(job)
    await execute(database, "UPDATE crawl_visited SET segment = NULL RETURNING url")
    plan = await plan_prune(database, Policy())
    await execute(database, "UPDATE crawl_visited SET segment = %s RETURNING url", refs[0].segment)
    pruned = await prune(database, storage, plan.delete)
    assert (len(pruned.deleted), len(pruned.spared)) == (0, 1)
    assert (await read_response(storage, refs[0])).status == 200


async def test_a_clean_up_that_comes_to_nothing_drops_no_references(
    database: Database, storage: Storage, job: ArchivedJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref, *_ = await finished(job)
    drop = store.drop_references

    async def referred_to_meanwhile(connection: Any, segment: str) -> int:
        dropped = await drop(connection, segment)
        await execute(
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
