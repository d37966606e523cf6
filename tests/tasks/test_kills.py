"""Workers that are killed, frozen or stopped lose no task, and write nothing twice."""

from __future__ import annotations

import asyncio
import random
import signal
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from forager.db.database import Database
from forager.db.embedded import ServerUse
from forager.settings import Settings
from forager.tasks.workers.recovery import TaskRecovery
from forager.tasks.workers.supervisor import TaskSupervisor, WorkerProcess
from servers.shop import Item, Shop
from support.waiting import LIMIT, eventually, lock_waited_for, waits_for_lock
from tasks.working import Tasks, process

ONCE = [("download", "ok"), ("parse", "ok")]


async def hanging(shop: Shop, count: int = 1) -> bool:
    return shop.site.hanging >= count


async def check_written_once(tasks: Tasks, ids: list[int]) -> None:
    """Whatever happened: one product, one price, one completion for each task."""
    for task_id in ids:
        assert await tasks.product(task_id) is not None
        assert len(await tasks.prices(task_id)) == 1
        attempts = await tasks.attempts(task_id)
        assert attempts.count(("parse", "ok")) == 1, attempts
    events = await tasks.sql("SELECT count(*) FROM catalog_events WHERE kind = 'product.added'")
    assert events == [(len(ids),)]
    assert await tasks.sql("SELECT count(*) FROM extractions") == [(len(ids),)]


async def test_killed_while_downloading(tasks: Tasks, shop: Shop) -> None:
    shop.add("a")
    (task_id,) = await tasks.add(shop.hang("a"))
    async with process(tasks) as first:
        await eventually(lambda: hanging(shop))
        held = await tasks.when(task_id, "crawling")
        await first.kill()
    # seen to be dead on this machine: no waiting for a heartbeat to grow old
    recovered = await TaskRecovery(tasks.database, tasks.settings).run_once()
    assert [(task.id, task.status) for task in recovered] == [(task_id, "queued")]
    after = await tasks.get(task_id)
    assert (after.lease, after.retry_count, after.worker_id) == (held.lease + 1, 1, None)
    assert await tasks.sql("SELECT id FROM workers") == []
    shop.behave_again("a")
    await tasks.forget_permits()
    async with process(tasks):
        done = await tasks.when(task_id, "completed")
    assert done.retry_count == 0
    assert await tasks.attempts(task_id) == [("download", "lost"), *ONCE]
    await check_written_once(tasks, [task_id])


async def test_killed_while_its_pages_are_being_written(tasks: Tasks, shop: Shop) -> None:
    ids = await tasks.add(*(shop.add(f"n{n}") for n in range(5)))
    async with await psycopg.AsyncConnection.connect(tasks.database.url) as blocking:
        await blocking.execute("LOCK TABLE price_history IN EXCLUSIVE MODE")
        async with process(tasks) as first:
            # while a batch is being written, no more tasks are claimed for parsing
            await lock_waited_for(tasks.database)
            held = await tasks.all_when(ids, "downloaded", "parsing")
            await first.kill()
    await eventually(lambda: nobody_waits(tasks))
    assert await tasks.recover() == sum(task.status == "parsing" for task in held) > 0
    assert {(await tasks.get(task_id)).status for task_id in ids} == {"downloaded"}
    async with process(tasks):
        await tasks.all_when(ids, "completed")
    assert [shop.hits(f"n{n}") for n in range(5)] == [1] * 5
    await check_written_once(tasks, ids)


async def nobody_waits(tasks: Tasks) -> bool:
    return not await waits_for_lock(tasks.database)


async def test_a_task_that_kills_its_workers_comes_to_an_end(tasks: Tasks, shop: Shop) -> None:
    shop.add("a")
    (task_id,) = await tasks.add(shop.hang("a"), max_retries=0)
    async with process(tasks) as first:
        await eventually(lambda: hanging(shop))
        await first.kill()
    await tasks.recover()
    failed = await tasks.get(task_id)
    assert (failed.status, failed.error_kind) == ("failed", "internal")
    assert await tasks.sql("SELECT task_id, error_kind, attempts FROM dead_letters") == [
        (task_id, "internal", 1)
    ]


