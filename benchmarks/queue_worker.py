"""Latency of a real worker: from enqueue to claim, and from a killed runner to its restart."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from forager.db.database import Database
from forager.jobs.job import Job, NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.jobs.supervisor import Supervisor
from forager.settings import Settings

LOOK = 0.01
LIMIT = 60.0


@dataclass(frozen=True, slots=True)
class Recovery:
    """Seconds from a runner's SIGKILL until its job was claimed, and until it committed again."""

    claimed: float
    committed: float


class WorkerBench:
    """A supervisor with default settings, and a queue to give it work."""

    def __init__(self, database: Database, queue: Queue, supervisor: Supervisor) -> None:
        self._database = database
        self._queue = queue
        self._supervisor = supervisor

    async def enqueue_to_claim(self, samples: int) -> AsyncIterator[float]:
        """Seconds between the two events of each job, by the database's clock."""
        for _ in range(samples):
            # idle, and at a random time of its polling interval
            await self._until_idle()
            await asyncio.sleep(random.uniform(0.05, 0.35))
            job = await self._enqueue(steps=0, seconds=0.0)
            await self._until_finished(job)
            yield await self._claim_latency(job)

    async def death_to_running(self, samples: int) -> AsyncIterator[Recovery]:
        for _ in range(samples):
            await self._until_idle()
            job = await self._enqueue(steps=1_000_000, seconds=0.01)
            await self._until_committed(job, after_lease=0)
            yield await self._kill_and_watch(job)
            await self._queue.cancel(job.id, actor="bench")

    async def _enqueue(self, *, steps: int, seconds: float) -> Job:
        payload = {"steps": steps, "seconds": seconds}
        return (await self._queue.enqueue(NewJob(kind="selftest", payload=payload))).job

    async def _claim_latency(self, job: Job) -> float:
        at = {event.move: event.at for event in await self._queue.events(job.id)}
        return (at["claim"] - at["enqueue"]).total_seconds()

    async def _kill_and_watch(self, job: Job) -> Recovery:
        runner = self._supervisor.runners.of(job.id)
        assert runner is not None
        lease = runner.jobs[job.id].lease.number
        start = time.monotonic()
        os.kill(runner.pid, signal.SIGKILL)
        async for _ in _moments():
            if (await self._queue.get(job.id)).lease > lease + 1:
                break
        claimed = time.monotonic() - start
        await self._until_committed(job, after_lease=lease)
        return Recovery(claimed, time.monotonic() - start)

    async def _until_committed(self, job: Job, *, after_lease: int) -> None:
        """Wait for the first commit under a later lease."""
        async for _ in _moments():
            async with self._database.connection() as connection:
                cursor = await connection.execute(
                    """
                    SELECT 1
                      FROM crawl_states s
                      JOIN job_events e ON e.job_id = s.job_id AND e.move = 'claim'
                     WHERE s.job_id = %s AND e.lease > %s AND s.updated_at > e.at
                    """,
                    (job.id, after_lease),
                )
                if await cursor.fetchone():
                    return

    async def _until_finished(self, job: Job) -> None:
        async for _ in _moments():
            current = await self._queue.get(job.id)
            assert current.status is not Status.FAILED, current.error_message
            if current.status is Status.COMPLETED:
                return

    async def _until_idle(self) -> None:
        async for _ in _moments():
            if not any(self._supervisor.runners.jobs()):
                return


@asynccontextmanager
async def running_worker(url: str, settings: Settings) -> AsyncIterator[WorkerBench]:
    """A supervisor at work, stopped gracefully at the end."""
    async with Database(url, name="bench") as ours, Database(url, name="worker") as its:
        supervisor = Supervisor(its, settings)
        task = asyncio.ensure_future(supervisor.run())
        try:
            yield WorkerBench(ours, Queue(ours, settings), supervisor)
        finally:
            supervisor.stop()
            await task


async def _moments() -> AsyncIterator[None]:
    """Poll until true, with a time limit."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        yield
        await asyncio.sleep(LOOK)
    raise TimeoutError(f"did not happen within {LIMIT:g} s")
