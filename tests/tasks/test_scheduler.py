from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import psycopg
import pytest
from psycopg import AsyncCursor

from forager.clock import local_time
from forager.db.database import Connection, Database
from forager.services.service import SKIPPED
from forager.settings import Settings
from forager.tasks.allowance import DomainLoad, TickPace, allowance
from forager.tasks.scheduler import Scheduler, SchedulerTick
from forager.tasks.store import scheduling as store
from forager.tasks.task import CHANNEL
from support.sql import execute, fetch_value
from support.waiting import eventually
from tasks.tasks_at_hand import in_state, make_domain, make_task, statuses

PACE = TickPace(window=3.0, proxies=4, task_proxies=False)


@pytest.fixture
def scheduler(database: Database, settings: Settings) -> Scheduler:
    return Scheduler(database, settings)


# --- budgets ----------------------------------------------------------------------------------


def load(**changes: Any) -> DomainLoad:
    values: dict[str, Any] = {
        "id": 1,
        "name": "shop.example",
        "delay": None,
        "concurrency": None,
        "slow_delay": 0.0,
        "per_proxy_only": False,
        "use_proxies": None,
        "is_active": True,
        "is_on_hold": False,
        "blocked_for": 0.0,
        "slot_in": 0.0,
        "queued": 0,
        "crawling": 0,
        "priorities": [5],
    }
    return DomainLoad(**values | changes)


@pytest.mark.parametrize(
    ("changes", "number"),
    [
        ({}, 4),  # one per second, from now to the third second
        ({"queued": 1}, 3),
        ({"queued": 2, "crawling": 3}, 0),
        ({"crawling": 5}, 0),
        ({"delay": 60.0}, 1),
        ({"delay": 60.0, "crawling": 1}, 0),
        ({"delay": 60.0, "slot_in": 40.0}, 0),
        ({"delay": 0.5}, 6),
        ({"delay": 0.5, "slow_delay": 9.5}, 1),
        ({"delay": 0.0}, 600),
        ({"name": "localhost:8000"}, 600),
        ({"blocked_for": 2.5}, 1),
        ({"blocked_for": 600.0}, 0),
        ({"is_active": False}, 0),
        ({"is_on_hold": True}, 0),
        ({"use_proxies": True}, 4),
        ({"use_proxies": True, "per_proxy_only": True}, 12),  # four in a second
    ],
)
def test_what_a_budget_can_use(changes: dict[str, Any], number: int) -> None:
    assert allowance(load(**changes), PACE) == number


def test_robots_delay_comes_before_the_domains() -> None:
    assert allowance(load(delay=0.5), PACE, robots_delay=30.0) == 1


# --- ticks ------------------------------------------------------------------------------------


async def test_completed_tasks_wake_when_their_time_has_come(
    database: Database, scheduler: Scheduler
) -> None:
    domain = await make_domain(database, "a.example")
    due = await make_task(database, domain, status="completed", next_crawl_in=-60, retry_count=2)
    later = await make_task(database, domain, status="completed", next_crawl_in=60)
    tick = await scheduler.run_once()
    assert (tick.led, tick.woken, tick.queued) == (True, 1, 1)
    assert await statuses(database) == {due: "queued", later: "completed"}
    row = "retry_count = 0 AND next_crawl_at IS NULL AND scheduled_at < now() - interval '59 s'"
    assert await fetch_value(database, f"SELECT {row} FROM crawl_tasks WHERE id = %s", due)
    assert await fetch_value(database, "SELECT ticked_at IS NOT NULL FROM task_control")
    assert (await scheduler.run_once()).queued == 0


async def test_order_is_priority_then_due_time_then_popularity(
    database: Database, scheduler: Scheduler
) -> None:
    domain = await make_domain(database, "a.example", crawl_delay_seconds=60)
    last = await make_task(database, domain, priority=7, scheduled_in=-9000, popularity=9)
    second = await make_task(database, domain, priority=2, scheduled_in=-60)
    not_due = await make_task(database, domain, priority=1, scheduled_in=60)
    await execute(
        database, "UPDATE crawl_tasks SET scheduled_at = '2020-01-02' WHERE id = %s", second
    )
    plain, popular = [
        await make_task(database, domain, priority=2, popularity=score) for score in (1.0, 5.0)
    ]
    await execute(
        database,
        "UPDATE crawl_tasks SET scheduled_at = '2020-01-01' WHERE id = ANY(%s)",
        [plain, popular],
    )
    order = []
    while (await scheduler.run_once()).queued:
        (queued,) = await in_state(database, "queued")
        order.append(queued)
        await execute(
            database, "UPDATE crawl_tasks SET status = 'downloaded' WHERE id = %s", queued
        )
    assert order == [popular, plain, second, last]
    assert await in_state(database, "pending") == [not_due]


