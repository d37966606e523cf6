"""A worker with hints claims only hinted tasks, by the usual rules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pydantic import SecretStr

from forager.db.database import Database
from forager.db.ids import new_id
from forager.settings import Dispatch, Settings
from forager.tasks.hints import Hints
from forager.tasks.holds import Holds
from forager.tasks.selection import Selection
from forager.tasks.stages.attempt import Stage
from forager.tasks.workers.worker import TaskWorker
from servers.shop import Shop
from support.waiting import LIMIT
from tasks.working import Tasks


@pytest.fixture
def tasks(database: Database, settings: Settings) -> Tasks:
    changes = {
        "task_retry_delay": 0.01,
        "task_retry_delay_max": 0.05,
        "images": False,
        "dispatch": Dispatch.CELERY,
        "broker_url": SecretStr("amqp://127.0.0.1:1//"),
    }
    return Tasks(database, settings.model_copy(update=changes))


@asynccontextmanager
async def hinted_worker(tasks: Tasks) -> AsyncIterator[Hints]:
    """A running worker, and its hints."""
    hints = Hints()
    worker = TaskWorker(tasks.database, tasks.settings, new_id(), hints=hints)
    running = asyncio.ensure_future(worker.run())
    try:
        yield hints
    finally:
        worker.stop()
        await asyncio.wait_for(running, LIMIT)


async def written(tasks: Tasks) -> list[tuple[str, list[int]]]:
    rows = await tasks.sql("SELECT topic, payload FROM outbox ORDER BY id")
    return [(row[0], row[1]) for row in rows]


async def test_only_what_was_named_is_claimed(tasks: Tasks, shop: Shop) -> None:
    named, other = await tasks.add(shop.add("a"), shop.add("b"))
    async with hinted_worker(tasks) as hints:
        await hints.of(Stage.DOWNLOAD).offer([named])
        await tasks.when(named, "completed")
        await tasks.sql("NOTIFY forager_tasks")
        assert (await tasks.get(other)).lease == 0
        await hints.of(Stage.DOWNLOAD).offer([other])
        await tasks.when(other, "completed")


async def test_when_an_offer_returns_the_claim_is_committed(tasks: Tasks, shop: Shop) -> None:
    (task_id,) = await tasks.add(shop.add("a"))
    async with hinted_worker(tasks) as hints:
        await hints.of(Stage.DOWNLOAD).offer([task_id])
        assert (await tasks.get(task_id)).lease > 0


async def test_duplicates_and_what_is_gone_change_nothing(tasks: Tasks, shop: Shop) -> None:
    (task_id,) = await tasks.add(shop.add("a"))
    async with hinted_worker(tasks) as hints:
        await hints.of(Stage.DOWNLOAD).offer([task_id, task_id])
        await tasks.when(task_id, "completed")
        for stage in Stage:
            await hints.of(stage).offer([task_id, 999_999_999])
            assert len(hints.of(stage)) == 0
    assert await tasks.attempts(task_id) == [("download", "ok"), ("parse", "ok")]


async def test_what_a_domain_cannot_take_yet_is_remembered(tasks: Tasks, shop: Shop) -> None:
    ids = await tasks.add(*[shop.add(f"p{i}") for i in range(6)])
    await tasks.sql("UPDATE domains SET max_concurrent_requests = 2")
    async with hinted_worker(tasks) as hints:
        await hints.of(Stage.DOWNLOAD).offer(ids)
        await tasks.all_when(ids, "completed")
        assert len(hints.of(Stage.DOWNLOAD)) == 0


async def test_the_next_stage_is_notified_with_the_commit(tasks: Tasks, shop: Shop) -> None:
    (task_id,) = await tasks.add(shop.add("a"))
    async with hinted_worker(tasks) as hints:
        await hints.of(Stage.DOWNLOAD).offer([task_id])
        await tasks.when(task_id, "completed")
    assert await written(tasks) == [("parse", [task_id])]


async def test_a_page_of_another_worker_is_parsed_after_its_message(
    tasks: Tasks, shop: Shop
) -> None:
    (task_id,) = await tasks.add(shop.add("a"))
    async with hinted_worker(tasks) as hints:
        await hints.of(Stage.DOWNLOAD).offer([task_id])
        await tasks.when(task_id, "completed")
    await tasks.sql("UPDATE crawl_tasks SET status = 'downloaded', next_crawl_at = NULL")
    async with hinted_worker(tasks) as hints:
        await hints.of(Stage.PARSE).offer([task_id])
        await tasks.when(task_id, "completed")
    outcomes = [("download", "ok"), ("parse", "ok"), ("parse", "ok")]
    assert await tasks.attempts(task_id) == outcomes


async def test_what_is_held_is_left_alone(tasks: Tasks, shop: Shop) -> None:
    (task_id,) = await tasks.add(shop.add("a"))
    await tasks.sql("UPDATE domains SET task_hold = 'paused'")
    async with hinted_worker(tasks) as hints:
        await hints.of(Stage.DOWNLOAD).offer([task_id])
        assert (await tasks.get(task_id)).status == "queued"
        assert len(hints.of(Stage.DOWNLOAD)) == 0, "it is sent again when the hold is lifted"


async def test_a_stop_takes_away_what_was_claimed(tasks: Tasks, shop: Shop) -> None:
    shop.add("a")
    (task_id,) = await tasks.add(shop.hang("a"))
    async with hinted_worker(tasks) as hints:
        await hints.of(Stage.DOWNLOAD).offer([task_id])
        await tasks.when(task_id, "crawling")
        await Holds(tasks.database).stop(Selection())
        await tasks.when(task_id, "pending")


async def test_a_stopping_worker_announces_the_tasks_that_it_returns(
    tasks: Tasks, shop: Shop
) -> None:
    ids = await tasks.add(shop.add("a"), shop.add("b"))
    shop.hang("a")
    shop.hang("b")
    await tasks.sql("UPDATE domains SET max_concurrent_requests = 1")
    async with hinted_worker(tasks) as hints:
        await hints.of(Stage.DOWNLOAD).offer(ids)
        held = await tasks.sql("SELECT id FROM crawl_tasks WHERE worker_id IS NOT NULL")
        assert len(held) == 1, "the other is remembered"
    assert {(await tasks.get(task_id)).status for task_id in ids} == {"queued"}
    [(stage, told_ids)] = await written(tasks)
    assert (stage, sorted(told_ids)) == ("crawl", ids)
