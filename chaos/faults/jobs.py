"""Faults by jobs that harm the runner that they share with crawls."""

from __future__ import annotations

from chaos.hostile_jobs import BLOCKS, EXHAUSTS_MEMORY
from chaos.world import Hit, World
from forager.errors import DatabaseUnavailable
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from forager.settings import Settings

# before all crawls, so that the next free place in a runner is for this job
FIRST = 100


async def block_runner(world: World) -> Hit | None:
    """Enqueue a job that blocks the event loop of its runner."""
    return await _enqueue(world, BLOCKS)


async def exhaust_memory(world: World) -> Hit | None:
    """Enqueue a job that uses more memory than its runner may."""
    return await _enqueue(world, EXHAUSTS_MEMORY)


async def _enqueue(world: World, kind: str) -> Hit | None:
    queue = Queue(world.cluster.database, Settings(home=world.cluster.folder / "home"))
    try:
        enqueued = await queue.enqueue(NewJob(kind=kind, priority=FIRST, max_retries=0))
    except DatabaseUnavailable:
        return None
    return Hit(f"enqueued {enqueued.job.id} to {kind}")
