"""A shop, tasks for its products, and workers in this process or in separate ones."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from forager.db.database import Database
from forager.db.ids import new_id
from forager.errors import DatabaseUnavailable
from forager.extract.hosts import host_of
from forager.extract.keys import url_hash
from forager.settings import Settings
from forager.tasks.scheduler import Scheduler
from forager.tasks.workers.recovery import TaskRecovery
from forager.tasks.workers.supervisor import WorkerProcess
from forager.tasks.workers.worker import TaskWorker
from support.sql import execute
from support.waiting import LIMIT, eventually


@dataclass(frozen=True)
class TaskRow:
    id: int
    status: str
    retry_count: int
    lease: int
    error_kind: str | None
    error_message: str | None
    worker_id: object
    segment: str | None
    parser_version: str | None


class Tasks:
    """What a test can do with tasks, and see of them."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.settings = settings

    async def sql(self, statement: Any, *values: object) -> list[Any]:
        return await execute(self.database, statement, *values)

    async def add(self, *urls: str, status: str = "queued", max_retries: int = 3) -> list[int]:
        """Tasks for URLs of hosts that may be at private addresses; their ids."""
        ids = []
        for url in urls:
            host = host_of(url)
            rows = await self.sql(
                """
                WITH domain AS (
                    INSERT INTO domains (domain_name, base_url, allow_private)
                    VALUES (%s, %s, true)
                    ON CONFLICT (domain_name) DO UPDATE SET allow_private = true
                    RETURNING id
                )
                INSERT INTO crawl_tasks (domain_id, url, url_hash, status, max_retries)
                SELECT id, %s, %s, %s, %s FROM domain
                RETURNING id
                """,
                host,
                f"http://{host}/",
                url,
                url_hash(url),
                status,
                max_retries,
            )
            ids.append(rows[0][0])
        return ids

    async def get(self, task_id: int) -> TaskRow:
        rows = await self.sql(
            """
            SELECT id, status, retry_count, lease, error_kind, error_message, worker_id, segment,
                   parser_version
              FROM crawl_tasks WHERE id = %s
            """,
            task_id,
        )
        return TaskRow(*rows[0])

    async def when(self, task_id: int, *statuses: str) -> TaskRow:
        """The task once it is in one of these states."""

        async def look() -> TaskRow | None:
            with suppress(DatabaseUnavailable):
                found = await self.get(task_id)
                return found if found.status in statuses else None
            return None

        found = await eventually(look)
        assert found is not None
        return found

    async def all_when(self, ids: list[int], *statuses: str) -> list[TaskRow]:
        return [await self.when(task_id, *statuses) for task_id in ids]

    async def again(self, *ids: int) -> None:
        """The next round: as if the time had come."""
        await self.sql(
            """
            UPDATE crawl_tasks SET status = 'queued', scheduled_at = now()
             WHERE id = ANY(%s) AND status = 'completed'
            """,
            list(ids),
        )
        await self.sql("NOTIFY forager_tasks")

    async def attempts(self, task_id: int) -> list[tuple[str, str]]:
        """Stage and outcome of each attempt, in order."""
        rows = await self.sql(
            "SELECT stage, outcome FROM task_attempts WHERE task_id = %s ORDER BY id", task_id
        )
        return [(row[0], row[1]) for row in rows]

    async def product(self, task_id: int) -> Any:
        """Name, price, currency, availability; None if there is no product."""
        rows = await self.sql(
            """
            SELECT product_name, price, currency, availability
              FROM products WHERE crawl_task_id = %s
            """,
            task_id,
        )
        assert len(rows) <= 1
        return rows[0] if rows else None

    async def prices(self, task_id: int) -> list[str]:
        rows = await self.sql(
            """
            SELECT h.price FROM price_history h JOIN products p ON p.id = h.product_id
             WHERE p.crawl_task_id = %s ORDER BY h.id
            """,
            task_id,
        )
        return [f"{row[0]:.2f}" for row in rows]

    async def schedule(self) -> None:
        await Scheduler(self.database, self.settings).run_once()

    async def silence(self) -> None:
        """Make the heartbeats of all workers stale."""
        await self.sql("UPDATE workers SET last_seen = now() - interval '1 hour'")

    async def forget_permits(self) -> None:
        """A dead worker's share of a host ends by itself, but that takes ten seconds."""
        await self.sql("DELETE FROM domain_permits")

    async def recover(self) -> int:
        """What two looks find."""
        await self.forget_permits()
        recovery = TaskRecovery(self.database, self.settings)
        return len([*await recovery.run_once(), *await recovery.run_once()])


@asynccontextmanager
async def at_work(tasks: Tasks) -> AsyncIterator[TaskWorker]:
    """A worker in this process."""
    worker = TaskWorker(tasks.database, tasks.settings, new_id())
    running = asyncio.ensure_future(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await asyncio.wait_for(running, LIMIT)


class Process:
    """A worker in a separate process."""

    def __init__(self, tasks: Tasks, url: str | None = None) -> None:
        self.worker = WorkerProcess(new_id(), url or tasks.database.url, tasks.settings)
        self.worker_id = self.worker.worker_id

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.worker.pid, number)

    async def exited(self) -> int:
        async with asyncio.timeout(LIMIT):
            await self.worker.exited.wait()
        assert self.worker.exit_code is not None
        return self.worker.exit_code

    async def kill(self) -> None:
        self.worker.kill()
        await self.exited()


@asynccontextmanager
async def process(tasks: Tasks, url: str | None = None) -> AsyncIterator[Process]:
    started = Process(tasks, url)
    try:
        yield started
    finally:
        if not started.worker.exited.is_set():
            started.signal(signal.SIGCONT)
            await started.kill()
