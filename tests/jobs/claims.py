"""Jobs of tests: enqueue, claim and complete them."""

from __future__ import annotations

from forager.db.database import Database
from forager.db.ids import new_id
from forager.jobs.job import Job, Lease, NewJob
from forager.jobs.queue import Queue
from support.sql import execute

KINDS = ["selftest"]


def a_job(**changes: object) -> NewJob:
    return NewJob(kind="selftest", **changes)  # type: ignore[arg-type]


async def claim_one(queue: Queue) -> tuple[Job, Lease]:
    worker = new_id()
    [job] = await queue.claim(worker, kinds=KINDS)
    return job, Lease(job.id, job.lease, worker)


async def make_due(database: Database) -> None:
    await execute(database, "UPDATE crawl_jobs SET run_after = now()")


async def complete(database: Database, queue: Queue, lease: Lease) -> Job:
    async with database.transaction() as connection:
        return await queue.complete(connection, lease)
