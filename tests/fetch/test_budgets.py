from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from forager.clock import local_time
from forager.db.database import Database
from forager.errors import ErrorKind, Retry, RotateProxy
from forager.extract.hosts import is_loopback, parent_domains
from forager.fetch.budgets import store
from forager.fetch.budgets.accounts import FRESH_FOR
from forager.fetch.budgets.budget import Budgets
from forager.fetch.budgets.exchange import PAIR_DELAY, Answers, Given, ServerClock, Wanted
from forager.fetch.budgets.slots import DomainInactive, HostResting, Lane, Window
from support.budgets import renew
from support.waiting import eventually

USER = Path(__file__).with_name("budget_user.py")
HOST = "shop.example"
LATE = 0.1  # how much of a delay a request may be late
MICROSECOND = 1e-6  # what the database's times are rounded to

Open = Callable[..., Awaitable[Budgets]]


@pytest.fixture
async def open_budgets(database: Database) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def open_one(*, delay: float | None = 0.0, concurrency: int | None = None) -> Budgets:
            return await stack.enter_async_context(
                Budgets(database, holder=uuid4(), delay=delay, concurrency=concurrency)
            )

        yield open_one


class User:
    """Another process on the same host."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        assert process.stdout is not None
        assert process.stdin is not None
        self._stdout = process.stdout
        self._stdin = process.stdin

    @classmethod
    async def start(cls, url: str, **options: Any) -> User:
        defaults = {"host": HOST, "delay": 0.0, "concurrency": 5, "workers": 3, "hold": 0.0}
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(USER), url, json.dumps({**defaults, **options}),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        user = cls(process)
        assert await user._stdout.readline() == b"ready\n"
        return user

    def begin(self) -> None:
        self._stdin.write(b"\n")

    async def next(self) -> tuple[float, float] | None:
        """When the next request was granted and when it ended; None after the last."""
        line = await self._stdout.readline()
        return tuple(json.loads(line)) if line else None

    async def rest(self) -> list[tuple[float, float]]:
        requests = []
        while (request := await self.next()) is not None:
            requests.append(request)
        assert await self.process.wait() == 0
        return requests

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


async def run(*users: User) -> list[list[tuple[float, float]]]:
    for user in users:
        user.begin()
    return await asyncio.gather(*(user.rest() for user in users))


def closest(times: Sequence[float]) -> float:
    return min(later - earlier for earlier, later in pairwise(sorted(times)))


def most_at_once(requests: Sequence[tuple[float, float]]) -> int:
    events = sorted([(begin, 1) for begin, _ in requests] + [(end, -1) for _, end in requests])
    now, most = 0, 0
    for _, change in events:
        now += change
        most = max(most, now)
    return most


async def execute(database: Database, statement: str, *values: object) -> list[Any]:
    async with database.connection() as connection:
        cursor = await connection.execute(statement.encode(), values)
        return await cursor.fetchall() if cursor.description else []


async def column(database: Database, name: str) -> Any:
    return (await execute(database, f"SELECT {name} FROM domains WHERE domain_name = %s", HOST))[0][
        0
    ]


async def add_row(database: Database, name: str = HOST, **columns: object) -> int:
    columns = {"domain_name": name, "base_url": f"https://{name}/", **columns}
    places = ", ".join(["%s"] * len(columns))
    rows = await execute(
        database,
        f"INSERT INTO domains ({', '.join(columns)}) VALUES ({places}) RETURNING id",
        *columns.values(),
    )
    return int(rows[0][0])


async def add_proxy(database: Database, port: int) -> int:
    rows = await execute(
        database,
        "INSERT INTO proxies (proxy_url, proxy_port) VALUES ('proxy.example', %s) RETURNING id",
        port,
    )
    return int(rows[0][0])


# --- over processes ------------------------------------------------------------------------


async def test_two_processes_together_keep_the_delay(database_url: str) -> None:
    delay = 0.1
    users = [await User.start(database_url, delay=delay, count=8) for _ in range(2)]
    requests = await run(*users)
    assert [len(done) for done in requests] == [8, 8]
    times = [granted for done in requests for granted, _ in done]
    assert closest(times) >= delay * (1 - LATE) - MICROSECOND


async def test_two_processes_together_keep_to_the_connections(database_url: str) -> None:
    users = [
        await User.start(database_url, concurrency=3, workers=5, count=40, hold=0.02)
        for _ in range(2)
    ]
    requests = await run(*users)
    assert [len(done) for done in requests] == [40, 40]
    assert most_at_once([request for done in requests for request in done]) <= 3


async def test_retry_after_holds_in_another_process(database_url: str, open_budgets: Open) -> None:
    retry_after = FRESH_FOR + 0.5
    user = await User.start(database_url, delay=0.05, count=30)
    budgets = await open_budgets(delay=0.05)
    (await budgets.acquire(HOST)).release()  # so it has its share of the connections
    user.begin()
    first = await user.next()
    assert first is not None
    with await budgets.acquire(HOST) as slot:
        asked = local_time()
        slot.slow_down(retry_after)
    with await budgets.acquire(HOST) as slot:
        assert slot.granted_at >= asked + retry_after
    await budgets.__aexit__()  # its slots are the other's now
    requests = await user.rest()
    assert requests[-1][0] >= asked + retry_after  # it was still asking
    for granted, _ in requests:
        assert not asked + FRESH_FOR < granted < asked + retry_after


async def test_a_thawed_process_does_not_catch_up(database_url: str, open_budgets: Open) -> None:
    delay = 0.1
    user = await User.start(database_url, delay=delay, count=40)
    budgets = await open_budgets(delay=delay)
    user.begin()
    first = await user.next()
    assert first is not None
    with await budgets.acquire(HOST) as slot:  # so each has its share of the connections
        times = [first[0], slot.granted_at]
    user.process.send_signal(signal.SIGSTOP)
    frozen_at = local_time()
    while local_time() < frozen_at + FRESH_FOR + 0.5:
        with await budgets.acquire(HOST) as slot:
            times.append(slot.granted_at)
    user.process.send_signal(signal.SIGCONT)
    for _ in range(4):
        with await budgets.acquire(HOST) as slot:
            times.append(slot.granted_at)
    times += [granted for granted, _ in await user.rest()]
    assert closest(times) >= delay * (1 - LATE) - MICROSECOND


async def test_permits_of_a_killed_process_come_back(
    database: Database, database_url: str, open_budgets: Open
) -> None:
    await add_row(database, max_concurrent_requests=1)
    user = await User.start(database_url, count=1000)
    user.begin()
    assert await user.next() is not None
    await user.kill()
    budgets = await open_budgets()
    with pytest.raises(HostResting, match="connections"):
        await budgets.acquire(HOST, max_wait=0.1)
    # what time would do
    await execute(database, "UPDATE domain_permits SET expires_at = now() WHERE permits > 0")
    with await budgets.acquire(HOST):
        assert budgets._hosts[HOST].account.permits == 1


# --- over connections to the database ------------------------------------------------------


async def test_a_lost_database_is_waited_for(database: Database, open_budgets: Open) -> None:
    budgets = await open_budgets(delay=0.05)
    for _ in range(3):
        with await budgets.acquire(HOST):
            await execute(
                database,
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()
                """,
            )


