"""A broker that is unavailable, full or killed: nothing is lost, and work continues."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from forager.checks import Level
from forager.db.database import Database
from forager.db.outages import SAID_EVERY
from forager.dispatch.broker import Broker, BrokerUnavailable
from forager.dispatch.checks import check_broker
from forager.dispatch.message import Band, Route, TaskMessage
from forager.dispatch.relay import Relay
from forager.dispatch.services import Sweeper
from forager.logs import configure_logs
from forager.metrics.catalog import DISPATCHED
from forager.outbox.message import RetryPolicy
from forager.services.supervisor import running
from forager.settings import Settings
from servers.shop import Shop
from services.dispatching import beside, by_celery, wired, worker
from services.servers.rabbitmq import RabbitMQ
from support.waiting import eventually
from tasks.working import Tasks

NORMAL = Route("crawl", Band.NORMAL)
BAD = Route("crawl", Band.NORMAL, "bad")


@pytest.fixture
def tasks(database: Database, settings: Settings, rabbitmq: RabbitMQ) -> Tasks:
    with wired(rabbitmq) as wire:
        wire.clean()
    return Tasks(database, by_celery(settings, rabbitmq, dispatch_resend_after=0.5))


@pytest.fixture
def broker(rabbitmq: RabbitMQ) -> Iterator[Broker]:
    broker = Broker(rabbitmq.url)
    yield broker
    broker.close()


async def outbox(tasks: Tasks) -> int:
    rows = await tasks.sql("SELECT count(*) FROM outbox")
    return int(rows[0][0])


async def all_done(tasks: Tasks) -> bool:
    rows = await tasks.sql("SELECT count(*) FROM crawl_tasks WHERE status <> 'completed'")
    return bool(rows[0][0] == 0)


async def said_that_it_is_away(logs: list[MutableMapping[str, Any]]) -> bool:
    return any(relay_failed(line) for line in logs)


def relay_failed(line: MutableMapping[str, Any]) -> bool:
    event = str(line["event"])
    return event.startswith("service failed") and line["service"] == "dispatch relay"


async def test_an_unavailable_broker_costs_nothing(
    tasks: Tasks, shop: Shop, rabbitmq: RabbitMQ
) -> None:
    await tasks.add(*[shop.add(f"p{i}") for i in range(20)], status="pending")
    DISPATCHED.take()
    configure_logs("warning")
    began = time.monotonic()
    async with worker(tasks):
        await asyncio.to_thread(rabbitmq.stop_app)
        try:
            with capture_logs() as logs:
                async with running(beside(tasks.database, tasks.settings)):
                    await eventually(lambda: said_that_it_is_away(logs))
                    before = await outbox(tasks)
                    failed = 0.0

                    async def failed_often() -> bool:
                        nonlocal failed
                        failed += sum(DISPATCHED.take().values())
                        return failed > 3 * before

                    await eventually(failed_often)
                    sweeper = Sweeper(tasks.database, tasks.settings)
                    with pytest.raises(BrokerUnavailable):
                        await sweeper.run_once()
                    sweeper.close()
                    found = await check_broker(tasks.database, tasks.settings)
                    assert found.level is Level.FAIL
                    assert "none is lost" in found.message
            assert 0 < before <= await outbox(tasks) <= 20, "one message for a task at most"
            said = [line for line in logs if relay_failed(line)]
            assert len(said) <= 1 + (time.monotonic() - began) // SAID_EVERY
        finally:
            await asyncio.to_thread(rabbitmq.start_app)
        async with running(beside(tasks.database, tasks.settings)):
            await eventually(lambda: all_done(tasks))
    assert (await check_broker(tasks.database, tasks.settings)).level is Level.OK


async def test_a_full_disk_blocks_and_loses_nothing(
    tasks: Tasks, shop: Shop, rabbitmq: RabbitMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.dispatch.broker.CONFIRM_LIMIT", 2.0)
    (task_id,) = await tasks.add(shop.add("a"), status="pending")
    await tasks.schedule()
    relay = Relay(tasks.database, tasks.settings)
    try:
        with rabbitmq.disk_alarm():
            with pytest.raises(BrokerUnavailable):
                await relay.run_once()
            assert await outbox(tasks) == 1, "not confirmed, not deleted"
        assert await eventually(lambda: _sent(relay)) == 1
        assert await outbox(tasks) == 0
    finally:
        relay.close()
    async with worker(tasks):
        await tasks.when(task_id, "completed")


async def _sent(relay: Relay) -> int:
    try:
        return await relay.run_once()
    except BrokerUnavailable:  # the alarm is not over at once
        return 0


async def test_what_was_confirmed_outlives_the_broker(
    tasks: Tasks, broker: Broker, rabbitmq: RabbitMQ
) -> None:
    broker.publish([TaskMessage(NORMAL, [number]) for number in range(1, 51)])
    await asyncio.to_thread(rabbitmq.kill)
    with pytest.raises(BrokerUnavailable):
        broker.publish([TaskMessage(NORMAL, [51])])
    await asyncio.to_thread(rabbitmq.start)

    async def all_there() -> bool:
        try:
            # its number grows while the broker reads its log
            return broker.depths([NORMAL.queue]) == {NORMAL.queue: 50}
        except BrokerUnavailable:
            return False

    await eventually(all_there)


async def test_a_deleted_queue_is_created_again(
    tasks: Tasks, broker: Broker, rabbitmq: RabbitMQ
) -> None:
    broker.publish([TaskMessage(NORMAL, [1])])
    with wired(rabbitmq) as wire:
        wire.channel.queue_delete(NORMAL.queue)
    high = Route("crawl", Band.HIGH)
    refused = broker.publish([TaskMessage(high, [2]), TaskMessage(NORMAL, [2])])
    assert list(refused) == [1]
    assert broker.publish([TaskMessage(NORMAL, [2])]) == {}
    assert broker.depths([NORMAL.queue]) == {NORMAL.queue: 1}


async def test_a_bad_queue_is_skipped_and_the_others_are_served(
    tasks: Tasks, shop: Shop, rabbitmq: RabbitMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.dispatch.relay.RETRY", RetryPolicy(3600.0, 3600.0))
    ids = await tasks.add(shop.add("a"), shop.add("b"))
    await tasks.sql("UPDATE crawl_tasks SET updated_at = now() - interval '3 seconds'")
    await tasks.sql("INSERT INTO domains (domain_name, base_url, region) VALUES ('x', 'x', 'bad')")
    for _ in range(3):
        await tasks.sql(
            "INSERT INTO outbox (topic, lane, ref_id, payload)"
            " SELECT 'crawl', 2, id, %s FROM domains",
            ids[:1],
        )
    relay, sweeper = Relay(tasks.database, tasks.settings), Sweeper(tasks.database, tasks.settings)
    with wired(rabbitmq) as wire:
        try:
            # another program created a queue of another type
            wire.channel.queue_declare(BAD.queue, durable=True, auto_delete=False)
            assert await relay.run_once() == 6
            assert await relay.run_once() == 0, "it backs off, and sends nothing twice"
            left = await tasks.sql(
                "SELECT d.region FROM outbox o JOIN domains d ON d.id = o.ref_id"
            )
            assert left == 3 * [("bad",)]
            wire.channel.queue_purge(NORMAL.queue)
            assert await eventually(sweeper.run_once) == 1
            assert await relay.run_once() == 1
        finally:
            relay.close()
            sweeper.close()
            wire.channel.queue_delete(BAD.queue)


async def test_of_a_queue_that_is_full_only_its_messages_are_refused(
    tasks: Tasks, broker: Broker, rabbitmq: RabbitMQ
) -> None:
    pattern = "^" + BAD.queue.replace(".", "[.]") + "$"
    policy = '{"max-length":1,"overflow":"reject-publish"}'
    messages = [TaskMessage(BAD, [1]), TaskMessage(NORMAL, [2])]

    async def refused() -> dict[int, str]:
        return broker.publish(messages)

    await asyncio.to_thread(
        rabbitmq.control, "set_policy", "few", pattern, policy, "--apply-to", "queues"
    )
    try:
        assert list(await eventually(refused)) == [0]
        assert broker.publish(messages[1:]) == {}, "the connection is as good as before"
    finally:
        await asyncio.to_thread(rabbitmq.control, "clear_policy", "few")
        with wired(rabbitmq) as wire:
            wire.channel.queue_delete(BAD.queue)


async def test_a_broker_elsewhere_is_not_found(
    tasks: Tasks, settings: Settings, rabbitmq: RabbitMQ
) -> None:
    wrong = by_celery(settings, rabbitmq, broker_url="amqp://guest:s3cret@127.0.0.1:1//")
    found = await check_broker(tasks.database, wrong)
    assert found.level is Level.FAIL
    assert "s3cret" not in found.message
    refused = by_celery(
        settings, rabbitmq, broker_url=rabbitmq.url.replace("guest:guest", "guest:s3cret")
    )
    found = await check_broker(tasks.database, refused)
    assert found.level is Level.FAIL
    assert "s3cret" not in found.message


async def test_workers_come_back_with_the_broker(
    tasks: Tasks, shop: Shop, rabbitmq: RabbitMQ
) -> None:
    async with running(beside(tasks.database, tasks.settings)), worker(tasks):
        (first,) = await tasks.add(shop.add("a"), status="pending")
        await tasks.when(first, "completed")
        await asyncio.to_thread(rabbitmq.kill)
        (second,) = await tasks.add(shop.add("b"), status="pending")
        await asyncio.to_thread(rabbitmq.start)
        await eventually(lambda: all_done(tasks))
    assert await tasks.attempts(second) == [("download", "ok"), ("parse", "ok")]
