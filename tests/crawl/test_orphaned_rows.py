"""What a deleted job leaves behind goes, and nothing else."""

from __future__ import annotations

from uuid import UUID

from forager.crawl.clean_up import delete_orphaned_rows
from forager.db.database import Database
from forager.db.ids import new_id
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue


async def leave_rows(database: Database, job_id: UUID, rows: int) -> None:
    async with database.connection() as connection:
        await connection.execute(
            """
            INSERT INTO crawl_visited (job_id, url_hash, url, outcome, depth, via)
            SELECT %s, sha256(n::text::bytea), 'http://a.example/' || n, 'fetched', 0, 'seed'
              FROM generate_series(1, %s) n
            """,
            (job_id, rows),
        )
        await connection.execute(
            """
            INSERT INTO crawl_frontier (job_id, depth, seq, url_hash, url, via)
            SELECT %s, 1, n, sha256(n::text::bytea), 'http://a.example/' || n, 'link'
              FROM generate_series(1, %s) n
            """,
            (job_id, rows),
        )


async def count(database: Database, job_id: UUID) -> int:
    async with database.connection() as connection:
        cursor = await connection.execute(
            """
            SELECT (SELECT count(*) FROM crawl_visited WHERE job_id = %(id)s)
                 + (SELECT count(*) FROM crawl_frontier WHERE job_id = %(id)s)
            """,
            {"id": job_id},
        )
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def test_rows_of_jobs_that_are_gone_are_deleted(database: Database, queue: Queue) -> None:
    living = (await queue.enqueue(NewJob(kind="selftest"))).job.id
    gone = [new_id(), new_id()]
    for job_id in (living, *gone):
        await leave_rows(database, job_id, 25)
    assert await delete_orphaned_rows(database, chunk=10) == 100
    assert [await count(database, job_id) for job_id in (living, *gone)] == [50, 0, 0]
    assert await delete_orphaned_rows(database) == 0
