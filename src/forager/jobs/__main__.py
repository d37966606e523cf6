"""A runner's process: `python -m forager.jobs FD`, started by a supervisor with a control socket.

Everything a runner does is in the database when it is committed, so it may be killed at any moment.
"""

from __future__ import annotations

import gc

gc.disable()  # until everything is imported: nothing of it can be freed

import asyncio
import importlib
import sys
from uuid import UUID

import uvloop

from forager.db import database as db
from forager.errors import DatabaseUnavailable
from forager.jobs.context import JobContext
from forager.jobs.job import Job, Lease
from forager.jobs.kinds import JobKind, load_kind
from forager.jobs.queue import Queue
from forager.jobs.runner import RECONNECT_INTERVAL, Runner, until_available
from forager.metrics.recorder import recording
from forager.processes.control import Assignment, Continue, Stop
from forager.processes.guardian import Guardian, end_process_group, join_supervisor
from forager.settings import Settings
from forager.tracing import tracing


def main() -> None:
    for module in sys.argv[2:]:  # a spare process: import what its first job will need
        importlib.import_module(module)
    assignment, settings, guardian = join_supervisor()
    with tracing(settings, "runner"):
        uvloop.run(_run(assignment, settings, guardian))


async def _run(assignment: Assignment, settings: Settings, guardian: Guardian) -> None:
    """One run of one job, from its first query to its last commit."""
    work = assignment.work
    lease = Lease(UUID(work["job_id"]), work["lease"], UUID(assignment.worker_id))
    ticking = asyncio.ensure_future(guardian.keep_ticking())
    kind = _load_kind(work["kind"], settings)
    _spare_the_collector()
    database = db.Database(
        assignment.database_url,
        name=f"forager runner {lease.job_id}",
        limits=db.RUNNER_LIMITS,
        pool_url=db.pool_url(settings),
    )
    async with database, recording(database, settings):
        queue = Queue(database, settings)
        if isinstance(kind, str):
            await until_available(lambda: queue.fail(lease, kind))
            return
        job = await _job(queue, lease)
        context = JobContext(job, lease, database, settings, on_progress=guardian.note_progress)
        _take_orders(context, guardian)
        runner = Runner(context, kind, queue)
        await runner.run()
        if runner.refused_to_stop:
            end_process_group()  # an orderly exit would wait for the handler
    ticking.cancel()


def _load_kind(name: str, settings: Settings) -> JobKind | str:
    """Import the handler, or say what is wrong with it."""
    try:
        return load_kind(name, settings.job_modules)
    except Exception as error:
        return f"the handler cannot be loaded: {error}"


async def _job(queue: Queue, lease: Lease) -> Job:
    """The job, once the database can be reached."""
    while True:
        try:
            return await queue.get(lease.job_id)
        except DatabaseUnavailable:
            await asyncio.sleep(RECONNECT_INTERVAL)


def _take_orders(context: JobContext, guardian: Guardian) -> None:
    def deliver(message: Stop | Continue) -> None:
        if isinstance(message, Stop):
            context.ask_to_stop(message.cause)
        else:
            context.carry_on()

    guardian.attach(deliver)


def _spare_the_collector() -> None:
    """What is imported lives as long as the process: looking at it again and again is for nothing.

    Measured on a crawl: 8 % of the runner's time.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


if __name__ == "__main__":
    main()