async def test_leaving_gives_the_permits_back(database: Database, open_budgets: Open) -> None:
    budgets = await open_budgets()
    (await budgets.acquire(HOST)).release()
    assert await execute(database, "SELECT permits FROM domain_permits") == [(5,)]
    await budgets.__aexit__()
    assert await execute(database, "SELECT permits FROM domain_permits") == []


async def test_many_hosts_are_exchanged_together(
    open_budgets: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[set[int]] = []
    exchange = store.exchange

    async def count(*values: Any, waits: bool) -> store.Exchanged:
        batches.append({each.domain_id for each in values[2]})
        return await exchange(*values, waits=waits)

    monkeypatch.setattr(store, "exchange", count)
    budgets = await open_budgets(delay=1.0)
    async with budgets._exchanging:
        waiting = [asyncio.create_task(budgets.acquire(f"{n}.example")) for n in range(50)]
        await eventually(lambda: budgets.pages_waiting == 50)
    for slot in await asyncio.gather(*waiting):
        slot.release()
    assert max(map(len, batches)) == 50


async def test_a_locked_row_delays_no_other_host(database: Database, open_budgets: Open) -> None:
    await add_row(database, "locked.example")
    budgets = await open_budgets()
    async with database.transaction() as connection:
        await connection.execute(
            "SELECT FROM domains WHERE domain_name = 'locked.example' FOR UPDATE"
        )
        waiting = asyncio.create_task(budgets.acquire("locked.example"))
        await eventually(lambda: budgets.pages_waiting == 1)
        for _ in range(3):
            (await budgets.acquire(HOST)).release()
        assert not waiting.done()
    (await waiting).release()


async def test_a_process_sends_no_more_than_it_can(database: Database) -> None:
    async with Budgets(database, holder=uuid4(), delay=0.0, concurrency=None, at_once=2) as budgets:
        slots = [await budgets.acquire(f"{n}.example") for n in range(2)]
        waiting = asyncio.create_task(budgets.acquire(HOST))
        await eventually(lambda: budgets.waiting_to_send == 1)
        assert budgets.pages_waiting == 0  # its host could be sent a request
        slots[0].release()
        (await waiting).release()


# --- shares --------------------------------------------------------------------------------


async def exchange_with(database: Database, holder: UUID, wanted: Wanted) -> Given:
    async with database.connection() as connection:
        answer = await store.exchange(connection, holder, [wanted], waits=True)
    return answer.given[wanted.domain_id]


async def share(database: Database, domain_id: int, holder: UUID, busy: int = 0) -> int:
    wanted = Wanted(
        domain_id=domain_id, delay=0.0, concurrency=5, robots_delay=0.0, direct=0, proxied={},
        max_wait=0, busy=busy, answers=Answers(),
    )  # fmt: skip
    return (await exchange_with(database, holder, wanted)).permits


async def test_a_newcomer_waits_until_the_others_shrank(database: Database) -> None:
    domain_id = await add_row(database)
    old, new = uuid4(), uuid4()
    assert await share(database, domain_id, old) == 5
    assert await share(database, domain_id, new) == 0
    smaller = await share(database, domain_id, old, busy=4)
    assert smaller in (2, 3)
    assert await share(database, domain_id, new) == 1  # four connections are still open
    await share(database, domain_id, old)
    assert await share(database, domain_id, new) + await share(database, domain_id, old) == 5


async def test_many_holders_never_have_more_than_the_limit(database: Database) -> None:
    domain_id = await add_row(database)
    holders = [uuid4() for _ in range(8)]
    for _ in range(3):
        for holder in holders:
            await share(database, domain_id, holder)
        ((together,),) = await execute(database, "SELECT sum(permits) FROM domain_permits")
        assert together == 5


async def test_a_crawl_that_asked_for_less_is_not_starved(open_budgets: Open) -> None:
    greedy = await open_budgets(concurrency=64)
    modest = await open_budgets(concurrency=2)
    (await greedy.acquire(HOST)).release()
    (await modest.acquire(HOST)).release()
    account = modest._hosts[HOST].account
    assert account.permits == 2


# --- which row applies ---------------------------------------------------------------------


async def test_a_row_covers_subdomains_without_one(database: Database, open_budgets: Open) -> None:
    await add_row(database, "example", crawl_delay_seconds=7)
    await add_row(database, "shop.example", crawl_delay_seconds=0)
    await add_row(database, "de.shop.example", crawl_delay_seconds=0)
    budgets = await open_budgets(delay=None)
    applied = {}
    for host in ("shop.example", "a.b.shop.example", "de.shop.example", "x.de.shop.example"):
        (await budgets.acquire(host)).release()
        account = budgets._hosts[host].account
        applied[host] = account.name
    assert applied == {
        "shop.example": "shop.example",
        "a.b.shop.example": "shop.example",
        "de.shop.example": "de.shop.example",
        "x.de.shop.example": "de.shop.example",
    }


async def test_a_host_without_a_row_gets_one(database: Database, open_budgets: Open) -> None:
    budgets = await open_budgets()
    await asyncio.gather(*(budgets.acquire("docs.shop.example:8443") for _ in range(5)))
    rows = await execute(database, "SELECT domain_name, base_url FROM domains")
    assert rows == [("docs.shop.example:8443", "http://docs.shop.example:8443/")]


@pytest.mark.parametrize(
    ("host", "parents"),
    [
        ("a.b.example.com", ["b.example.com", "example.com"]),
        ("a.example.com:81", ["example.com:81"]),
        ("localhost:8000", []),
        ("10.1.2.3", []),
        ("[2001:db8::1]:81", []),
        ("[2001:db8::1]", []),
    ],
)
def test_parents(host: str, parents: list[str]) -> None:
    assert parent_domains(host) == parents


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True), ("localhost:80", True), ("a.localhost", True),
        ("127.8.9.1:8080", True), ("[::1]:80", True), ("[::1]", True),
        ("localhost.example", False), ("10.0.0.1", False), ("[2001:db8::1]", False),
    ],
)  # fmt: skip
def test_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


