"""A process that asks for slots and prints, for each, when it was granted and when it ended.

usage: budget_user.py DATABASE_URL OPTIONS

Begins at a line on standard input, ends after a number of requests or at the end of the input.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

from forager.clock import local_time
from forager.db.database import Database
from forager.fetch.budgets.budget import Budgets
from forager.fetch.budgets.view import BudgetView
from forager.logs import configure_logs


@dataclass(frozen=True, slots=True)
class Options:
    host: str
    delay: float
    concurrency: int
    workers: int
    count: int
    hold: float


async def main(url: str, options: Options) -> None:
    numbers = iter(range(options.count))
    async with (
        Database(url, name="forager budget user") as database,
        Budgets(database, holder=uuid4()) as budgets,
    ):
        view = BudgetView(budgets, delay=options.delay, concurrency=options.concurrency)
        async with database.connection():
            print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        async with asyncio.TaskGroup() as group:
            for _ in range(options.workers):
                group.create_task(work(view, options, numbers))


async def work(budgets: BudgetView, options: Options, numbers: Iterator[int]) -> None:
    for _ in numbers:  # shared by all workers
        with await budgets.acquire(options.host) as slot:
            await asyncio.sleep(options.hold)
            slot.succeeded()
            print(json.dumps([slot.granted_at, local_time()]), flush=True)


if __name__ == "__main__":
    configure_logs("warning")  # to standard error
    asyncio.run(main(sys.argv[1], Options(**json.loads(sys.argv[2]))))
