"""Several processes together keep to the budget of a host."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import class_row

from fetch.budget_rows import HOST, LATE, MICROSECOND, Open, add_row, closest
from forager.clock import local_time
from forager.db.database import Database
from forager.db.pool import limits_transactions
from forager.fetch.budgets import store
from forager.fetch.budgets.accounts import FRESH_FOR
from forager.fetch.budgets.exchange import Answers, Reservation, SlotRequest
from forager.fetch.budgets.slots import HostThrottled
from support.sql import execute
from support.waiting import LIMIT

USER = Path(__file__).with_name("budget_user.py")


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


def most_at_once(requests: Sequence[tuple[float, float]]) -> int:
    events = sorted([(begin, 1) for begin, _ in requests] + [(end, -1) for _, end in requests])
    now, most = 0, 0
    for _, change in events:
        now += change
        most = max(most, now)
    return most


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


@pytest.mark.usefixtures("short_grace")
async def test_permits_of_a_killed_process_come_back(
    database: Database, database_url: str, open_budgets: Open
) -> None:
    await add_row(database, max_concurrent_requests=1)
    user = await User.start(database_url, count=1000)
    user.begin()
    assert await user.next() is not None
    await user.kill()
    budgets = await open_budgets()
    with pytest.raises(HostThrottled, match="connections"):
        await budgets.acquire(HOST, max_wait=0.1)
    # what time would do
    await execute(database, "UPDATE domain_permits SET expires_at = now() WHERE permits > 0")
    with await budgets.acquire(HOST):
        assert budgets._hosts[HOST].account.permits == 1


async def test_a_process_that_is_frozen_during_an_exchange_does_not_keep_the_host(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server waits for the rest of the batch, which is longer than any other limit."""
    domain_id = await add_row(database)
    monkeypatch.setattr(store, "FROZEN_MS", 1_000)

    def frozen(_: object) -> object:
        """Let nothing be sent until the server has ended the session."""
        with psycopg.connect(database_url, autocommit=True) as other:
            began = local_time()
            while other.execute(query).fetchone() and local_time() < began + LIMIT:
                time.sleep(0.05)
        return class_row(Reservation)

    async with database.connection() as connection:
        if not limits_transactions(connection):
            pytest.skip("PostgreSQL limits transactions from version 17 on")
        query = sql.SQL("SELECT 1 FROM pg_stat_activity WHERE pid = {}").format(
            connection.info.backend_pid
        )
        monkeypatch.setattr(store, "class_row", frozen)
        wanted = SlotRequest(domain_id, 0.0, 5, 0.0, 1, {}, 10.0, 0, Answers())
        with pytest.raises(psycopg.Error):
            await store.exchange(connection, uuid4(), [wanted])
