"""Rows of domains and proxies that budgets read, and a process that spends a budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any
from uuid import UUID

from forager.db.database import Database
from forager.fetch.budgets import store
from forager.fetch.budgets.exchange import Reservation, SlotRequest
from support.budgets import CrawlBudgets
from support.sql import execute

HOST = "shop.example"
LATE = 0.1  # how much of a delay a request may be late
MICROSECOND = 1e-6  # what the database's times are rounded to
Open = Callable[..., Awaitable[CrawlBudgets]]


def closest(times: Sequence[float]) -> float:
    return min(later - earlier for earlier, later in pairwise(sorted(times)))


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


async def exchange_with(database: Database, holder: UUID, wanted: SlotRequest) -> Reservation:
    async with database.connection() as connection:
        answer = await store.exchange(connection, holder, [wanted], waits=True)
    return answer.given[wanted.domain_id]


async def granted(budgets: CrawlBudgets, proxy_id: int, count: int) -> list[float]:
    times = []
    for _ in range(count):
        with await budgets.acquire(HOST, proxy_id=proxy_id) as slot:
            times.append(slot.granted_at)
    return times
