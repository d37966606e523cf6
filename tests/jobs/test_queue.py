"""What programs and workers do with jobs: enqueue, claim, complete, retry."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from claims import KINDS, a_job, claim_one, complete, make_due

from forager.db.database import Database
from forager.db.ids import new_id
from forager.errors import InvalidInput, LeaseLost, NotAllowed
from forager.jobs.job import Lease, NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from support.sql import execute, fetch_row


async def test_claims_go_by_priority_then_age(queue: Queue) -> None:
    jobs = [(await queue.enqueue(a_job(priority=p))).job for p in (0, 5, 0, 9)]
    claimed = await queue.claim(new_id(), kinds=KINDS, limit=10)
    assert [j.id for j in claimed] == [jobs[3].id, jobs[1].id, jobs[0].id, jobs[2].id]


async def test_claim_takes_no_more_than_asked_and_nothing_twice(queue: Queue) -> None:
    await queue.enqueue_many([a_job() for _ in range(20)])
    batches = await asyncio.gather(*(queue.claim(new_id(), kinds=KINDS, limit=3) for _ in range(8)))
    ids = [job.id for batch in batches for job in batch]
    assert len(ids) == len(set(ids)) == 20
    assert max(len(batch) for batch in batches) == 3


async def test_claim_leaves_jobs_that_are_not_due_or_of_another_kind(queue: Queue) -> None:
    await queue.enqueue(a_job(delay=3600))
    await queue.enqueue(a_job())
    assert await queue.claim(new_id(), kinds=["something else"]) == []
    assert len(await queue.claim(new_id(), kinds=KINDS, limit=5)) == 1


async def test_claim_marks_the_job(queue: Queue) -> None:
    await queue.enqueue(a_job())
    job, lease = await claim_one(queue)
    assert job.status is Status.PROCESSING
    assert job.worker_id == lease.worker_id
    assert job.lease == 1
    assert job.started_at is not None
    assert job.last_heartbeat is not None


async def test_started_at_is_the_first_claim(queue: Queue) -> None:
    await queue.enqueue(a_job())
    first, lease = await claim_one(queue)
    await queue.release(lease, reason="test")
    second, _ = await claim_one(queue)
    assert second.started_at == first.started_at
    assert second.lease == first.lease + 2  # one for the release, one for the claim


async def test_one_active_job_per_source(queue: Queue, database: Database) -> None:
    first = await queue.enqueue(a_job(source_id="docs"))
    second = await queue.enqueue(a_job(source_id="docs"))
    assert first.created
    assert not second.created
    assert second.job.id == first.job.id
    _, lease = await claim_one(queue)
    await complete(database, queue, lease)
    assert (await queue.enqueue(a_job(source_id="docs"))).created


async def test_enqueue_many_leaves_out_active_sources(queue: Queue) -> None:
    await queue.enqueue(a_job(source_id="a"))
    made = await queue.enqueue_many([a_job(source_id="a"), a_job(source_id="b"), a_job()])
    assert [job.source_id for job in made] == ["b", None]


async def test_racing_requests_for_one_source_make_one_job(queue: Queue) -> None:
    answers = await asyncio.gather(*(queue.enqueue(a_job(source_id="docs")) for _ in range(8)))
    assert sum(answer.created for answer in answers) == 1
    assert len({answer.job.id for answer in answers}) == 1


async def test_complete_is_fenced_by_the_lease(queue: Queue, database: Database) -> None:
    await queue.enqueue(a_job())
    _, old = await claim_one(queue)
    await queue.release(old, reason="test")
    _, new = await claim_one(queue)
    with pytest.raises(LeaseLost):
        await complete(database, queue, old)
    done = await complete(database, queue, new)
    assert (done.status, done.progress_percentage, done.worker_id) == (Status.COMPLETED, 100, None)


@pytest.mark.parametrize("action", ["fail", "release", "park"])
async def test_an_old_lease_can_do_nothing(queue: Queue, action: str) -> None:
    await queue.enqueue(a_job())
    job, lease = await claim_one(queue)
    await queue.cancel(job.id)
    attempts = {
        "fail": queue.fail(lease, "too late"),
        "release": queue.release(lease, reason="too late"),
        "park": queue.park(lease),
    }
    chosen = attempts.pop(action)
    for other in attempts.values():
        other.close()
    assert await chosen is None
    assert (await queue.get(job.id)).status is Status.CANCELLED


async def test_three_retries_mean_three(queue: Queue, database: Database) -> None:
    job = (await queue.enqueue(a_job(max_retries=3))).job
    states = []
    for _ in range(4):
        await make_due(database)
        _, lease = await claim_one(queue)
        ended = await queue.fail(lease, "boom")
        assert ended is not None
        states.append((ended.status, ended.retry_count))
    assert states == [
        (Status.PENDING, 1),
        (Status.PENDING, 2),
        (Status.PENDING, 3),
        (Status.FAILED, 3),
    ]
    assert (await queue.get(job.id)).error_message == ("crashed and exceeded max retries (3): boom")


async def test_retries_wait_longer_each_time(queue: Queue, database: Database) -> None:
    await queue.enqueue(a_job(max_retries=8))
    waits = []
    for _ in range(6):
        await make_due(database)
        _, lease = await claim_one(queue)
        await queue.fail(lease, "boom")
        row = await fetch_row(
            database, "SELECT extract(epoch FROM run_after - now())::float8 FROM crawl_jobs"
        )
        waits.append(row[0])
    # jitter is between half and all: the wait after the next one is longer in any case
    assert all(later > earlier for earlier, later in zip(waits, waits[2:], strict=False))


async def test_a_permanent_error_fails_at_once(queue: Queue) -> None:
    await queue.enqueue(a_job())
    _, lease = await claim_one(queue)
    ended = await queue.fail(lease, "bad URL", permanent=True)
    assert ended is not None
    assert (ended.status, ended.retry_count) == (Status.FAILED, 0)


async def test_retry_starts_the_count_again_but_not_the_lease(queue: Queue) -> None:
    await queue.enqueue(a_job(max_retries=0))
    job, lease = await claim_one(queue)
    await queue.fail(lease, "boom")
    again = await queue.retry(job.id)
    assert (again.status, again.retry_count, again.error_message) == (Status.PENDING, 0, None)
    assert again.lease > lease.number
    assert again.completed_at is None


async def test_retry_of_a_source_that_is_busy_again_is_refused(queue: Queue) -> None:
    old = (await queue.enqueue(a_job(source_id="docs", max_retries=0))).job
    _, lease = await claim_one(queue)
    await queue.fail(lease, "boom")
    await queue.enqueue(a_job(source_id="docs"))
    with pytest.raises(NotAllowed, match="another active job"):
        await queue.retry(old.id)


async def test_heartbeat_renews_only_what_is_held(queue: Queue) -> None:
    await queue.enqueue_many([a_job(), a_job()])
    kept, kept_lease = await claim_one(queue)
    lost, lost_lease = await claim_one(queue)
    lost_lease = Lease(lost.id, lost_lease.number, kept_lease.worker_id)
    await queue.cancel(lost.id)
    assert await queue.heartbeat([kept_lease, lost_lease]) == {kept.id}
    assert await queue.leased([kept_lease, lost_lease]) == {kept.id: Status.PROCESSING}


async def test_heartbeat_does_not_wait_for_a_locked_row(queue: Queue, database: Database) -> None:
    await queue.enqueue(a_job())
    job, lease = await claim_one(queue)
    async with database.transaction() as connection:
        await connection.execute("SELECT hold_lease(%s, %s)", (job.id, lease.number))
        assert await queue.heartbeat([lease]) == set()
        assert await queue.leased([lease]) == {job.id: Status.PROCESSING}


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        ({"steps": -1}, "steps"),
        ({"stepz": 1}, "stepz"),
        ({"steps": "many"}, "steps"),
        ({"steps": {1, 2}}, "not JSON"),
        ({"text": "a\x00b"}, "NUL"),
        ({"text": "x" * 2_000_000}, "bytes"),
        (["steps"], "object"),
    ],
)
async def test_payloads_are_checked(queue: Queue, payload: Any, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        await queue.enqueue(a_job(payload=payload))


async def test_an_unknown_kind_is_refused(queue: Queue) -> None:
    with pytest.raises(InvalidInput, match=r"Known kinds: .*selftest"):
        await queue.enqueue(NewJob(kind="nothing"))


async def test_errors_that_postgres_would_refuse_are_stored_readably(queue: Queue) -> None:
    await queue.enqueue(a_job())
    _, lease = await claim_one(queue)
    ended = await queue.fail(lease, "bad \x00 byte and \ud800 surrogate " + "x" * 9000)
    assert ended is not None
    assert ended.error_message is not None
    assert ended.error_message.startswith("bad \N{REPLACEMENT CHARACTER} byte and ?")


async def test_prune_deletes_old_finished_jobs_and_all_below_them(
    queue: Queue, database: Database
) -> None:
    jobs = await queue.enqueue_many([a_job(), a_job(), a_job()])
    for job in jobs[:2]:
        await queue.cancel(job.id)
    async with database.connection() as connection:
        await connection.execute(
            "UPDATE crawl_jobs SET completed_at = now() - interval '1 year' WHERE id = %s",
            (jobs[0].id,),
        )
        await connection.execute("INSERT INTO crawl_states (job_id) VALUES (%s)", (jobs[0].id,))
    assert await queue.prune() == 1
    assert {job.id for job in (await queue.list_jobs()).items} == {jobs[1].id, jobs[2].id}
    async with database.connection() as connection:
        for table in ("crawl_states", "job_events"):
            cursor = await connection.execute(
                f"SELECT count(*) FROM {table} WHERE job_id = %s", (jobs[0].id,)
            )
            assert await cursor.fetchone() == (0,)


async def test_a_worker_of_another_schema_version_gets_nothing(
    queue: Queue, database: Database
) -> None:
    await queue.enqueue(a_job())
    await execute(database, "UPDATE alembic_version SET version_num = '9999'")
    assert await queue.claim(new_id(), kinds=KINDS) == []