async def test_defaults(open_budgets: Open) -> None:
    budgets = await open_budgets(delay=None)
    seen = {}
    for host in ("127.0.0.1:8000", HOST):
        (await budgets.acquire(host)).release()
        account = budgets._hosts[host].account
        seen[host] = (account.delay, account.permits)
    assert seen == {"127.0.0.1:8000": (0.0, 5), HOST: (1.0, 5)}


async def test_the_domain_comes_before_the_crawl_and_robots_before_both(
    database: Database, open_budgets: Open
) -> None:
    await add_row(database, crawl_delay_seconds=0.3, max_concurrent_requests=2)
    budgets = await open_budgets(delay=9, concurrency=64)
    (await budgets.acquire(HOST)).release()
    account = budgets._hosts[HOST].account
    assert (account.delay, account.permits) == (0.3, 2)
    (await budgets.acquire(HOST, robots_delay=0.5)).release()
    account = budgets._hosts[HOST].account
    assert account.delay == 0.5


async def test_an_inactive_domain_is_not_crawled(database: Database, open_budgets: Open) -> None:
    await add_row(database, is_active=False)
    budgets = await open_budgets()
    with pytest.raises(DomainInactive, match=r"domains enable shop\.example") as refused:
        await budgets.acquire("www.shop.example")
    assert refused.value.kind is ErrorKind.NOT_ALLOWED


