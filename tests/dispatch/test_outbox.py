"""Hints in the outbox: written with their tasks, in order, once, and deleted soon."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from pydantic import SecretStr

from forager.cli.system.worker import scheduler_services
from forager.db.database import Database
from forager.dispatch import relay, store
from forager.dispatch.message import Band, Route, TaskMessage
from forager.dispatch.relay import LANES, task_messages
from forager.dispatch.services import delete_unused_hints
from forager.outbox import service as outbox
from forager.outbox.recovery import OutboxRecovery
from forager.services.report import identify
from forager.services.store import upsert_process
from forager.services.supervisor import running
from forager.settings import Dispatch, Settings
from forager.tasks.hints import send_hints
from forager.tasks.scheduler import Scheduler
from forager.tasks.store.hints import HINT_SIZE, touch
from forager.tasks.workers.recovery import TaskRecovery
from support.sql import execute, fetch_value
from support.waiting import eventually
from tasks.tasks_at_hand import make_domain, make_task


@pytest.fixture
def by_celery(settings: Settings) -> Settings:
    changes = {"dispatch": Dispatch.CELERY, "broker_url": SecretStr("amqp://127.0.0.1:1//")}
    return settings.model_copy(update=changes)


class Hint(NamedTuple):
    stage: str
    band: int
    region: str | None
    task_ids: list[int]


async def hints(
    database: Database, *, task_proxies: bool = False, early: bool = True
) -> list[Hint]:
    """What a relay would publish now; it stays. `early`: also hints that are not due yet."""
    if early:
        await execute(database, "UPDATE outbox SET due_at = now()")
    async with database.connection() as connection:
        messages = await outbox.claim(connection, LANES, limit=100, lease=0.0)
        found = await task_messages(connection, messages, task_proxies=task_proxies)
    return [
        Hint(each.route.stage, each.route.band, each.route.region, list(each.task_ids))
        for each in found.values()
    ]


async def hinted(database: Database, settings: Settings, *task_ids: int) -> None:
    async with database.transaction() as connection:
        await send_hints(connection, settings, task_ids)


async def forgotten(database: Database, *routes: Route) -> list[int]:
    async with database.transaction() as connection:
        found = await store.lock_forgotten(
            connection, waited=30.0, lost=300.0, busy=routes, limit=100, task_proxies=False
        )
        await touch(connection, found)
    return found


async def test_the_scheduler_writes_messages_in_its_transaction(
    database: Database, by_celery: Settings
) -> None:
    domain_id = await make_domain(database, "a.example", crawl_delay_seconds=0)
    task_id = await make_task(database, domain_id)
    tick = await Scheduler(database, by_celery).run_once()
    assert tick.queued == 1
    # the same transaction wrote both
    query = """
        SELECT t.xmin::text = o.xmin::text FROM crawl_tasks t, outbox o
    """
    assert await fetch_value(database, query) is True
    assert await hints(database) == [Hint("crawl", Band.NORMAL, None, [task_id])]


async def test_with_postgresql_alone_no_message_is_written(
    database: Database, settings: Settings
) -> None:
    domain_id = await make_domain(database, "a.example", crawl_delay_seconds=0)
    await make_task(database, domain_id)
    assert (await Scheduler(database, settings).run_once()).queued == 1
    assert await hints(database) == []


async def test_messages_of_a_rolled_back_transaction_are_not_sent(
    database: Database, by_celery: Settings
) -> None:
    task_id = await make_task(database, await make_domain(database, "a.example"), status="queued")
    async with database.connection() as connection, connection.transaction(force_rollback=True):
        await send_hints(connection, by_celery, [task_id])
    assert await hints(database) == []


async def test_a_message_is_of_one_domain_stage_and_band(
    database: Database, by_celery: Settings
) -> None:
    home = await make_domain(database, "a.example")
    eu = await make_domain(database, "b.example", region="eu")
    states = [(home, "queued", 5), (home, "queued", 2), (home, "queued", 9)]
    states += [(eu, "queued", 5), (eu, "downloaded", 5), (home, "pending", 5)]
    ids = [
        await make_task(database, domain, status=status, priority=priority)
        for domain, status, priority in states
    ]
    await hinted(database, by_celery, *ids)
    first, *between, last = await hints(database)
    assert (first, last) == (
        Hint("crawl", Band.HIGH, None, [ids[1]]),
        Hint("crawl", Band.LOW, None, [ids[2]]),
    )
    assert sorted(between, key=lambda hint: hint.task_ids) == [
        Hint("crawl", Band.NORMAL, None, [ids[0]]),
        Hint("crawl", Band.NORMAL, "eu", [ids[3]]),
        Hint("parse", Band.NORMAL, "eu", [ids[4]]),
    ]


async def test_many_tasks_are_several_messages(database: Database, by_celery: Settings) -> None:
    domain_id = await make_domain(database, "a.example")
    ids = [await make_task(database, domain_id, status="queued") for _ in range(HINT_SIZE + 1)]
    await hinted(database, by_celery, *ids)
    found = await hints(database)
    assert sorted(len(hint.task_ids) for hint in found) == [1, HINT_SIZE]
    assert sorted(task for hint in found for task in hint.task_ids) == ids


async def test_the_worker_that_downloaded_a_page_has_time_to_parse_it(
    database: Database, by_celery: Settings
) -> None:
    domain_id = await make_domain(database, "a.example")
    ids = [await make_task(database, domain_id, status="downloaded") for _ in range(2)]
    await hinted(database, by_celery, *ids)
    await execute(database, "UPDATE outbox SET due_at = due_at + interval '10 minutes'")
    assert await hints(database, early=False) == []
    await execute(database, "UPDATE crawl_tasks SET status = 'completed' WHERE id = %s", ids[0])
    assert await hints(database) == [Hint("parse", Band.NORMAL, None, [ids[1]])]
    await execute(database, "UPDATE crawl_tasks SET status = 'completed'")
    assert await hints(database) == [], "both are parsed"


class FakeBroker:
    """Takes messages, except for one queue."""

    def __init__(self, _url: str) -> None:
        self.published: list[TaskMessage] = []
        self.refuses: str | None = None

    async def do(self, work: Callable[[Any], Any]) -> Any:
        return work(self)

    def publish(self, messages: Sequence[TaskMessage]) -> dict[int, str]:
        refused = {n: "no" for n, each in enumerate(messages) if each.route.queue == self.refuses}
        self.published += [each for n, each in enumerate(messages) if n not in refused]
        return refused

    def close(self) -> None:
        pass


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    fake = FakeBroker("")
    monkeypatch.setattr(relay, "BrokerThread", lambda _url: fake)
    return fake


async def test_messages_of_one_queue_that_are_refused_wait_alone(
    database: Database, by_celery: Settings, broker: FakeBroker
) -> None:
    home = await make_domain(database, "a.example")
    eu = await make_domain(database, "b.example", region="eu")
    ids = [await make_task(database, each, status="queued") for each in (home, eu)]
    await hinted(database, by_celery, *ids)
    broker.refuses = Route("crawl", Band.NORMAL, "eu").queue
    runs = relay.Relay(database, by_celery)
    assert [await runs.run_once(), await runs.run_once()] == [2, 0], "it backs off"
    assert [each.task_ids for each in broker.published] == [[ids[0]]]
    kept = "SELECT payload, attempts, last_error, claimed_by FROM outbox"
    async with database.connection() as connection:
        assert await (await connection.execute(kept)).fetchall() == [([ids[1]], 1, "no", None)]
    broker.refuses = None
    await execute(database, "UPDATE outbox SET due_at = now()")
    assert await runs.run_once() == 1
    assert await fetch_value(database, "SELECT count(*) FROM outbox") == 0


async def test_messages_of_a_dead_relay_are_published_by_another(
    database: Database, by_celery: Settings, broker: FakeBroker
) -> None:
    task_id = await make_task(database, await make_domain(database, "a.example"), status="queued")
    await hinted(database, by_celery, task_id)
    dead = identify("scheduler", "another machine 1 2")
    async with database.connection() as connection:
        await upsert_process(connection, dead, [])
        assert len(await outbox.claim(connection, LANES, lease=3600, claimed_by=dead.id)) == 1
    await execute(database, "UPDATE service_processes SET last_seen = now() - interval '1 day'")
    runs, recovery = relay.Relay(database, by_celery), OutboxRecovery(database, by_celery)
    assert await runs.run_once() == 0
    assert [await recovery.run_once(), await recovery.run_once()] == [0, 1], "silent twice"
    assert await runs.run_once() == 1
    assert [each.task_ids for each in broker.published] == [[task_id]]


async def test_the_scheduler_command_claims_messages_in_its_own_name(
    database: Database, by_celery: Settings, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages of a scheduler that is killed are recovered by its process id."""
    task_id = await make_task(database, await make_domain(database, "a.example"), status="queued")
    await hinted(database, by_celery, task_id)
    claim, claimants = outbox.claim, []

    async def noted(*args: Any, claimed_by: UUID | None, **options: Any) -> Any:
        claimants.append(claimed_by)
        return await claim(*args, claimed_by=claimed_by, **options)

    monkeypatch.setattr(outbox, "claim", noted)
    process = identify("scheduler", None)
    async with database.connection() as connection:
        await upsert_process(connection, process, [])
    services = scheduler_services(database, by_celery, process.id)
    async with running(services):
        await eventually(lambda: broker.published)
    assert set(claimants) == {process.id}


