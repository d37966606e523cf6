"""Which queued tasks a worker claims: those whose hosts can be sent a request soon."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import Any

from forager.db.database import Database
from forager.db.ids import new_id
from forager.images.store.images import select_pages_are_due
from forager.jobs.workers import Registration
from forager.tasks.stages.attempt import LeasedTask
from forager.tasks.stages.download import last_domain
from forager.tasks.store.claims import claim_queued
from forager.tasks.store.scheduling import select_loads
from support.sql import execute
from tasks.tasks_at_hand import make_domain, make_task


async def queued(database: Database, name: str, count: int, **columns: object) -> int:
    domain = await make_domain(database, name, **columns)
    for number in range(count):
        await make_task(database, domain, number, status="queued")
    return domain


async def claim_tasks(
    database: Database, *, limit: int = 100, rooms: dict[int, int] | None = None, after: int = 0
) -> list[LeasedTask]:
    """The tasks that a new worker gets."""
    worker = new_id()
    await Registration(database, worker, capacity=1, role="tasks").renew()
    async with database.connection() as connection:
        return await claim_queued(
            connection,
            worker,
            limit=limit,
            busy={},
            throttled=[],
            concurrency=5,
            rooms=rooms or {},
            after=after,
        )


async def claim(database: Database, **how: Any) -> Counter[str]:
    """How many tasks of each domain a new worker gets."""
    return Counter(task.domain_name for task in await claim_tasks(database, **how))


async def test_hosts_without_a_slot_cost_no_concurrency(database: Database) -> None:
    await queued(database, "near.example", 3)
    await queued(database, "far.example", 3)
    await queued(database, "blocked.example", 3)
    await execute(
        database,
        """
        UPDATE domains SET next_slot_at = now() + interval '20 seconds'
         WHERE domain_name = 'far.example'
        """,
    )
    await execute(
        database,
        """
        UPDATE domains SET blocked_until = now() + interval '20 seconds'
         WHERE domain_name = 'blocked.example'
        """,
    )
    assert await claim(database) == {"near.example": 1}


async def test_of_each_host_only_tasks_for_slots_that_are_near(database: Database) -> None:
    fast = await queued(database, "fast.example", 9)
    full = await queued(database, "full.example", 9)
    await queued(database, "new.example", 9)
    claimed = await claim(database, rooms={fast: 4, full: 0})
    assert claimed == {"fast.example": 4, "new.example": 1}


async def test_hosts_take_turns(database: Database) -> None:
    rooms = {await queued(database, f"{name}.example", 9): 5 for name in "abcd"}
    claimed = await claim(database, limit=8, rooms=rooms)
    assert set(claimed.values()) == {2}


async def test_a_turn_continues_after_the_last_host(database: Database) -> None:
    hosts = [await queued(database, f"{name}.example", 3) for name in "abcd"]
    seen = [set(await claim(database, limit=2, after=after)) for after in (0, hosts[1], hosts[3])]
    assert seen == [
        {"a.example", "b.example"},
        {"c.example", "d.example"},
        {"a.example", "b.example"},
    ]


async def test_priorities_come_before_turns(database: Database) -> None:
    first = await queued(database, "a.example", 3)
    await queued(database, "b.example", 3)
    await execute(database, "UPDATE crawl_tasks SET priority = 2 WHERE domain_id = %s", first)
    assert await claim(database, limit=1, after=first) == {"a.example": 1}


async def test_a_higher_priority_is_a_higher_number_outside_the_table(database: Database) -> None:
    domain = await make_domain(database, "a.example")
    for number, stored in enumerate((1, 5, 10, 5)):
        await make_task(database, domain, number, status="pending", priority=stored)
        await make_task(database, domain, 10 + number, status="queued", priority=stored)
    async with database.connection() as connection:
        [load] = await select_loads(connection)
    assert load.priorities == [9, 5, 0]
    claimed = await claim_tasks(database, rooms={domain: 3})
    assert [task.priority for task in sorted(claimed, key=attrgetter("id"))] == [9, 5, 5]


async def test_the_next_claim_begins_after_the_last_domain_of_the_lowest_priority(
    database: Database,
) -> None:
    domains = [await queued(database, f"{name}.example", 1) for name in "abc"]
    await execute(database, "UPDATE crawl_tasks SET priority = 1 WHERE domain_id = %s", domains[2])
    claimed = await claim_tasks(database)
    assert {task.domain_id for task in claimed} == set(domains)
    assert last_domain(claimed, 0) == domains[1]
    assert last_domain(claimed, domains[0]) == domains[0]
    assert last_domain([], domains[0]) == domains[0]


async def test_hosts_of_others_hide_no_tasks(database: Database) -> None:
    for number in range(40):
        domain = await queued(database, f"far{number}.example", 1, region="eu")
        await execute(database, "UPDATE crawl_tasks SET priority = 1 WHERE domain_id = %s", domain)
    await queued(database, "near.example", 1)
    assert await claim(database, limit=2) == {"near.example": 1}


async def test_whether_pages_of_a_host_are_due(database: Database) -> None:
    domain = await make_domain(database, "shop.example")
    task = await make_task(database, domain, scheduled_in=-60)
    hosts = ["img.shop.example", "shop.example"]

    async def is_due(*names: str) -> bool:
        async with database.connection() as connection:
            return await select_pages_are_due(connection, names)

    assert await is_due(*hosts)
    assert not await is_due("cdn.example")
    await execute(database, "UPDATE crawl_tasks SET status = 'queued' WHERE id = %s", task)
    assert await is_due(*hosts)
    await execute(database, "UPDATE crawl_tasks SET status = 'downloaded' WHERE id = %s", task)
    assert not await is_due(*hosts)


async def test_a_slot_of_a_clock_that_was_set_back_does_not_hold_its_host(
    database: Database,
) -> None:
    await queued(database, "far.example", 1)
    await execute(
        database, "UPDATE domains SET next_slot_at = now() + interval '1 day', slot_delay = 90000"
    )
    assert await claim(database) == {}
    await execute(database, "UPDATE domains SET slot_delay = 2")
    assert await claim(database) == {"far.example": 1}
