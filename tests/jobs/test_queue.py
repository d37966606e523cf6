"""What people, programs and workers can do with jobs."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from forager.db.database import Database
from forager.db.ids import new_id
from forager.errors import InvalidInput, LeaseLost, NotAllowed, NotFound
from forager.jobs.job import Job, Lease, NewJob
from forager.jobs.lifecycle import IllegalMove, Status
from forager.jobs.queue import Queue

KINDS = ["selftest"]


def a_job(**changes: object) -> NewJob:
    return NewJob(kind="selftest", **changes)  # type: ignore[arg-type]


async def claim_one(queue: Queue) -> tuple[Job, Lease]:
    worker = new_id()
    [job] = await queue.claim(worker, kinds=KINDS)
    return job, Lease(job.id, job.lease, worker)


async def make_due(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute("UPDATE crawl_jobs SET run_after = now()")


async def history(queue: Queue, job: Job) -> list[str]:
    return [event.move for event in await queue.events(job.id)]


async def complete(database: Database, queue: Queue, lease: Lease) -> Job:
    async with database.transaction() as connection:
        return await queue.complete(connection, lease)


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
    assert (await queue.get(job.id)).error_message == "boom"


async def test_retries_wait_longer_each_time(queue: Queue, database: Database) -> None:
    await queue.enqueue(a_job(max_retries=8))
    waits = []
    for _ in range(6):
        await make_due(database)
        _, lease = await claim_one(queue)
        await queue.fail(lease, "boom")
        async with database.connection() as connection:
            cursor = await connection.execute(
                "SELECT extract(epoch FROM run_after - now())::float8 FROM crawl_jobs"
            )
            row = await cursor.fetchone()
        assert row is not None
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


async def test_pausing_a_running_job_keeps_its_runner_until_it_parks(queue: Queue) -> None:
    await queue.enqueue(a_job())
    job, lease = await claim_one(queue)
    pausing = await queue.pause(job.id)
    assert pausing.shown_status == "pausing"
    assert await queue.heartbeat([lease]) == {job.id}
    parked = await queue.park(lease)
    assert parked is not None
    assert (parked.shown_status, parked.worker_id, parked.retry_count) == ("paused", None, 0)
    resumed = await queue.resume(job.id)
    assert resumed.status is Status.PENDING


async def test_resuming_a_pausing_job_lets_its_runner_go_on(
    queue: Queue, database: Database
) -> None:
    await queue.enqueue(a_job())
    job, lease = await claim_one(queue)
    await queue.pause(job.id)
    resumed = await queue.resume(job.id)
    assert (resumed.status, resumed.lease) == (Status.PROCESSING, lease.number)
    assert await queue.park(lease) is None
    assert (await complete(database, queue, lease)).status is Status.COMPLETED


async def test_a_job_that_is_paused_cannot_be_completed(queue: Queue, database: Database) -> None:
    await queue.enqueue(a_job())
    job, lease = await claim_one(queue)
    await queue.pause(job.id)
    with pytest.raises(LeaseLost):
        await complete(database, queue, lease)


async def test_a_run_that_fails_while_pausing_is_simply_paused(queue: Queue) -> None:
    await queue.enqueue(a_job())
    job, lease = await claim_one(queue)
    await queue.pause(job.id)
    ended = await queue.fail(lease, "killed")
    assert ended is not None
    assert (ended.status, ended.retry_count, ended.worker_id) == (Status.PAUSED, 0, None)


async def test_heartbeat_renews_only_what_is_held(queue: Queue) -> None:
    await queue.enqueue_many([a_job(), a_job()])
    kept, kept_lease = await claim_one(queue)
    lost, lost_lease = await claim_one(queue)
    lost_lease = Lease(lost.id, lost_lease.number, kept_lease.worker_id)
    await queue.cancel(lost.id)
    assert await queue.heartbeat([kept_lease, lost_lease]) == {kept.id}
    assert await queue.held([kept_lease, lost_lease]) == {kept.id: Status.PROCESSING}


async def test_heartbeat_does_not_wait_for_a_locked_row(queue: Queue, database: Database) -> None:
    await queue.enqueue(a_job())
    job, lease = await claim_one(queue)
    async with database.transaction() as connection:
        await connection.execute("SELECT hold_lease(%s, %s)", (job.id, lease.number))
        assert await queue.heartbeat([lease]) == set()
        assert await queue.held([lease]) == {job.id: Status.PROCESSING}


async def test_illegal_moves_say_the_state_and_what_is_possible(
    queue: Queue, database: Database
) -> None:
    job = (await queue.enqueue(a_job())).job
    with pytest.raises(IllegalMove, match=r"it is pending\n.*cancel, pause") as refusal:
        await queue.resume(job.id)
    assert refusal.value.exit_code == 4
    _, lease = await claim_one(queue)
    await complete(database, queue, lease)
    for move in (queue.pause, queue.resume, queue.cancel, queue.retry):
        with pytest.raises(IllegalMove, match="it is completed"):
            await move(job.id)


async def test_every_move_leaves_an_event(queue: Queue, database: Database) -> None:
    job = (await queue.enqueue(a_job(), actor="ann")).job
    await queue.pause(job.id, actor="ann", reason="lunch")
    await queue.resume(job.id)
    _, lease = await claim_one(queue)
    await queue.fail(lease, "boom")
    await make_due(database)
    _, lease = await claim_one(queue)
    await complete(database, queue, lease)
    assert await history(queue, job) == [
        "enqueue", "pause", "resume", "claim", "retry later", "claim", "complete",
    ]  # fmt: skip
    events = await queue.events(job.id)
    assert (events[1].actor, events[1].reason) == ("ann", "lunch")
    assert [e.lease for e in events] == sorted(e.lease for e in events)


async def test_unknown_jobs_are_not_found(queue: Queue) -> None:
    for call in (queue.get, queue.events, queue.pause, queue.cancel):
        with pytest.raises(NotFound, match="there is no job"):
            await call(uuid4())


async def test_an_id_may_be_shortened_while_it_is_unique(queue: Queue) -> None:
    jobs = await queue.enqueue_many([a_job(), a_job()])
    whole = str(jobs[0].id)
    assert await queue.resolve(whole) == jobs[0].id
    assert await queue.resolve(whole[:-1]) == jobs[0].id
    with pytest.raises(InvalidInput, match="several jobs"):
        await queue.resolve(whole[:4])
    with pytest.raises(NotFound):
        await queue.resolve("ffff")
    for nonsense in ("", "xyz", "0" * 33):
        with pytest.raises(InvalidInput):
            await queue.resolve(nonsense)


async def test_a_shortened_id_is_unique_among_the_jobs_of_its_owner(queue: Queue) -> None:
    owner, other = uuid4(), uuid4()
    [own, _] = await queue.enqueue_many([a_job(user_id=owner), a_job(user_id=other)])
    assert await queue.resolve(str(own.id)[:4], user_id=owner) == own.id
    with pytest.raises(NotFound, match="there is no job"):
        await queue.resolve(str(own.id), user_id=other)


async def test_lists_are_filtered_and_paged_without_gaps(queue: Queue) -> None:
    made = await queue.enqueue_many([a_job(source_id=str(n)) for n in range(7)])
    await queue.cancel(made[0].id)
    seen, cursor = [], None
    while True:
        page = await queue.list_jobs(statuses=[Status.PENDING], cursor=cursor, limit=2)
        seen += [job.id for job in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(seen) == sorted(job.id for job in made[1:])
    assert [j.source_id for j in (await queue.list_jobs(source_id="3")).items] == ["3"]


@pytest.mark.parametrize("limit", [0, -1, 1001])
async def test_limits_are_checked(queue: Queue, limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        await queue.list_jobs(limit=limit)
    with pytest.raises(InvalidInput, match="limit"):
        await queue.claim(new_id(), kinds=KINDS, limit=limit)


async def test_a_bad_cursor_is_refused(queue: Queue) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        await queue.list_jobs(cursor="nonsense")


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


async def test_pending_work_is_summed_by_state(queue: Queue, database: Database) -> None:
    jobs = await queue.enqueue_many([a_job(), a_job(), a_job()])
    await queue.pause(jobs[0].id)
    running, _ = await claim_one(queue)
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO crawl_states (job_id, total_pending) VALUES (%s, 41)", (running.id,)
        )
    work = {row.status: (row.jobs, row.total_pending) for row in await queue.pending_work()}
    assert work == {
        Status.PENDING: (1, 0),
        Status.PROCESSING: (1, 41),
        Status.PAUSED: (1, 0),
    }
    assert (await queue.counts())[Status.COMPLETED] == 0


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
    async with database.connection() as connection:
        await connection.execute("UPDATE alembic_version SET version_num = '9999'")
    assert await queue.claim(new_id(), kinds=KINDS) == []