async def test_a_death_at_the_last_retry_does_not_end_tracking(tasks: Tasks, shop: Shop) -> None:
    shop.add("a")
    await tasks.add(shop.hang("a"), max_retries=1)
    tasks.settings = Settings(**(tasks.settings.model_dump() | {"dead_letter_visits": 3}))
    async with process(tasks) as first:
        await eventually(lambda: hanging(shop))
        await first.kill()
    await tasks.sql("UPDATE crawl_tasks SET retry_count = 1")
    [recovered] = await TaskRecovery(tasks.database, tasks.settings).run_once()
    assert (recovered.status, recovered.retry_count) == ("pending", 0)
    state = "SELECT status, failed_visits, retry_count, scheduled_at > now() FROM crawl_tasks"
    assert await tasks.sql(state) == [("pending", 1, 0, True)]
    assert await tasks.sql("SELECT FROM dead_letters") == []
    # the time until a death is noticed is not that of a request
    began = "SELECT a.duration_ms, a.started_at = t.started_at FROM task_attempts a, crawl_tasks t"
    assert await tasks.sql(began) == [(None, True)]
    shop.behave_again("a")


async def test_a_frozen_worker_that_wakes_up_writes_nothing(tasks: Tasks, shop: Shop) -> None:
    shop.add("a", Item("A", "10.00"))
    (task_id,) = await tasks.add(shop.hang("a"))
    limits = {"lease_limit": 5.0, "stall_limit": 2.0, "stale_after": 6.0}
    tasks.settings = Settings(**(tasks.settings.model_dump() | limits))
    async with process(tasks) as zombie:
        await eventually(lambda: hanging(shop))
        zombie.signal(signal.SIGSTOP)
        await tasks.silence()
        assert await tasks.recover() == 1
        # its answer arrives, while another worker does the work and the price changes
        shop.site.release()
        shop.change("a", price="20.00")
        async with process(tasks):
            await tasks.when(task_id, "completed")
            zombie.signal(signal.SIGCONT)
            assert await zombie.exited() != 0
    assert await tasks.prices(task_id) == ["20.00"]
    assert await tasks.attempts(task_id) == [("download", "lost"), *ONCE]
    assert await tasks.sql("SELECT id FROM workers WHERE id = %s", zombie.worker_id) == []


async def test_a_living_worker_is_not_taken_for_dead(tasks: Tasks, shop: Shop) -> None:
    shop.add("a")
    (task_id,) = await tasks.add(shop.hang("a"))
    recovery = TaskRecovery(tasks.database, tasks.settings)
    async with process(tasks):
        await eventually(lambda: hanging(shop))
        before = await tasks.get(task_id)
        # after an outage every heartbeat is old; the living need a moment
        await tasks.silence()
        await recovery.run_once()
        await eventually(lambda: heard_of(tasks))
        await recovery.run_once()
        assert (await tasks.get(task_id)).lease == before.lease
        shop.site.release()
        await tasks.when(task_id, "completed")


async def heard_of(tasks: Tasks) -> bool:
    rows = await tasks.sql("SELECT count(*) FROM workers WHERE last_seen > now() - interval '5 s'")
    return bool(rows[0][0])


async def test_sigterm_commits_what_is_fetched_and_gives_the_rest_back(
    tasks: Tasks, shop: Shop
) -> None:
    shop.add("slow")
    (slow,) = await tasks.add(shop.hang("slow"))
    async with process(tasks) as worker:
        await eventually(lambda: hanging(shop))
        (quick,) = await tasks.add(shop.add("quick"))
        await tasks.sql("NOTIFY forager_tasks")
        await tasks.when(quick, "completed")
        worker.signal(signal.SIGTERM)
        assert await worker.exited() == 0
    given_back = await tasks.get(slow)
    assert (given_back.status, given_back.retry_count) == ("queued", 0)
    assert await tasks.attempts(slow) == [("download", "withdrawn")]
    assert await tasks.sql("SELECT id FROM workers") == []
    assert await tasks.sql("SELECT name FROM archive_segments WHERE closed_at IS NULL") == []


async def test_a_worker_whose_supervisor_died_stops_by_itself(tasks: Tasks, shop: Shop) -> None:
    (task_id,) = await tasks.add(shop.add("a"))
    async with process(tasks) as worker:
        await tasks.when(task_id, "completed")
        worker.worker._loop.remove_reader(worker.worker._control.fileno())
        worker.worker._control.shutdown(2)
        assert await worker.exited() == 0
    assert await tasks.sql("SELECT id FROM workers") == []


