"""What users do with jobs: pause, resume, retry, find and list them."""

from __future__ import annotations

from uuid import uuid4

import pytest
from claims import KINDS, a_job, claim_one, complete, make_due

from forager.db.database import Database
from forager.db.ids import new_id
from forager.errors import InvalidInput, LeaseLost, NotFound
from forager.jobs.job import Job
from forager.jobs.lifecycle import IllegalMove, Status
from forager.jobs.queue import Queue
from support.sql import execute


async def history(queue: Queue, job: Job) -> list[str]:
    return [event.move for event in await queue.events(job.id)]


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


async def test_pending_work_is_summed_by_state(queue: Queue, database: Database) -> None:
    jobs = await queue.enqueue_many([a_job(), a_job(), a_job()])
    await queue.pause(jobs[0].id)
    running, _ = await claim_one(queue)
    await execute(
        database, "INSERT INTO crawl_states (job_id, total_pending) VALUES (%s, 41)", running.id
    )
    work = {row.status: (row.jobs, row.total_pending) for row in await queue.pending_work()}
    assert work == {Status.PENDING: (1, 0), Status.PROCESSING: (1, 41), Status.PAUSED: (1, 0)}
    assert (await queue.counts())[Status.COMPLETED] == 0