async def test_no_domain_takes_more_than_its_budget(
    database: Database, scheduler: Scheduler
) -> None:
    busy = await make_domain(database, "busy.example", crawl_delay_seconds=1)
    slow = await make_domain(database, "slow.example", crawl_delay_seconds=60)
    fast = await make_domain(database, "fast.example", crawl_delay_seconds=0)
    for number in range(1, 31):
        for domain in (busy, slow, fast):
            await make_task(database, domain, number, priority=1 if domain == busy else 9)
    assert (await scheduler.run_once()).queued == 4 + 1 + 30
    assert (await scheduler.run_once()).queued == 0
    # what is being downloaded counts; what is downloaded no longer does
    await execute(
        database,
        "UPDATE crawl_tasks SET status = 'downloaded' WHERE status = 'queued' AND domain_id = %s",
        busy,
    )
    assert (await scheduler.run_once()).queued == 4


@pytest.mark.parametrize(
    "hold",
    [
        "UPDATE task_control SET hold = 'paused'",
        "UPDATE domains SET task_hold = 'stopped'",
        "UPDATE crawl_tasks SET hold = 'paused'",
        "UPDATE domains SET is_active = false",
        "UPDATE domains SET blocked_until = now() + interval '1 hour'",
    ],
)
async def test_what_is_held_or_off_is_not_queued(
    database: Database, scheduler: Scheduler, hold: str
) -> None:
    domain = await make_domain(database, "a.example")
    task = await make_task(database, domain)
    queued = await make_task(database, domain, status="queued")
    await execute(database, hold)
    tick = await scheduler.run_once()
    assert (tick.queued, tick.withdrawn) == (0, 1)
    assert await in_state(database, "pending") == [task, queued]


async def test_a_robots_delay_that_is_known_is_kept(
    database: Database, scheduler: Scheduler
) -> None:
    domain = await make_domain(database, "shop.example", crawl_delay_seconds=0)
    for number in range(1, 9):
        await make_task(database, domain, number)
    await execute(
        database,
        """
        INSERT INTO robots_files (origin, status, body, fetched_at, expires_at)
        VALUES ('https://www.shop.example', 200, 'User-agent: *\nCrawl-delay: 20', now(), now())
        """,
    )
    assert (await scheduler.run_once()).queued == 1


async def test_workers_are_notified(database: Database, scheduler: Scheduler) -> None:
    await make_task(database, await make_domain(database, "a.example"))
    async with aclosing(database.notifications(CHANNEL)) as notifications:
        await anext(notifications)
        await scheduler.run_once()
        async with asyncio.timeout(60):
            await anext(notifications)


async def test_schedulers_at_the_same_time_keep_the_budget(
    database: Database, settings: Settings
) -> None:
    domains = [await make_domain(database, f"{n}.example") for n in range(5)]
    for domain in domains:
        for number in range(1, 11):
            await make_task(database, domain, number)
    schedulers = [Scheduler(database, settings) for _ in range(6)]
    ticks = await asyncio.gather(*(one.run_once() for one in schedulers for _ in range(3)))
    assert sum(tick.queued for tick in ticks) == 20
    assert len(await in_state(database, "queued")) == 20