async def test_a_domain_switched_off_meanwhile(database: Database, open_budgets: Open) -> None:
    budgets = await open_budgets()
    (await budgets.acquire(HOST)).release()
    await execute(database, "UPDATE domains SET is_active = false")
    await renew(budgets, HOST)
    with pytest.raises(DomainInactive):
        await budgets.acquire(HOST)


async def test_a_row_that_was_deleted_is_created_again(
    database: Database, open_budgets: Open
) -> None:
    budgets = await open_budgets()
    (await budgets.acquire(HOST)).release()
    await execute(database, "DELETE FROM domains")
    with pytest.raises(Retry, match="was deleted"):
        await renew(budgets, HOST)
    (await budgets.acquire(HOST)).release()
    assert await column(database, "is_active")


# --- waiting -------------------------------------------------------------------------------


async def test_a_slot_too_far_away_is_refused_and_not_used_up(
    database: Database, open_budgets: Open
) -> None:
    await add_row(database, crawl_delay_seconds=120)
    budgets = await open_budgets()
    (await budgets.acquire(HOST)).release()
    reserved = await column(database, "next_slot_at")
    for _ in range(3):
        with pytest.raises(HostResting, match="one request is allowed in 120 s") as resting:
            await budgets.acquire(HOST)
        # a slot begins later by the time that an answer of the database may take
        assert 60 < resting.value.seconds <= 120 + FRESH_FOR
    assert await column(database, "next_slot_at") == reserved


