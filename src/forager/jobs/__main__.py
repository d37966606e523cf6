"""A runner's process: `python -m forager.jobs FD`, started by a supervisor with a control socket.

Everything a runner does is in the database when it is committed, so it may be killed at any moment.
"""

from __future__ import annotations

import gc

gc.disable()  # until everything is imported: nothing of it can be freed

import asyncio
import importlib
import sys
from contextlib import suppress
from uuid import UUID

import uvloop

from forager.db import database as db
from forager.jobs.hosting import JobHost
from forager.jobs.kinds import import_modules
from forager.jobs.shared import SharedServices
from forager.metrics.recorder import recording
from forager.processes.control import Assignment, Tick
from forager.processes.files import raise_file_limit
from forager.processes.lease_monitor import LAG_SAMPLE, LeaseMonitor, join_supervisor
from forager.processes.serving import freeze_imports
from forager.settings import Settings
from forager.tracing import tracing

# of all jobs of a runner together
CONNECTIONS = 8


def main() -> None:
    for module in sys.argv[2:]:  # what the first job will need
        importlib.import_module(module)
    assignment, settings, lease_monitor = join_supervisor()
    raise_file_limit()  # each crawl keeps a connection to its host
    with tracing(settings, "runner"):
        uvloop.run(_run(assignment, settings, lease_monitor))


async def _run(assignment: Assignment, settings: Settings, lease_monitor: LeaseMonitor) -> None:
    """Run jobs from the first assignment to the order to stop."""
    shared = SharedServices()
    ticking = asyncio.ensure_future(
        lease_monitor.keep_ticking(
            lambda lag: Tick(lag=lag, backlog=shared.count_backlog()), sample=LAG_SAMPLE
        )
    )
    with suppress(Exception):  # the jobs that need a module fail with its error
        import_modules(settings.job_modules)
    freeze_imports(100_000)  # the collector took 3 % of the time with 20,000
    database = db.Database(
        assignment.database_url,
        name="forager runner",
        limits=db.RUNNER_LIMITS,
        max_size=CONNECTIONS,
        pool_url=db.pool_url(settings),
    )
    async with database, recording(database, settings), shared:
        worker_id = UUID(assignment.worker_id)
        await JobHost(worker_id, database, settings, shared, lease_monitor).run()
    ticking.cancel()


if __name__ == "__main__":
    main()
