"""Tasks through a real RabbitMQ: from the scheduler to the product, by Celery workers."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import pytest

from forager.checks import Level
from forager.db.database import Database
from forager.dispatch.application import STAGE_OF, CeleryThread, Inbox, make_app
from forager.dispatch.checks import check_broker
from forager.dispatch.message import DEAD, DELIVERY_LIMIT, Band, Route
from forager.dispatch.relay import Relay
from forager.dispatch.services import Sweeper
from forager.services.supervisor import running
from forager.settings import Settings
from forager.tasks.holds import Holds
from forager.tasks.selection import Selection
from forager.tasks.stages.attempt import Stage
from servers.shop import Shop
from services.dispatching import Wire, beside, by_celery, by_postgres, command, wired, worker
from services.servers.rabbitmq import RabbitMQ
from support.waiting import LIMIT, eventually
from tasks.working import Tasks

NORMAL = Route("crawl", Band.NORMAL)


@pytest.fixture
def wire(rabbitmq: RabbitMQ) -> Iterator[Wire]:
    with wired(rabbitmq) as wire:
        wire.clean()
        yield wire


@pytest.fixture
def tasks(database: Database, settings: Settings, rabbitmq: RabbitMQ, wire: Wire) -> Tasks:
    return Tasks(database, by_celery(settings, rabbitmq))


async def done(tasks: Tasks, number: int) -> None:
    """Wait until this number of tasks is completed."""

    async def all_are() -> bool:
        rows = await tasks.sql("SELECT count(*) FROM crawl_tasks WHERE status = 'completed'")
        return bool(rows[0][0] == number)

    await eventually(all_are)


async def products(tasks: Tasks) -> int:
    rows = await tasks.sql("SELECT count(*) FROM products")
    return int(rows[0][0])


async def completions(tasks: Tasks) -> Counter[int]:
    """How often each task was read and completed."""
    rows = await tasks.sql(
        "SELECT task_id FROM task_attempts WHERE stage = 'parse' AND outcome = 'ok'"
    )
    return Counter(row[0] for row in rows)


# --- every way of running a worker ---------------------------------------------------------------


async def test_from_a_tracked_url_to_its_product(tasks: Tasks, shop: Shop) -> None:
    ids = await tasks.add(*[shop.add(f"p{i}") for i in range(40)], status="pending")
    with command(tasks.settings, "forager", "worker", "--celery", "--no-jobs") as process:
        await done(tasks, 40)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, LIMIT) == 0
    assert await completions(tasks) == Counter(ids)
    assert await products(tasks) == 40
    assert await tasks.sql("SELECT id FROM workers") == []


@pytest.mark.parametrize("pool", ["prefork", "solo", "threads"])
async def test_celerys_own_command(tasks: Tasks, shop: Shop, pool: str) -> None:
    ids = await tasks.add(*[shop.add(f"p{i}") for i in range(20)], status="pending")
    arguments = ["celery", "-A", "forager.dispatch.celery", "worker", "--pool", pool]
    with command(tasks.settings, *arguments, "--concurrency", "2") as process:
        async with running(beside(tasks.database, tasks.settings)):
            await done(tasks, 20)
            rows = await tasks.sql("SELECT count(*) FROM workers WHERE role = 'tasks'")
            assert rows[0][0] <= 2
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, LIMIT) == 0
    assert await completions(tasks) == Counter(ids)
    assert await tasks.sql("SELECT id FROM workers") == [], "each has said goodbye"


async def test_a_warm_stop_gives_back_what_is_not_done(tasks: Tasks, shop: Shop) -> None:
    url = shop.add("slow")
    shop.hang("slow")
    (task_id,) = await tasks.add(url, status="pending")
    async with running(beside(tasks.database, tasks.settings)):
        async with worker(tasks) as first:
            await eventually(lambda: _is(tasks, task_id, "crawling"))
            assert await first.stop() == 0
        assert (await tasks.get(task_id)).retry_count == 0
        shop.behave_again("slow")
        await tasks.forget_permits()
        async with worker(tasks):
            await eventually(lambda: _is(tasks, task_id, "completed"))


async def _is(tasks: Tasks, task_id: int, status: str) -> bool:
    return (await tasks.get(task_id)).status == status


# --- the claim decides ---------------------------------------------------------------------------


async def test_duplicates_and_stale_hints_are_dropped(tasks: Tasks, shop: Shop, wire: Wire) -> None:
    (task_id,) = await tasks.add(shop.add("a"))
    async with worker(tasks):
        for _ in range(5):
            wire.put(NORMAL, [task_id, 999_999])
            wire.put(Route("parse", Band.LOW), [task_id])
        await eventually(lambda: _is(tasks, task_id, "completed"))
        for _ in range(5):
            wire.put(NORMAL, [task_id])
        await _until_empty(wire)
    assert await tasks.attempts(task_id) == [("download", "ok"), ("parse", "ok")]
    assert wire.depth(DEAD) == 0


async def _until_empty(wire: Wire) -> None:
    async def empty() -> bool:
        routes = [Route(stage, band) for stage in ("crawl", "parse") for band in Band]
        return not any(wire.depth(route.queue) for route in routes)

    await eventually(empty)


async def test_another_worker_reads_what_one_has_downloaded(
    tasks: Tasks, shop: Shop, wire: Wire
) -> None:
    (task_id,) = await tasks.add(shop.add("a"))
    async with worker(tasks) as first:
        wire.put(NORMAL, [task_id])
        await eventually(lambda: _is(tasks, task_id, "completed"))
        await first.stop()
    # as if it had died between its stages
    await tasks.sql("UPDATE crawl_tasks SET status = 'downloaded', next_crawl_at = NULL")
    relay = Relay(tasks.database, tasks.settings)
    rows = await tasks.sql("SELECT topic, payload FROM outbox")
    assert rows == [("parse", [task_id])], "written in the commit of the download"
    async with running([relay.service()]), worker(tasks):
        await eventually(lambda: _is(tasks, task_id, "completed"))
    assert shop.hits("a") == 1


async def test_holds_are_kept(tasks: Tasks, shop: Shop) -> None:
    holds = Holds(tasks.database)
    url = shop.add("slow")
    shop.hang("slow")
    (task_id,) = await tasks.add(url, status="pending")
    async with running(beside(tasks.database, tasks.settings)), worker(tasks):
        await eventually(lambda: _is(tasks, task_id, "crawling"))
        await holds.stop(Selection(ids=(task_id,)))
        await eventually(lambda: _is(tasks, task_id, "pending"))
        shop.behave_again("slow")
        (paused,) = await tasks.add(shop.add("a"), status="pending")
        await holds.pause(Selection(domain=shop.host))
        await tasks.schedule()
        assert (await tasks.get(paused)).lease == 0
        await holds.resume(Selection(ids=(task_id,)))
        await holds.resume(Selection(domain=shop.host))
        await eventually(lambda: _is(tasks, paused, "completed"))
        await eventually(lambda: _is(tasks, task_id, "completed"))


async def test_only_workers_of_a_region_hear_of_its_tasks(
    tasks: Tasks, shop: Shop, settings: Settings, rabbitmq: RabbitMQ, wire: Wire
) -> None:
    (tied,) = await tasks.add(shop.add("a"), status="pending")
    await tasks.sql("UPDATE domains SET region = 'eu'")
    route = Route("crawl", Band.NORMAL, "eu")
    async with running(beside(tasks.database, tasks.settings)), worker(tasks):

        async def sent() -> bool:
            return wire.depth(route.queue) > 0

        await eventually(sent)
        assert (await tasks.get(tied)).lease == 0
        async with worker(tasks, by_celery(settings, rabbitmq, region="eu")):
            await eventually(lambda: _is(tasks, tied, "completed"))


# --- priorities ----------------------------------------------------------------------------------


class Noting:
    """An inbox that notes what came."""

    def __init__(self) -> None:
        self.came: list[int] = []

    def put(self, stage: str, task_ids: list[int]) -> None:
        assert stage == "crawl"
        self.came += task_ids

    def after_first_low(self) -> list[int]:
        """By then all queues are consumed."""
        bands = [task_id // 1000 for task_id in self.came]
        return bands[bands.index(Band.LOW) :] if Band.LOW in bands else []


async def test_a_worker_that_is_behind_takes_more_of_the_high_band(
    tasks: Tasks, wire: Wire
) -> None:
    for number in range(400):
        for band in Band:
            wire.put(Route("crawl", band), [band * 1000 + number])
    inbox = Noting()
    app = make_app(tasks.settings, lambda: cast(Inbox, inbox))
    thread = CeleryThread(app)
    thread.start()
    try:

        async def enough() -> bool:
            return len(inbox.after_first_low()) >= 140

        await eventually(enough)
    finally:
        await asyncio.to_thread(thread.stop)
    taken = Counter(inbox.after_first_low()[:140])
    assert taken[Band.HIGH] > taken[Band.NORMAL] > taken[Band.LOW] > 0, taken


# --- what cannot be read -------------------------------------------------------------------------


async def test_what_cannot_be_read_is_put_aside_and_seen(
    tasks: Tasks, shop: Shop, wire: Wire
) -> None:
    (task_id,) = await tasks.add(shop.add("a"))
    known = {"task": "forager.crawl", "id": "1", "lang": "py"}
    unknown = {"task": "os.system", "id": "2", "lang": "py"}
    json = {"content_type": "application/json", "content_encoding": "utf-8"}
    wire.put_raw(NORMAL, b"\x00\xff no message")
    wire.put_raw(NORMAL, b"\x00\xff no json", **json)
    wire.put_raw(NORMAL, b"{}", **json)
    wire.put_raw(NORMAL, b"not json", application_headers=known, **json)
    wire.put_raw(NORMAL, b'[[["1; DROP"]], {}, {}]', application_headers=known, **json)
    wire.put_raw(NORMAL, b"[[[1]], {}, {}]", application_headers=unknown, **json)
    pickled = {"content_type": "application/x-python-serialize", "content_encoding": "binary"}
    wire.put_raw(NORMAL, b"cos\nsystem\n(S'false'\ntR.", application_headers=known, **pickled)
    wire.put(NORMAL, [task_id])
    async with worker(tasks):
        await eventually(lambda: _is(tasks, task_id, "completed"))

        async def aside() -> bool:
            return wire.depth(DEAD) == 7

        await eventually(aside)
    found = await check_broker(tasks.database, tasks.settings)
    assert found.level is Level.WARN
    assert "7 could not be read" in found.message


async def test_what_is_delivered_too_often_is_put_aside(tasks: Tasks, wire: Wire) -> None:
    wire.put(NORMAL, [1])
    for _ in range(DELIVERY_LIMIT + 1):
        message = await eventually(lambda: _get(wire))
        wire.channel.basic_reject(message.delivery_tag, requeue=True)

    async def aside() -> bool:
        return wire.depth(DEAD) == 1

    await eventually(aside)
    assert wire.depth(NORMAL.queue) == 0


async def _get(wire: Wire) -> Any:
    return wire.channel.basic_get(NORMAL.queue)


# --- what was lost -------------------------------------------------------------------------------


async def test_lost_hints_are_sent_again(
    tasks: Tasks, shop: Shop, settings: Settings, rabbitmq: RabbitMQ, wire: Wire
) -> None:
    ids = await tasks.add(*[shop.add(f"p{i}") for i in range(5)], status="pending")
    await tasks.schedule()
    await tasks.sql("DELETE FROM outbox")
    quick = by_celery(settings, rabbitmq, dispatch_resend_after=0.5)
    relay, sweeper = Relay(tasks.database, quick), Sweeper(tasks.database, quick)
    async with running([relay.service(), sweeper.service()]), worker(tasks):
        await done(tasks, len(ids))
    assert await completions(tasks) == Counter(ids)


async def test_nothing_is_sent_again_while_messages_wait(
    tasks: Tasks, shop: Shop, settings: Settings, rabbitmq: RabbitMQ, wire: Wire
) -> None:
    (task_id,) = await tasks.add(shop.add("a"))
    await tasks.sql("UPDATE crawl_tasks SET updated_at = now() - interval '1 hour'")
    wire.put(NORMAL, [12345])
    unhurried = by_celery(settings, rabbitmq, dispatch_resend_after=1_800.0)
    sweeper = Sweeper(tasks.database, unhurried)
    try:

        async def waits() -> bool:
            return wire.depth(NORMAL.queue) == 1

        await eventually(waits)
        assert await sweeper.run_once() == 0, "workers are behind; the hint may be among them"
        wire.channel.queue_purge(NORMAL.queue)
        # how many wait is known a moment later
        assert await eventually(sweeper.run_once) == 1
        assert await sweeper.run_once() == 0, "it is in the outbox"
    finally:
        sweeper.close()
    assert (await tasks.get(task_id)).status == "queued"


# --- switching -----------------------------------------------------------------------------------


@pytest.mark.parametrize("to_celery", [True, False])
async def test_switching_in_the_middle_loses_nothing(
    tasks: Tasks, shop: Shop, *, to_celery: bool
) -> None:
    """Half of the tasks one way, half the other, with both kinds of worker all the time."""
    celery, postgres = tasks.settings, by_postgres(tasks.settings)
    before, after = (postgres, celery) if to_celery else (celery, postgres)
    ids = await tasks.add(*[shop.add(f"p{i}") for i in range(60)], status="pending")
    async with worker(tasks, celery), worker(tasks, postgres):
        async with running(beside(tasks.database, before)):

            async def half() -> bool:
                rows = await tasks.sql(
                    "SELECT count(*) FROM crawl_tasks WHERE status = 'completed'"
                )
                return bool(rows[0][0] >= 20)

            await eventually(half)
        async with running(beside(tasks.database, after)):
            await done(tasks, len(ids))
    assert await completions(tasks) == Counter(ids)
    assert await products(tasks) == len(ids)


async def test_a_worker_without_messages_finds_everything_by_itself(
    tasks: Tasks, shop: Shop, wire: Wire
) -> None:
    ids = await tasks.add(*[shop.add(f"p{i}") for i in range(5)], status="pending")
    await tasks.schedule()
    async with worker(tasks, by_postgres(tasks.settings)):
        await done(tasks, len(ids))
    assert await tasks.sql("SELECT count(*) FROM outbox") != [(0,)], "no message was written"


def test_stages_have_their_queues() -> None:
    assert set(STAGE_OF.values()) == set(Stage)