async def test_urgent_tasks_are_published_first(
    database: Database, by_celery: Settings, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "BATCH", 2)
    domain_id = await make_domain(database, "a.example")
    tasks = [(9, "queued"), (5, "queued"), (5, "downloaded"), (1, "queued")]
    ids = [await make_task(database, domain_id, status=s, priority=p) for p, s in tasks]
    await hinted(database, by_celery, *ids)
    await execute(database, "UPDATE outbox SET due_at = now()")
    runs = relay.Relay(database, by_celery)
    assert [await runs.run_once(), await runs.run_once()] == [2, 2]
    assert [each.task_ids for each in broker.published] == [[ids[3]], [ids[2]], [ids[1]], [ids[0]]]


async def test_tasks_of_a_dead_worker_are_sent_again(
    database: Database, by_celery: Settings
) -> None:
    domain_id = await make_domain(database, "a.example")
    crawling = await make_task(database, domain_id, status="crawling")
    parsing = await make_task(database, domain_id, status="parsing")
    recovery = TaskRecovery(database, by_celery)
    assert len([*await recovery.run_once(), *await recovery.run_once()]) == 2
    found = {hint.stage: hint.task_ids for hint in await hints(database)}
    assert found == {"crawl": [crawling], "parse": [parsing]}


# --- where the proxies are -----------------------------------------------------------------------


