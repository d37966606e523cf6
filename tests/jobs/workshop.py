"""A queue with a worker, in this process or in a separate one, and jobs that misbehave."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import misbehaving
import psutil
import psycopg

from forager.db.database import Database
from forager.errors import ForagerError
from forager.jobs.job import Job, NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.jobs.runners import RunnerProcess
from forager.jobs.supervisor import Supervisor
from forager.jobs.watchdog import Watchdog
from forager.settings import Settings
from support.sql import execute
from support.waiting import LIMIT, eventually

FOLDER = Path(__file__).parent
MODULES = (misbehaving.__name__, "impatient")


@dataclass(frozen=True)
class Mark:
    """What a handler has committed."""

    job_id: UUID
    lease: int
    pid: int
    step: int
    note: str


class Shop:
    """What a test can do and see."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.settings = settings
        self.queue = Queue(database, settings)

    async def sql(self, statement: Any, *values: object) -> list[Any]:
        return await execute(self.database, statement, *values)

    async def enqueue(self, kind: str, *, max_retries: int = 3, **payload: object) -> UUID:
        job = NewJob(kind=kind, payload=payload, max_retries=max_retries)
        return (await self.queue.enqueue(job)).job.id

    async def marks(self, job_id: UUID) -> list[Mark]:
        rows = await self.sql(
            "SELECT job_id, lease, pid, step, note FROM marks WHERE job_id = %s ORDER BY n", job_id
        )
        return [Mark(*row) for row in rows]

    async def first_mark(self, job_id: UUID) -> Mark:
        async def look() -> list[Mark]:
            return await self.marks(job_id)

        return (await eventually(look))[-1]

    async def when(self, job_id: UUID, fits: Callable[[Job], bool]) -> Job:
        async def look() -> Job | None:
            job = await self.queue.get(job_id)
            return job if fits(job) else None

        found = await eventually(look)
        assert found is not None
        return found

    async def ended(self, job_id: UUID, status: Status = Status.COMPLETED) -> Job:
        """The job once it is finished, which must be in this state."""
        job = await self.when(job_id, lambda job: job.completed_at is not None)
        assert job.status is status, job
        return job

    async def retried(self, job_id: UUID, count: int = 1) -> Job:
        return await self.when(job_id, lambda job: job.retry_count >= count)

    async def history(self, job_id: UUID) -> list[str]:
        return [event.move for event in await self.queue.events(job_id)]

    async def reasons(self, job_id: UUID, move: str) -> list[str]:
        events = await self.queue.events(job_id)
        return [event.reason or "" for event in events if event.move == move]


@asynccontextmanager
async def open_shop(url: str, settings: Settings, **changes: object) -> AsyncIterator[Shop]:
    """A queue without a worker."""
    given = {"job_modules": MODULES, "shutdown_grace": 5.0, **changes}
    changed = Settings(**(settings.model_dump() | given))
    path = os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")])
    async with Database(url, name="forager test", max_size=8) as database:
        shop = Shop(database, changed)
        await shop.sql(
            """
            CREATE TABLE IF NOT EXISTS marks (
                n bigint GENERATED ALWAYS AS IDENTITY, job_id uuid, lease bigint, pid int,
                step int, note text
            )
            """
        )
        with patch.dict(os.environ, PYTHONPATH=path):
            yield shop
        # without it the next test can use this database again
        with suppress(ForagerError, psycopg.Error):
            await shop.sql("SET LOCAL lock_timeout = '1s'; DROP TABLE marks")


async def two_looks(shop: Shop) -> list[Job]:
    """What a watchdog does when a long time has passed since the last heartbeats."""
    await shop.sql("UPDATE crawl_jobs SET last_heartbeat = now() - interval '1 hour'")
    watchdog = Watchdog(shop.database, shop.settings)
    assert await watchdog.run_once() == []
    return await watchdog.run_once()


@asynccontextmanager
async def at_work(shop: Shop) -> AsyncIterator[Supervisor]:
    """A worker in this process."""
    supervisor = Supervisor(shop.database, shop.settings)
    task = asyncio.ensure_future(supervisor.run())
    try:
        yield supervisor
    finally:
        supervisor.stop()
        await asyncio.wait_for(task, LIMIT)


def runner_of(supervisor: Supervisor, job_id: UUID) -> RunnerProcess:
    runner = supervisor.runners.of(job_id)
    assert runner is not None
    return runner


class WorkerProcess:
    """A worker in a separate process."""

    def __init__(self, settings: Settings, url: str) -> None:
        text = settings.model_dump_json(exclude={"database_url"})
        self.process = subprocess.Popen(
            [sys.executable, str(FOLDER / "worker_process.py"), text, url], stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        self.worker_id = UUID(self.process.stdout.readline().decode().strip())

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT)

    def tree(self) -> list[psutil.Process]:
        leader = psutil.Process(self.process.pid)
        return [leader, *leader.children(recursive=True)]

    def kill_all(self) -> list[int]:
        """All at one moment: who sees another die still acts on it."""
        tree = self.tree()
        for process in reversed(tree):
            process.suspend()
        for process in tree:
            process.kill()
        return [process.pid for process in tree]

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(LIMIT)


@contextmanager
def worker_process(
    shop: Shop, url: str | None = None, **changes: object
) -> Iterator[WorkerProcess]:
    settings = Settings(**(shop.settings.model_dump() | changes))
    worker = WorkerProcess(settings, url or shop.database.url)
    try:
        yield worker
    finally:
        if worker.process.poll() is None:
            worker.signal(signal.SIGCONT)
            worker.stop()
        assert worker.process.stdout is not None
        worker.process.stdout.close()
