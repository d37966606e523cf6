"""The queue over time, and jobs found by what a person remembers of them."""

from __future__ import annotations

from uuid import UUID

from forager.db.database import Database
from forager.db.ids import new_id
from forager.jobs.history import find_jobs, recent_jobs
from forager.jobs.job import NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue


async def move_back(database: Database, job_id: UUID, minutes: float) -> None:
    """Date the creation of a job back by some minutes."""
    async with database.connection() as connection:
        await connection.execute(
            """
            UPDATE crawl_jobs
               SET created_at = created_at - %(minutes)s * interval '1 minute',
                   completed_at = completed_at - %(minutes)s * interval '1 minute'
             WHERE id = %(id)s
            """,
            {"id": job_id, "minutes": minutes},
        )


async def test_recent_jobs_are_those_at_work_and_just_finished(
    database: Database, queue: Queue
) -> None:
    waiting, running, paused, cancelled, old = await queue.enqueue_many(
        [NewJob(kind="selftest", priority=place == 1) for place in range(5)]
    )
    await queue.claim(new_id(), kinds=["selftest"])
    await queue.pause(paused.id)
    for job in (cancelled, old):
        await queue.cancel(job.id)
    await move_back(database, old.id, 90)
    found = await recent_jobs(database)
    assert set(found) == {running.id, paused.id, cancelled.id}
    assert waiting.id not in found


async def test_jobs_are_found_by_source_address_and_id(database: Database, queue: Queue) -> None:
    crawl = {"urls": ["https://Docs.Example.org/guide"]}
    one = (await queue.enqueue(NewJob(kind="crawl", payload=crawl, source_id="handbook"))).job
    other = (await queue.enqueue(NewJob(kind="selftest", source_id="100%_sure"))).job
    for text in ("HANDBOOK", "example.org/GUIDE", str(one.id)[-12:]):
        assert [job.id for job in await find_jobs(database, text)] == [one.id]
    # what means something in a pattern means itself here
    assert [job.id for job in await find_jobs(database, "0%_s")] == [other.id]
    assert await find_jobs(database, "h%k") == []
    assert await find_jobs(database, "handbook", statuses=[Status.FAILED]) == []
    assert await find_jobs(database, "handbook", user_id=new_id()) == []
