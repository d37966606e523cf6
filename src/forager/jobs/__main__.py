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
from forager.db.outages import retry_until_available
from forager.jobs.context import JobContext
from forager.jobs.job import Lease
from forager.jobs.kinds import JobKind, load_kind
from forager.jobs.queue import Queue
from forager.jobs.runner import Runner, log
from forager.metrics.recorder import recording
from forager.processes.control import Assignment, Continue, Stop
from forager.processes.guardian import Guardian, end_process_group, join_supervisor
from forager.processes.serving import freeze_imports
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
    freeze_imports(20_000)  # measured on a crawl: the collector took 8 % of its time
    database = db.Database(
        assignment.database_url,
        name=f"forager runner {lease.job_id}",
        limits=db.RUNNER_LIMITS,
        pool_url=db.pool_url(settings),
    )
    async with database, recording(database, settings):
        queue = Queue(database, settings)
        if isinstance(kind, str):
            await retry_until_available(lambda: queue.fail(lease, kind), log)
            return
        job = await retry_until_available(lambda: queue.get(lease.job_id), log)
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


def _take_orders(context: JobContext, guardian: Guardian) -> None:
    def deliver(message: Stop | Continue) -> None:
        if isinstance(message, Stop):
            context.ask_to_stop(message.cause)
        else:
            context.carry_on()

    guardian.attach(deliver)


if __name__ == "__main__":
    main()