async def test_one_that_hangs_in_its_tick_stops_no_other(
    database: Database, scheduler: Scheduler, database_url: str
) -> None:
    """A scheduler that is killed in the middle of a tick leaves neither a lock nor half a tick."""
    task = await make_task(database, await make_domain(database, "a.example"))
    script = """
import sys, psycopg, time
from forager.tasks.store import scheduling
connection = psycopg.connect(sys.argv[1])
connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (scheduling._LEADER,))
connection.execute("UPDATE crawl_tasks SET status = 'queued'")
print("in the middle", flush=True)
time.sleep(600)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", script, database_url], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "in the middle\n"
        tick = await scheduler.run_once()
        assert (tick.led, tick.queued) == (False, 0)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(10)
        assert child.stdout is not None
        child.stdout.close()

    async def leading() -> list[int]:
        tick = await scheduler.run_once()
        return [tick.queued] if tick.led else []

    # the server has yet to notice that the line is gone
    assert await eventually(leading) == [1]
    assert await in_state(database, "queued") == [task]


async def test_a_task_on_hold_is_left_out(
    database: Database, scheduler: Scheduler, database_url: str
) -> None:
    domain = await make_domain(database, "a.example")
    first, second = [await make_task(database, domain, number) for number in (1, 2)]
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute("SELECT FROM crawl_tasks WHERE id = %s FOR UPDATE", (first,))
        assert (await scheduler.run_once()).queued == 1
    assert await in_state(database, "queued") == [second]


# --- what a tick reads ------------------------------------------------------------------------

WAITING = 20_000


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


async def test_a_tick_reads_what_is_due_and_not_what_waits(
    database: Database, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statistics are older than most rows, as after an import."""
    for number in range(20):
        await make_domain(database, f"{number}.example")
    await execute(database, "ANALYZE domains, crawl_tasks")
    await execute(
        database,
        """
        INSERT INTO crawl_tasks (domain_id, url, url_hash, status, priority, scheduled_at,
                                 next_crawl_at, hold)
        SELECT (SELECT min(id) FROM domains) + n %% 20, n::text, sha256(n::text::bytea),
               CASE n %% 4 WHEN 0 THEN 'completed' WHEN 1 THEN 'failed' ELSE 'pending' END,
               1 + n %% 10,
               now() + CASE WHEN n %% 404 = 2 THEN -1 ELSE 1 END * interval '1 day',
               CASE WHEN n %% 4 = 0 THEN now() + interval '1 day' END,
               CASE WHEN n %% 4 = 3 THEN 'paused' END
          FROM generate_series(1, %s) AS n
        """,
        WAITING,
    )
    read: list[tuple[str, float]] = []
    real = AsyncCursor.execute

    async def explained(self: Any, query: Any, params: Any = None, **options: Any) -> Any:
        if "crawl_tasks" in str(query):
            monkeypatch.setattr(AsyncCursor, "execute", real)
            async with (
                self.connection.transaction(force_rollback=True),
                self.connection.cursor() as cursor,
            ):
                await cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", params)
                [[[answer]]] = [await cursor.fetchone()]
            read.extend(
                (node["Node Type"], node["Actual Rows"] * node["Actual Loops"])
                for node in nodes(answer["Plan"])
                if node.get("Relation Name") == "crawl_tasks" and "Scan" in node["Node Type"]
            )
            monkeypatch.setattr(AsyncCursor, "execute", explained)
        return await real(self, query, params, **options)

    monkeypatch.setattr(AsyncCursor, "execute", explained)
    tick = await scheduler.run_once()
    monkeypatch.undo()
    assert tick.queued == 20
    assert {kind for kind, _ in read} <= {"Index Scan", "Index Only Scan"}
    assert sum(rows for _, rows in read) < 500


# --- a bad row --------------------------------------------------------------------------------


@pytest.mark.parametrize("slow_delay", ["NaN", "Infinity"])
async def test_a_bad_domain_is_skipped_and_reported(
    database: Database, scheduler: Scheduler, slow_delay: str
) -> None:
    """The table refuses such a value; one that came in before must not stop the others."""
    bad, good = [await make_domain(database, name) for name in ("bad.example", "good.example")]
    await make_task(database, bad)
    task = await make_task(database, good)
    for check in ("domains_slow_delay_check", "domains_slow_delay_finite_check"):
        await execute(database, f"ALTER TABLE domains DROP CONSTRAINT {check}")
    await execute(database, "UPDATE domains SET slow_delay = %s WHERE id = %s", slow_delay, bad)
    skipped: list[str] = []
    SKIPPED.set(skipped)
    assert (await scheduler.run_once()).queued == 1
    assert await in_state(database, "queued") == [task]
    if slow_delay == "NaN":
        assert skipped == ["domain bad.example: ValueError: cannot convert float NaN to integer"]


async def test_without_work_the_scheduler_looks_for_it_less_often(
    scheduler: Scheduler, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, looks, ticks = local_time(), 0, 0
    has_work, run_once = store.has_work, scheduler.run_once

    async def count_look(connection: Connection) -> bool:
        nonlocal looks
        looks += 1
        return await has_work(connection)

    async def count_tick() -> SchedulerTick:
        nonlocal ticks
        ticks += 1
        return await run_once()

    async def run_a_minute() -> tuple[int, int]:
        nonlocal now, looks, ticks
        looks = ticks = 0
        for _ in range(60):
            now += 1.0
            await step()
        return looks, ticks

    monkeypatch.setattr("forager.tasks.scheduler.local_time", lambda: now)
    monkeypatch.setattr(store, "has_work", count_look)
    monkeypatch.setattr(scheduler, "run_once", count_tick)
    step = scheduler.service().step
    assert await run_a_minute() == (60, 6)
    assert await run_a_minute() == (20, 2)
    # a task is found at the next look, and then every second is one again
    task = await make_task(database, await make_domain(database, "shop.example"), status="pending")
    now += 3.0
    await step()
    assert (await statuses(database))[task] == "queued"
    assert (await run_a_minute())[0] == 60
