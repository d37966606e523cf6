"""Archive segments of task workers: kept while they are written or referred to."""

from __future__ import annotations

from uuid import UUID

from forager.archive.deletion import plan_prune, prune
from forager.archive.options import archive_options
from forager.archive.store import register_segment
from forager.db.ids import new_id
from forager.jobs import workers
from forager.tasks.workers.recovery import TaskRecovery
from servers.shop import Shop
from tasks.working import Tasks, at_work


async def pruned(tasks: Tasks) -> list[str]:
    options = archive_options(tasks.settings)
    plan = await plan_prune(tasks.database, options.policy)
    done = await prune(tasks.database, options.open(), plan.delete)
    return [deletion.segment.name for deletion in done.deleted]


async def add_worker(tasks: Tasks, worker_id: UUID) -> None:
    async with tasks.database.connection() as connection:
        values = {
            "id": worker_id, "host": "here", "pid": 1, "process": None, "version": "1",
            "capacity": 1, "role": "tasks", "region": None, "renders": False, "parsers": None,
            "brake": None,
        }  # fmt: skip
        await workers.register(connection, values, state="running", note=None)


async def test_a_segment_goes_when_its_worker_is_gone_and_nothing_refers_to_it(
    tasks: Tasks,
) -> None:
    worker_id = new_id()
    name = f"2026/01/01/worker-{worker_id.hex}-0-0000.warc.zst"
    await add_worker(tasks, worker_id)
    async with tasks.database.connection() as connection:
        await register_segment(connection, name, None, worker_id=worker_id)
    # nothing refers to it yet, but the commit that does may be on its way
    assert await pruned(tasks) == []
    await tasks.sql("DELETE FROM workers")
    assert await pruned(tasks) == [name]


async def test_tasks_attempts_and_extractions_keep_their_segments(tasks: Tasks, shop: Shop) -> None:
    (task_id,) = await tasks.add(shop.add("a"))
    async with at_work(tasks):
        await tasks.when(task_id, "completed")
    for table in ("crawl_tasks", "task_attempts", "extractions"):
        assert await pruned(tasks) == []
        await tasks.sql(f"UPDATE {table} SET segment = NULL")
    assert len(await pruned(tasks)) == 1


async def test_a_silent_worker_is_not_forgotten_while_it_holds_a_task(tasks: Tasks) -> None:
    worker_id = new_id()
    await add_worker(tasks, worker_id)
    await tasks.silence()
    await tasks.add("http://shop.example/a")
    await tasks.sql("UPDATE crawl_tasks SET status = 'crawling', worker_id = %s", worker_id)
    async with tasks.database.connection() as connection:
        assert await workers.delete_gone(connection, older_than=60) == 0
    assert await tasks.sql("SELECT id FROM workers") == [(worker_id,)]
    await TaskRecovery(tasks.database, tasks.settings).check_twice()
    assert await tasks.sql("SELECT id FROM workers") == []
    assert await tasks.sql("SELECT worker_id FROM crawl_tasks") == [(None,)]