async def make_proxy(database: Database, region: str | None) -> None:
    add = "INSERT INTO proxies (proxy_url, proxy_port, region) VALUES (%s, 8080, %s)"
    await execute(database, add, f"{region or 'any'}.example", region)


async def test_downloads_are_sent_to_the_region_of_the_proxies(
    database: Database, by_celery: Settings
) -> None:
    domain_id = await make_domain(database, "a.example", use_proxies=True)
    crawl = await make_task(database, domain_id, status="queued", updated_in=-60)
    parse = await make_task(database, domain_id, status="downloaded")
    await hinted(database, by_celery, crawl, parse)

    async def regions(**options: bool) -> dict[str, str | None]:
        return {hint.stage: hint.region for hint in await hints(database, **options)}

    assert await regions() == {"crawl": None, "parse": None}, "there is no proxy at all"
    await make_proxy(database, "us")
    await make_proxy(database, "eu")
    assert await regions() == {"crawl": "eu", "parse": None}
    add = "INSERT INTO workers (id, host, pid, version, capacity, role, region) "
    await execute(database, add + "VALUES (gen_random_uuid(), 'h', 1, '1', 1, 'tasks', 'us')")
    assert await regions() == {"crawl": "us", "parse": None}, "a worker runs there"
    async with database.connection() as connection:
        assert sorted(await store.select_regions(connection)) == ["eu", "us"]

    await execute(database, "DELETE FROM outbox")
    assert await forgotten(database, Route("crawl", Band.NORMAL, "us")) == []
    assert await forgotten(database, Route("crawl", Band.NORMAL)) == [crawl]
    await hinted(database, by_celery, crawl)
    await make_proxy(database, None)
    assert await regions() == {"crawl": None}, "all regions share that one"


