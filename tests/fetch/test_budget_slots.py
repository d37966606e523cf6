"""Waiting for a slot, reserving slots ahead, and the clocks that decide when a slot is due."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from fetch.budget_rows import HOST, Open, add_row, column, exchange_with
from forager.clock import local_time
from forager.db.database import Database
from forager.fetch.budgets.accounts import FRESH_FOR
from forager.fetch.budgets.domain_state import FURTHEST_AHEAD
from forager.fetch.budgets.exchange import Answers, ServerClock, SlotRequest
from forager.fetch.budgets.slots import HostThrottled, RequestLane, SlotWindow
from forager.fetch.budgets.store import block_domain
from support.budgets import CrawlBudgets, renew
from support.sql import execute
from support.waiting import eventually


async def test_a_slot_too_far_away_is_refused_and_not_used_up(
    database: Database, open_budgets: Open
) -> None:
    await add_row(database, crawl_delay_seconds=120)
    budgets = await open_budgets()
    (await budgets.acquire(HOST)).release()
    reserved = await column(database, "next_slot_at")
    for _ in range(3):
        with pytest.raises(HostThrottled, match="one request is allowed in 120 s") as throttled:
            await budgets.acquire(HOST)
        # a slot begins later by the time that an answer of the database may take
        assert 60 < throttled.value.seconds <= 120 + FRESH_FOR
    assert await column(database, "next_slot_at") == reserved


@pytest.mark.usefixtures("short_grace")
async def test_one_waits_for_a_connection(open_budgets: Open) -> None:
    budgets = await open_budgets(concurrency=1)
    slot = await budgets.acquire(HOST)
    waiting = asyncio.create_task(budgets.acquire(HOST))
    with pytest.raises(HostThrottled, match="connections"):
        await budgets.acquire(HOST, max_wait=0.05)
    assert not waiting.done()
    slot.release()
    slot.release()  # once is enough
    (await waiting).release()
    account = budgets._hosts[HOST].account
    assert account.in_use == 0


async def test_a_cancelled_waiter_leaves_nothing_behind(open_budgets: Open) -> None:
    budgets = await open_budgets(concurrency=1)
    slot = await budgets.acquire(HOST)
    waiting = [asyncio.create_task(budgets.acquire(HOST)) for _ in range(3)]
    await asyncio.sleep(0)
    for task in waiting[:2]:
        task.cancel()
    await asyncio.gather(*waiting[:2], return_exceptions=True)
    slot.release()
    (await waiting[2]).release()


async def cancel_while_reserved(database: Database, budgets: CrawlBudgets) -> None:
    """Reserve a slot ahead, and cancel its request before the slot is due.

    On a busy machine the slot may be due before it is seen as reserved; then it is tried again.
    """
    account = budgets._hosts[HOST].account
    while True:
        await execute(database, "UPDATE domains SET next_slot_at = now() + interval '1.5 seconds'")
        waiting = asyncio.create_task(budgets.acquire(HOST))
        await eventually(lambda: account._lane.slots_left() or waiting.done())  # noqa: B023
        reserved = await column(database, "next_slot_at > now() + interval '50 seconds'")
        waiting.cancel()
        [slot] = await asyncio.gather(waiting, return_exceptions=True)
        if isinstance(slot, asyncio.CancelledError):
            assert reserved
            return
        assert not isinstance(slot, BaseException), slot
        slot.release()


async def test_slots_that_are_not_used_go_back(database: Database, open_budgets: Open) -> None:
    await add_row(database, crawl_delay_seconds=60)
    one, other = await open_budgets(), await open_budgets()
    (await one.acquire(HOST)).release()
    await cancel_while_reserved(database, one)
    # without anything that waits, the slot is given back when it is due
    reserved_until = local_time() + 50
    with await other.acquire(HOST, max_wait=90) as slot:
        assert slot.granted_at < reserved_until


async def test_leaving_gives_reserved_slots_back(database: Database, open_budgets: Open) -> None:
    await add_row(database, crawl_delay_seconds=60)
    budgets = await open_budgets()
    (await budgets.acquire(HOST)).release()
    await cancel_while_reserved(database, budgets)
    await budgets.__aexit__()
    assert await column(database, "next_slot_at < now() + interval '2 seconds'")


async def test_a_slot_far_in_the_future_is_not_reserved(
    database: Database, open_budgets: Open
) -> None:
    await add_row(database, crawl_delay_seconds=20)
    budgets = await open_budgets()
    (await budgets.acquire(HOST)).release()
    before = await column(database, "next_slot_at")
    waiting = asyncio.create_task(budgets.acquire(HOST))
    await renew(budgets, HOST)
    await renew(budgets, HOST)
    assert await column(database, "next_slot_at") == before
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def reserve(
    database: Database, domain_id: int, holder: UUID, *, slots: int = 5, waiting: int = 5
) -> int:
    wanted = SlotRequest(
        domain_id=domain_id, delay=20.0, concurrency=5, robots_delay=0.0, direct=slots,
        proxied={}, max_wait=60, busy=0, answers=Answers(), waiting=waiting,
    )  # fmt: skip
    return (await exchange_with(database, holder, wanted)).slots


async def test_runners_take_turns_at_a_slow_host(database: Database) -> None:
    domain_id = await add_row(database)
    greedy, modest = uuid4(), uuid4()
    got = []
    for _ in range(6):
        # the greedy one always asks first and last
        for name, holder in (("greedy", greedy), ("modest", modest), ("greedy", greedy)):
            got += [name] * await reserve(database, domain_id, holder)
        await execute(database, "UPDATE domains SET next_slot_at = now()")  # what time would do
    assert got == ["greedy", "modest"] * 3


async def test_background_requests_come_after_pages_of_all_runners(
    database: Database, open_budgets: Open
) -> None:
    domain_id = await add_row(database, crawl_delay_seconds=0)
    pages = uuid4()
    await reserve(database, domain_id, pages, slots=0, waiting=3)
    images = await open_budgets()
    image = asyncio.create_task(images.acquire(HOST, background=True))
    await asyncio.sleep(0)
    while HOST not in images._hosts:
        await asyncio.sleep(0.01)
    for _ in range(3):
        await reserve(database, domain_id, pages, slots=0, waiting=3)
        await renew(images, HOST)
        assert not image.done()
    (await images.acquire(HOST)).release()  # its own page may be sent
    await reserve(database, domain_id, pages, slots=0, waiting=0)
    (await image).release()


async def test_a_background_request_reserves_nothing_while_pages_wait(
    database: Database, open_budgets: Open
) -> None:
    domain_id = await add_row(database, crawl_delay_seconds=20)
    before = await column(database, "next_slot_at")
    await reserve(database, domain_id, uuid4(), slots=0, waiting=3)
    images = await open_budgets()
    with pytest.raises(HostThrottled):
        await images.acquire(HOST, background=True, max_wait=0.2)
    assert await column(database, "next_slot_at") == before


async def test_a_long_retry_after_is_reported_at_once(
    database: Database, open_budgets: Open
) -> None:
    first, second = await open_budgets(), await open_budgets()
    with await first.acquire(HOST) as slot:
        slot.slow_down(3600)
        assert list(first.rooms({}).values()) == [0]
    with pytest.raises(HostThrottled, match="Retry-After") as throttled:
        await first.acquire(HOST)
    assert 3000 < throttled.value.seconds <= 3600
    await renew(first, HOST)
    with pytest.raises(HostThrottled, match="Retry-After"):
        await second.acquire(HOST)


async def test_slow_downs_are_written_on_leaving(database: Database, open_budgets: Open) -> None:
    budgets = await open_budgets()
    with await budgets.acquire(HOST) as slot:
        slot.slow_down(3600)
    await budgets.__aexit__()
    assert await column(database, "blocked_until > now() + interval '59 minutes'")


def test_a_slow_round_trip_does_not_blur_the_clock() -> None:
    clock = ServerClock()
    clock.observe(sent=100.0, received=100.002, said=5000.001)
    clock.observe(sent=101.0, received=191.0, said=5001.001)
    assert clock.latest(5091) - clock.earliest(5091) < 0.03
    assert clock.earliest(5091) < 191 < clock.latest(5091) + 1e-9


def test_a_clock_that_was_set_is_believed() -> None:
    clock = ServerClock()
    clock.observe(sent=100.0, received=100.002, said=5000.0)
    clock.observe(sent=101.0, received=101.002, said=9000.0)
    assert clock.earliest(9000.0) == 101.0
    assert clock.latest(9000.0) == pytest.approx(101.002)


def test_slots_not_used_in_time_are_lost() -> None:
    lane = RequestLane()
    lane.add(SlotWindow(due=10.0, last=12.0, delay=1.0))
    assert lane.ready_at(9.0) == 10.0
    lane.use(10.05)
    assert lane.ready_at(10.1) == 11.0
    assert lane.slots_left() == 2
    lane.use(12.05)  # a second late: the slot at 11 is lost
    assert lane.ready_at(12.1) == float("inf")


def test_a_late_request_pushes_the_next() -> None:
    lane = RequestLane()
    lane.add(SlotWindow(due=10.0, last=20.0, delay=1.0))
    lane.use(13.5)
    assert lane.ready_at(13.6) == pytest.approx(14.4)


def test_what_a_slow_down_made_invalid_is_dropped() -> None:
    lane = RequestLane()
    lane.add(SlotWindow(due=10.0, last=12.0, delay=1.0))
    lane.drop(before=11.0)
    assert lane.ready_at(9.0) == float("inf")
    lane.add(SlotWindow(due=10.0, last=12.0, delay=1.0))
    lane.drop(faster_than=2.0)
    assert lane.ready_at(9.0) == float("inf")


# --- a clock that was set back -----------------------------------------------------------------


def _wanted(domain_id: int, *, delay: float) -> SlotRequest:
    return SlotRequest(domain_id, delay, 5, 0.0, 1, {}, 10.0, 0, Answers())


async def test_a_clock_set_back_does_not_strand_a_host(
    database: Database, open_budgets: Open
) -> None:
    await add_row(database, crawl_delay_seconds=2)
    (await (await open_budgets()).acquire(HOST)).release()
    await execute(
        database, "UPDATE domains SET next_slot_at = next_slot_at + interval '1 day' RETURNING 1"
    )
    domain_id = await column(database, "id")
    given = await exchange_with(database, uuid4(), _wanted(domain_id, delay=2.0))
    ahead = "extract(epoch FROM next_slot_at - clock_timestamp())::float8"
    assert await column(database, ahead) < 2 + FURTHEST_AHEAD
    assert given.slots == 0  # the reservation may have been a real one


async def test_a_block_from_a_clock_that_was_ahead_is_ignored(database: Database) -> None:
    domain_id = await add_row(database)
    async with database.connection() as connection:
        await block_domain(connection, domain_id, 7 * 86_400)
    given = await exchange_with(database, uuid4(), _wanted(domain_id, delay=1.0))
    assert given.slots == 0, "a host may ask for days"
    assert given.blocked_until is not None
    await execute(
        database,
        "UPDATE domains SET blocked_at = blocked_at + interval '1 day',"
        " blocked_until = blocked_until + interval '1 day' RETURNING 1",
    )
    given = await exchange_with(database, uuid4(), _wanted(domain_id, delay=1.0))
    assert given.slots == 1
    assert await column(database, "blocked_until") is None


async def test_a_longer_delay_of_another_runner_is_kept(database: Database) -> None:
    """A slot that was reserved under a long delay is far away, and no error of a clock."""
    domain_id = await add_row(database)
    await exchange_with(database, uuid4(), _wanted(domain_id, delay=3000.0))
    before = await column(database, "next_slot_at")
    given = await exchange_with(database, uuid4(), _wanted(domain_id, delay=1.0))
    assert given.slots == 0
    assert await column(database, "next_slot_at") == before


async def test_permits_of_a_clock_that_was_ahead_do_not_count(database: Database) -> None:
    domain_id = await add_row(database, max_concurrent_requests=1)
    await exchange_with(database, uuid4(), _wanted(domain_id, delay=0.0))
    await execute(
        database, "UPDATE domain_permits SET expires_at = expires_at + interval '1 day' RETURNING 1"
    )
    given = await exchange_with(database, uuid4(), _wanted(domain_id, delay=0.0))
    assert given.permits == 1
