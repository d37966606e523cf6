"""The process of a task worker: its work is in the database when it is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from uuid import UUID

import uvloop

from forager.clock import local_time
from forager.db.database import RUNNER_LIMITS, Database, pool_url
from forager.errors import LeaseLost
from forager.logs import get_logger
from forager.metrics.recorder import recording
from forager.processes.control import Assignment, Command, Stop
from forager.processes.lease_monitor import LeaseMonitor, join_supervisor
from forager.settings import Settings
from forager.tasks.hints import Hints
from forager.tasks.workers.worker import TaskWorker

log = get_logger("tasks")

CONNECTIONS = 10

# provides hints while its context is open
Receive = Callable[[Settings, Hints], AbstractAsyncContextManager[object]]


def main(receive: Receive | None = None) -> None:
    """Run a worker until it is stopped; with `receive`, on the tasks that it provides."""
    assignment, settings, lease_monitor = join_supervisor()
    lease_monitor.renewed(local_time())
    uvloop.run(_run(assignment, settings, lease_monitor, receive))


async def _run(
    assignment: Assignment, settings: Settings, lease_monitor: LeaseMonitor, receive: Receive | None
) -> None:
    database = Database(
        assignment.database_url,
        name=f"forager tasks {assignment.worker_id}",
        limits=RUNNER_LIMITS,
        max_size=CONNECTIONS,
        pool_url=pool_url(settings),
    )
    hints = None if receive is None else Hints()
    receiving = receive(settings, hints) if receive and hints else nullcontext()
    worker_id = UUID(assignment.worker_id)
    worker = TaskWorker(
        database, settings, worker_id, on_renewed=lease_monitor.renewed, hints=hints
    )

    def deliver(command: Command) -> None:
        if isinstance(command, Stop):
            worker.stop()

    lease_monitor.attach(deliver)
    ticking = asyncio.ensure_future(lease_monitor.keep_ticking(lambda _: worker.tick()))
    try:
        async with database, recording(database, settings), receiving:
            await worker.run()
    except LeaseLost as error:
        log.error("task worker ends: its tasks belong to other workers", reason=error.message)
        raise SystemExit(1) from None
    finally:
        ticking.cancel()
