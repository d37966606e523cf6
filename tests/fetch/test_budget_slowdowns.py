"""Hosts that refuse or fail get fewer requests, and recover."""

from __future__ import annotations

from itertools import groupby

import pytest

from fetch.budget_rows import HOST, Open, add_row, column
from forager.db.database import Database
from forager.fetch.budgets import store
from forager.fetch.budgets.slots import HostThrottled
from support.budgets import CrawlBudgets, renew
from support.sql import execute


async def test_many_refusals_at_once_are_one_complaint(
    database: Database, open_budgets: Open
) -> None:
    budgets = await open_budgets(concurrency=10)
    slots = [await budgets.acquire(HOST) for _ in range(10)]
    slots[0].slow_down(None)
    await renew(budgets, HOST)
    for slot in slots[1:]:
        slot.slow_down(None)
        slot.release()
    await renew(budgets, HOST)
    assert await column(database, "slow_delay") == 1


async def test_a_host_that_keeps_rejecting_gets_fewer_and_fewer_requests(
    database: Database, open_budgets: Open
) -> None:
    await add_row(database, crawl_delay_seconds=0.5)
    budgets = await open_budgets()
    slow = []
    for _ in range(12):
        with await budgets.acquire(HOST) as slot:
            slot.slow_down(0)  # "now" is no time to wait for
        await renew(budgets, HOST)
        slow.append(await column(database, "slow_delay"))
        # what time would do
        await execute(database, "UPDATE domains SET next_slot_at = now()")
    assert slow == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


async def test_each_good_answer_adds_to_the_rate(database: Database, open_budgets: Open) -> None:
    await add_row(database, slow_delay=300)
    budgets = await open_budgets()
    slow = []
    with await budgets.acquire(HOST) as slot:
        for _ in range(50):
            slot.succeeded()
            await renew(budgets, HOST)
            slow.append(await column(database, "slow_delay"))
    # 0.2 requests per second more with each answer
    rates = [1 / 300 + store.RATE_STEP * count for count in range(1, 50)]
    assert slow == pytest.approx([*(1 / rate for rate in rates), 0], abs=1e-9)


async def report(
    budgets: CrawlBudgets, *, good: int = 0, errors: int = 0, is_retry: bool = False
) -> None:
    """Report answers to one host as single requests, without their delays."""
    account = budgets._hosts[HOST].account
    seen = account.slow_delay
    for _ in range(good):
        account.note_success()
    for _ in range(errors):
        account.note_error(seen, is_retry=is_retry)
    await renew(budgets, HOST)


async def test_single_errors_do_not_slow_a_host_down(
    database: Database, open_budgets: Open
) -> None:
    budgets = await open_budgets()
    await budgets.acquire(HOST)  # and keep it: an account without requests is closed
    for _ in range(20):  # one answer in five
        await report(budgets, good=4)
        await report(budgets, errors=1)
    assert await column(database, "slow_delay") == 0
    assert 0.1 < await column(database, "error_share") < 0.3


async def test_a_url_that_fails_again_and_again_does_not_slow_its_host_down(
    database: Database, open_budgets: Open
) -> None:
    budgets = await open_budgets()
    await budgets.acquire(HOST)  # and keep it: an account without requests is closed
    for _ in range(100):
        await report(budgets, errors=1, is_retry=True)
    assert await column(database, "slow_delay") == 0
    assert await column(database, "error_share") == 0


async def test_a_host_with_only_errors_gets_fewer_and_fewer_requests(
    database: Database, open_budgets: Open
) -> None:
    first, second = await open_budgets(), await open_budgets()
    for budgets in (first, second):
        await budgets.acquire(HOST)  # and keep it: an account without requests is closed
    slow = []
    for _ in range(12):  # both see the errors, and the window is one
        for budgets in (first, second):
            await report(budgets, errors=1)
            slow.append(await column(database, "slow_delay"))
    assert slow[:13] == [0] * 13
    backed_off = [delay for delay, _ in groupby(slow[13:])]
    assert backed_off == [2**n for n in range(len(backed_off))]
    assert backed_off[-1] >= 16


async def test_a_failing_host_without_a_delay_is_not_flooded(open_budgets: Open) -> None:
    budgets = await open_budgets(delay=0.0)
    sent = 0
    while (known := budgets._hosts.get(HOST)) is None or not known.account.slow_delay:
        with await budgets.acquire(HOST) as slot:
            slot.failed()
        sent += 1
    # 14 errors in a row are more than half of the answers that are remembered
    assert sent <= 25


async def test_the_extra_delay_halves_with_time(database: Database, open_budgets: Open) -> None:
    await add_row(database, slow_delay=16, error_share=1)
    budgets = await open_budgets()
    await budgets.acquire(HOST)  # and keep it: an account without requests is closed
    await execute(database, "UPDATE domains SET slowed_at = slowed_at - interval '65 seconds'")
    await renew(budgets, HOST)
    assert await column(database, "slow_delay") == 4
    await renew(budgets, HOST)
    assert await column(database, "slow_delay") == 4
    # an error of a URL that failed before doubles nothing, but it is no sign of recovery either
    await execute(database, "UPDATE domains SET slowed_at = slowed_at - interval '29 seconds'")
    await report(budgets, errors=1, is_retry=True)
    await execute(database, "UPDATE domains SET slowed_at = slowed_at - interval '29 seconds'")
    await renew(budgets, HOST)
    assert await column(database, "slow_delay") == 4


async def test_a_recovered_host_gets_requests_immediately(
    database: Database, open_budgets: Open
) -> None:
    await add_row(database, slow_delay=300)
    budgets = await open_budgets()
    with await budgets.acquire(HOST) as slot:
        with pytest.raises(HostThrottled, match="slowed down"):
            await budgets.acquire(HOST)
        slot.succeeded()
        for _ in range(9):
            slot.succeeded()
        await renew(budgets, HOST)
        assert await column(database, "next_slot_at < now() + interval '1 second'")


@pytest.mark.parametrize("column_name", ["slow_delay", "error_share", "crawl_delay_seconds"])
async def test_no_number_of_a_domain_can_be_nan(database: Database, column_name: str) -> None:
    await add_row(database)
    for value in ("NaN", "Infinity"):
        with pytest.raises(Exception, match=r"violates check|overflow"):
            await execute(database, f"UPDATE domains SET {column_name} = %s", value)