async def test_the_supervisor_replaces_a_worker_that_died(tasks: Tasks, shop: Shop) -> None:
    shop.add("a")
    (task_id,) = await tasks.add(shop.hang("a"))
    supervisor = TaskSupervisor(tasks.database, tasks.settings)
    running = asyncio.ensure_future(supervisor.run())
    try:
        await eventually(lambda: hanging(shop))
        assert supervisor.worker is not None
        first = supervisor.worker
        shop.behave_again("a")
        first.kill()
        await first.exited.wait()
        await tasks.forget_permits()
        await tasks.when(task_id, "completed")
        assert supervisor.worker.worker_id != first.worker_id
    finally:
        supervisor.stop()
        await asyncio.wait_for(running, LIMIT)
    assert await tasks.attempts(task_id) == [("download", "lost"), *ONCE]
    assert await tasks.sql("SELECT id FROM workers") == []


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"job_memory_limit_mb": 64}, "more than 64 MB (job_memory_limit_mb)"),
        (
            {"stall_limit": 4.0, "progress_limit": 4.0, "lease_limit": 5.0},
            "task worker was stuck: no progress for 4 s (progress_limit)",
        ),
        ({"job_time_limit": 2.0}, "a task took longer than 2 s (job_time_limit)"),
    ],
    ids=["memory", "progress", "time"],
)
async def test_a_worker_that_breaks_a_limit_is_replaced(
    tasks: Tasks, shop: Shop, limits: dict[str, Any], reason: str
) -> None:
    shop.add("a")
    await tasks.add(shop.hang("a"))
    settings = Settings(**(tasks.settings.model_dump() | limits))
    supervisor = TaskSupervisor(tasks.database, settings)
    running = asyncio.ensure_future(supervisor.run())
    try:
        await eventually(lambda: started(supervisor))
        first = supervisor.worker
        assert first is not None
        async with asyncio.timeout(LIMIT):
            await first.exited.wait()
        assert first.how_it_ended().endswith(reason)
        await eventually(lambda: started(supervisor, besides=first))
    finally:
        supervisor.stop()
        await asyncio.wait_for(running, LIMIT)


async def started(supervisor: TaskSupervisor, besides: WorkerProcess | None = None) -> bool:
    return supervisor.worker is not besides


async def test_killed_again_and_again(tasks: Tasks, shop: Shop) -> None:
    shop.site.delay = 0.02
    names = [f"n{n}" for n in range(60)]
    ids = await tasks.add(*(shop.add(name) for name in names), max_retries=1000)
    chance = random.Random(5)
    kills = 0
    while kills < 4:
        async with process(tasks) as worker:
            target = len(shop.site.log) + chance.randint(3, 20)
            await eventually(lambda target=target: asked(shop, tasks, target))  # type: ignore[misc]
            await worker.kill()
        kills += 1
        await tasks.recover()
    async with process(tasks):
        await tasks.all_when(ids, "completed")
    await check_written_once(tasks, ids)
    refetched = sum(shop.hits(name) for name in names) - len(names)
    assert refetched <= kills * (tasks.settings.task_concurrency + 100)


async def asked(shop: Shop, tasks: Tasks, target: int) -> bool:
    rows = await tasks.sql("SELECT count(*) FROM crawl_tasks WHERE status <> 'completed'")
    return len(shop.site.log) >= target or rows[0][0] == 0


async def test_a_database_that_is_killed_costs_nothing(
    own_server: ServerUse, shop: Shop, tmp_path: Path, tasks: Tasks
) -> None:
    shop.site.delay = 0.02
    names = [f"n{n}" for n in range(60)]
    async with Database(own_server.url, max_size=4) as database:
        local = Tasks(database, tasks.settings)
        ids = await local.add(*(shop.add(name) for name in names))
        async with process(local):
            for seen in (5, 30):
                await eventually(lambda seen=seen: hit(shop, seen))  # type: ignore[misc]
                await asyncio.to_thread(restart, own_server)
            await local.all_when(ids, "completed")
        await check_written_once(local, ids)
        rows = await local.sql("SELECT DISTINCT outcome FROM task_attempts WHERE outcome = 'lost'")
        assert rows == []


async def hit(shop: Shop, count: int) -> bool:
    return len(shop.site.log) >= count


def restart(use: ServerUse) -> None:
    assert use.pid is not None
    postmaster = psutil.Process(use.pid)
    postmaster.send_signal(signal.SIGQUIT)
    postmaster.wait(LIMIT)
    use.ensure_running()