async def test_one_waits_for_a_connection(open_budgets: Open) -> None:
    budgets = await open_budgets(concurrency=1)
    slot = await budgets.acquire(HOST)
    waiting = asyncio.create_task(budgets.acquire(HOST))
    with pytest.raises(HostResting, match="connections"):
        await budgets.acquire(HOST, max_wait=0.05)
    assert not waiting.done()
    slot.release()
    slot.release()  # once is enough
    (await waiting).release()
    account = budgets._hosts[HOST].account
    assert account.in_use == 0


async def test_who_gives_up_waiting_leaves_nothing_behind(open_budgets: Open) -> None:
    budgets = await open_budgets(concurrency=1)
    slot = await budgets.acquire(HOST)
    waiting = [asyncio.create_task(budgets.acquire(HOST)) for _ in range(3)]
    await asyncio.sleep(0)
    for task in waiting[:2]:
        task.cancel()
    await asyncio.gather(*waiting[:2], return_exceptions=True)
    slot.release()
    (await waiting[2]).release()


# --- slowing down --------------------------------------------------------------------------


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


async def test_a_host_that_keeps_refusing_is_asked_less_and_less(
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
    budgets: Budgets, *, good: int = 0, errors: int = 0, is_retry: bool = False
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


async def test_a_host_with_nothing_but_errors_is_asked_ever_less(
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


async def test_a_recovered_host_is_asked_at_once(database: Database, open_budgets: Open) -> None:
    await add_row(database, slow_delay=300)
    budgets = await open_budgets()
    with await budgets.acquire(HOST) as slot:
        with pytest.raises(HostResting, match="slowed down"):
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


# --- reserved slots ------------------------------------------------------------------------------


async def test_slots_that_are_not_used_go_back(database: Database, open_budgets: Open) -> None:
    await add_row(database, crawl_delay_seconds=60)
    one, other = await open_budgets(), await open_budgets()
    (await one.acquire(HOST)).release()
    await execute(database, "UPDATE domains SET next_slot_at = now() + interval '1.5 seconds'")
    account = one._hosts[HOST].account
    waiting = asyncio.create_task(one.acquire(HOST))
    while not account._lane.slots_left():
        await asyncio.sleep(0.01)
    assert await column(database, "next_slot_at > now() + interval '50 seconds'")
    waiting.cancel()  # its job ends
    await asyncio.gather(waiting, return_exceptions=True)
    # without anything that waits, the slot is given back when it is due
    reserved_until = local_time() + 50
    with await other.acquire(HOST, max_wait=90) as slot:
        assert slot.granted_at < reserved_until


async def test_leaving_gives_reserved_slots_back(database: Database, open_budgets: Open) -> None:
    await add_row(database, crawl_delay_seconds=60)
    budgets = await open_budgets()
    (await budgets.acquire(HOST)).release()
    await execute(database, "UPDATE domains SET next_slot_at = now() + interval '1.5 seconds'")
    account = budgets._hosts[HOST].account
    waiting = asyncio.create_task(budgets.acquire(HOST))
    while not account._lane.slots_left():
        await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
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
    wanted = Wanted(
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
    with pytest.raises(HostResting):
        await images.acquire(HOST, background=True, max_wait=0.2)
    assert await column(database, "next_slot_at") == before


async def test_a_long_retry_after_is_reported_at_once(
    database: Database, open_budgets: Open
) -> None:
    first, second = await open_budgets(), await open_budgets()
    with await first.acquire(HOST) as slot:
        slot.slow_down(3600)
        assert list(first.rooms({}).values()) == [0]
    with pytest.raises(HostResting, match="Retry-After") as resting:
        await first.acquire(HOST)
    assert 3590 < resting.value.seconds <= 3600
    await renew(first, HOST)
    with pytest.raises(HostResting, match="Retry-After"):
        await second.acquire(HOST)


async def test_slow_downs_are_written_on_leaving(database: Database, open_budgets: Open) -> None:
    budgets = await open_budgets()
    with await budgets.acquire(HOST) as slot:
        slot.slow_down(3600)
    await budgets.__aexit__()
    assert await column(database, "blocked_until > now() + interval '59 minutes'")


# --- proxies -------------------------------------------------------------------------------


async def granted(budgets: Budgets, proxy_id: int, count: int) -> list[float]:
    times = []
    for _ in range(count):
        with await budgets.acquire(HOST, proxy_id=proxy_id) as slot:
            times.append(slot.granted_at)
    return times


async def test_each_proxy_keeps_a_separate_pace(database: Database, open_budgets: Open) -> None:
    proxies = [await add_proxy(database, port) for port in (1, 2)]
    one, other = await open_budgets(), await open_budgets()
    times = await asyncio.gather(
        granted(one, proxies[0], 3), granted(other, proxies[0], 3), granted(one, proxies[1], 3)
    )
    gap = PAIR_DELAY * (1 - LATE) - MICROSECOND
    assert closest([*times[0], *times[1]]) >= gap
    assert closest(times[2]) >= gap


async def test_a_domain_may_set_the_rate_of_each_proxy(
    database: Database, open_budgets: Open
) -> None:
    await add_row(database, proxy_rate=2.5, crawl_delay_seconds=0.3)
    budgets = await open_budgets()
    times = await granted(budgets, await add_proxy(database, 1), 3)
    assert closest(times) >= 0.4 * (1 - LATE) - MICROSECOND


async def test_the_total_holds_for_all_proxies(database: Database, open_budgets: Open) -> None:
    proxies = [await add_proxy(database, port) for port in (1, 2)]
    delay = 0.1
    budgets = await open_budgets(delay=delay)
    times = await asyncio.gather(*(granted(budgets, proxy, 3) for proxy in proxies))
    assert closest([*times[0], *times[1]]) >= delay * (1 - LATE) - MICROSECOND
    for each in times:
        assert closest(each) >= PAIR_DELAY * (1 - LATE) - MICROSECOND


async def test_a_domain_may_count_per_proxy_alone(database: Database, open_budgets: Open) -> None:
    await add_row(database, crawl_delay_seconds=0.3, per_proxy_only=True)
    proxies = [await add_proxy(database, port) for port in (1, 2)]
    budgets = await open_budgets()
    before = await column(database, "next_slot_at")
    times = await asyncio.gather(*(granted(budgets, proxy, 3) for proxy in proxies))
    for each in times:
        assert closest(each) >= 0.3 * (1 - LATE) - MICROSECOND
    assert await column(database, "next_slot_at") == before


async def test_a_proxy_that_was_removed(open_budgets: Open) -> None:
    budgets = await open_budgets()
    with pytest.raises(RotateProxy, match="removed"):
        await budgets.acquire(HOST, proxy_id=99)


# --- clocks and windows --------------------------------------------------------------------


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
    lane = Lane()
    lane.add(Window(due=10.0, last=12.0, delay=1.0))
    assert lane.ready_at(9.0) == 10.0
    lane.use(10.05)
    assert lane.ready_at(10.1) == 11.0
    assert lane.slots_left() == 2
    lane.use(12.05)  # a second late: the slot at 11 is lost
    assert lane.ready_at(12.1) == float("inf")


def test_a_late_request_pushes_the_next() -> None:
    lane = Lane()
    lane.add(Window(due=10.0, last=20.0, delay=1.0))
    lane.use(13.5)
    assert lane.ready_at(13.6) == pytest.approx(14.4)


def test_what_a_slow_down_made_invalid_is_dropped() -> None:
    lane = Lane()
    lane.add(Window(due=10.0, last=12.0, delay=1.0))
    lane.drop(before=11.0)
    assert lane.ready_at(9.0) == float("inf")
    lane.add(Window(due=10.0, last=12.0, delay=1.0))
    lane.drop(faster_than=2.0)
    assert lane.ready_at(9.0) == float("inf")