async def test_only_downloads_through_proxies_follow_them(
    database: Database, by_celery: Settings
) -> None:
    await make_proxy(database, "eu")
    domains: dict[str, dict[str, Any]] = {
        "a": {"use_proxies": False},
        "b": {},
        "c": {"region": "us"},
    }
    for host, columns in domains.items():
        domain_id = await make_domain(database, f"{host}.example", **columns)
        await hinted(database, by_celery, await make_task(database, domain_id, status="queued"))
    assert [hint.region for hint in await hints(database)] == [None, None, "us"]
    by_default = await hints(database, task_proxies=True)
    assert [hint.region for hint in by_default] == [None, "eu", "us"]


# --- what was forgotten --------------------------------------------------------------------------


async def waiting(database: Database, domain_id: int, status: str = "queued", **more: Any) -> int:
    """A task that waits for long."""
    task_id: int = await make_task(database, domain_id, status=status, updated_in=-60, **more)
    return task_id


async def test_what_waits_too_long_is_found_once(database: Database) -> None:
    domain_id = await make_domain(database, "a.example")
    queued = await waiting(database, domain_id)
    downloaded = await waiting(database, domain_id, "downloaded")
    await make_task(database, domain_id, status="queued")
    await waiting(database, domain_id, "pending")
    assert sorted(await forgotten(database)) == [queued, downloaded]
    assert await forgotten(database) == [], "its wait has restarted"


async def test_what_is_on_its_way_is_not_forgotten(database: Database, by_celery: Settings) -> None:
    task_id = await waiting(database, await make_domain(database, "a.example"))
    await hinted(database, by_celery, task_id)
    assert await forgotten(database) == [], "it is in the outbox, however long that takes"
    await execute(database, "DELETE FROM outbox")
    assert await forgotten(database, Route("crawl", Band.NORMAL)) == [], "messages wait there"
    others = [Route("crawl", Band.HIGH), Route("parse", Band.NORMAL)]
    assert await forgotten(database, *others, Route("crawl", Band.NORMAL, "eu")) == [task_id]


async def test_a_queue_that_is_never_empty_hides_no_lost_hint(database: Database) -> None:
    domain_id = await make_domain(database, "a.example")
    lost = await make_task(database, domain_id, status="queued", updated_in=-600)
    await waiting(database, domain_id)
    assert await forgotten(database, Route("crawl", Band.NORMAL)) == [lost]
    assert await forgotten(database, Route("crawl", Band.NORMAL)) == [], "sent once more, not twice"


async def test_what_is_held_waits_for_a_person(database: Database) -> None:
    held = await make_domain(database, "a.example", task_hold="paused")
    off = await make_domain(database, "b.example", is_active=False)
    await waiting(database, held, "downloaded")
    await waiting(database, off)
    await waiting(database, await make_domain(database, "c.example"), hold="stopped")
    read = await waiting(database, off, "downloaded")
    assert await forgotten(database) == [read], "its page is there already"
    await execute(database, "UPDATE crawl_tasks SET updated_at = now() - interval '1 hour'")
    await execute(database, "UPDATE task_control SET hold = 'paused'")
    assert await forgotten(database) == []


async def test_looking_for_what_waits_does_not_read_all_tasks(database: Database) -> None:
    domain_id = await make_domain(database, "a.example")
    task_id = await waiting(database, domain_id)
    many = """
        INSERT INTO crawl_tasks (domain_id, url, url_hash, status)
        SELECT %s, 'https://a.example/' || n, sha256(n::text::bytea), 'completed'
          FROM generate_series(1, 5000) AS n
    """
    await execute(database, many, domain_id)
    await execute(database, "ANALYZE crawl_tasks")
    scans = "SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'crawl_tasks'"
    async with database.transaction() as connection:
        found = await store.lock_forgotten(
            connection, waited=30.0, lost=300.0, busy=[], limit=100, task_proxies=False
        )
        assert found == [task_id]
        assert await (await connection.execute(scans)).fetchone() == (0,)


async def test_leftovers_go_where_there_is_no_broker(
    database: Database, by_celery: Settings
) -> None:
    domain_id = await make_domain(database, "a.example")
    await hinted(database, by_celery, await make_task(database, domain_id, status="queued"))
    assert await delete_unused_hints(database) == 0, "others may still use the broker"
    assert await delete_unused_hints(database, older=0.0) == 1
    assert await hints(database) == []
