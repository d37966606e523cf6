"""Workers, broker, object store and search engine are killed in the middle of many tasks.

Every task is done once, with its page in the archive and its product in the index.
`FORAGER_TEST_CHAOS_TASKS=10000` makes it the long run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from chaos.promises import broken_refs
from chaos.store.checks import select_archive_refs
from forager.archive.storage import open_storage
from forager.db.database import Database
from forager.products.indexing import INDEXED_PRODUCTS
from forager.services.supervisor import running
from forager.settings import Settings
from servers.shop import Shop
from services.buckets import new_bucket
from services.dispatching import Worker, beside, by_celery, wired
from services.search_index import Searched, searched
from services.servers.minio import MinIO
from services.servers.opensearch import OpenSearch
from services.servers.rabbitmq import RabbitMQ
from services.servers.server import Server
from support.waiting import eventually
from tasks.working import Tasks

TASKS = int(os.environ.get("FORAGER_TEST_CHAOS_TASKS", "500"))
LIMIT = 300.0 + TASKS / 10
SHOPS = 4
# of each shop, between two requests
DELAY = 0.02
# for others to meet with what is broken
LASTS = 2.0

Fault = Callable[[], Awaitable[None]]

# What the tables cannot say afterwards is noted when it happens.
WITNESSES = """
CREATE TABLE completed_transitions (task_id bigint);
CREATE TABLE product_writes (task_id bigint);
CREATE FUNCTION note_completed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO completed_transitions VALUES (NEW.id); RETURN NULL; END $$;
CREATE FUNCTION note_product() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO product_writes VALUES (NEW.crawl_task_id); RETURN NULL; END $$;
CREATE TRIGGER note_completed AFTER UPDATE OF status ON crawl_tasks FOR EACH ROW
    WHEN (NEW.status = 'completed' AND OLD.status <> 'completed') EXECUTE FUNCTION note_completed();
CREATE TRIGGER note_product AFTER INSERT OR UPDATE ON products FOR EACH ROW
    EXECUTE FUNCTION note_product();
"""


@dataclass(frozen=True, slots=True)
class World:
    tasks: Tasks
    shops: list[Shop]
    workers: list[Worker]
    rabbitmq: RabbitMQ
    minio: MinIO
    opensearch: OpenSearch
    index: Searched

    async def completed(self) -> int:
        rows = await self.tasks.sql("SELECT count(*) FROM crawl_tasks WHERE status = 'completed'")
        return int(rows[0][0])

    async def until_completed(self, number: int) -> None:
        async def enough() -> bool:
            return await self.completed() >= number

        await eventually(enough, LIMIT)


@pytest.fixture
def shops() -> Iterator[list[Shop]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Shop().open()) for _ in range(SHOPS)]


@pytest.fixture
async def index(opensearch: OpenSearch, database: Database) -> AsyncIterator[Searched]:
    async with searched(opensearch, database, INDEXED_PRODUCTS) as index:
        yield index


@pytest.fixture
def tasks(
    database: Database,
    settings: Settings,
    rabbitmq: RabbitMQ,
    minio: MinIO,
    index: Searched,
    monkeypatch: pytest.MonkeyPatch,
) -> Tasks:
    with wired(rabbitmq) as wire:
        wire.clean()
    changes = {"dispatch_resend_after": 2.0, "archive_url": new_bucket(minio, monkeypatch)}
    return Tasks(database, by_celery(index.settings(settings), rabbitmq, **changes))


async def fill(tasks: Tasks, shops: list[Shop]) -> None:
    await tasks.sql(WITNESSES)
    for shop in shops:
        await tasks.add(shop.add("p0"), status="pending", max_retries=100)
        names = [f"p{i}" for i in range(1, TASKS // len(shops))]
        urls = [shop.add(name) for name in names]
        await tasks.sql(
            """
            INSERT INTO crawl_tasks (domain_id, url, url_hash, max_retries)
            SELECT t.domain_id, u.url, sha256(u.url::bytea), 100
              FROM crawl_tasks t, unnest(%s::text[]) AS u (url)
             WHERE t.url = %s
            """,
            urls,
            shop.url("p0"),
        )
    await tasks.sql("UPDATE domains SET crawl_delay_seconds = %s", DELAY)


def faults_of(world: World) -> list[Fault]:
    """What happens, one after the other; each leaves everything running again."""
    broker = world.rabbitmq

    async def restart_application() -> None:
        await asyncio.to_thread(broker.stop_app)
        await asyncio.sleep(LASTS)
        await asyncio.to_thread(broker.start_app)

    async def fill_disk() -> None:
        with broker.disk_alarm():
            await asyncio.sleep(LASTS)

    return [
        world.workers[0].kill_and_replace,
        restart_application,
        lambda: _kill_for_a_while(world.minio),
        world.workers[1].kill_and_replace,
        fill_disk,
        lambda: _kill_for_a_while(world.opensearch),
        lambda: _kill_for_a_while(broker),
        world.workers[0].kill_and_replace,
    ]


async def _kill_for_a_while(server: Server) -> None:
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(LASTS)
    await asyncio.to_thread(server.start)


@pytest.mark.timeout(LIMIT * 4)
async def test_every_task_is_done_once(
    tasks: Tasks,
    shops: list[Shop],
    rabbitmq: RabbitMQ,
    minio: MinIO,
    opensearch: OpenSearch,
    index: Searched,
) -> None:
    await fill(tasks, shops)
    workers = [Worker(tasks), Worker(tasks)]
    world = World(tasks, shops, workers, rabbitmq, minio, opensearch, index)
    try:
        async with running([*beside(tasks.database, tasks.settings), index.feeder.service()]):
            await _live_through(world)
    finally:
        for worker in workers:
            await worker.kill()
    await _each_once(tasks, "completed_transitions")
    await _each_once(tasks, "product_writes")
    statuses = await tasks.sql("SELECT status, count(*) FROM crawl_tasks GROUP BY status")
    assert statuses == [("completed", TASKS)]
    for shop in shops:
        _budget_was_kept(shop)
    await _all_is_archived(tasks)
    await index.client.request("POST", f"{index.prefix}-*/_refresh")
    assert await index.entries("products") == TASKS


async def _live_through(world: World) -> None:
    faults = faults_of(world)
    for number, fault in enumerate(faults, 1):
        await world.until_completed(number * TASKS // (len(faults) + 2))
        await fault()
    await world.until_completed(TASKS)

    async def all_told() -> bool:
        return await world.index.unsent() == 0

    await eventually(all_told, LIMIT)


async def _all_is_archived(tasks: Tasks) -> None:
    """The page of every task can be read, and is what was stored."""
    assert tasks.settings.archive_url is not None
    async with tasks.database.connection() as connection:
        refs = await select_archive_refs(connection)
    assert len(refs) >= TASKS
    assert await broken_refs(open_storage(tasks.settings.archive_url), refs) == []


async def _each_once(tasks: Tasks, table: str) -> None:
    rows = await tasks.sql(
        f"SELECT count(*), count(DISTINCT task_id) FROM {table} WHERE task_id IS NOT NULL"
    )
    assert rows == [(TASKS, TASKS)], table


def _budget_was_kept(shop: Shop) -> None:
    """No more requests than its delay allows, even if workers died with reserved slots."""
    times = sorted(request.at for request in shop.site.log)
    span = times[-1] - times[0]
    # what a machine holds up arrives later than it was sent: some may come at once
    assert len(times) <= span / DELAY + 20
