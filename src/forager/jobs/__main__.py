"""A runner's process: `python -m forager.jobs FD`, started by a supervisor with a control socket.

Everything a runner does is in the database when it is committed, so it may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import sys
from uuid import UUID

import uvloop

from forager.db import database as db
from forager.errors import DatabaseUnavailable
from forager.jobs.context import JobContext
from forager.jobs.control import Assignment, Continue, Stop, StopCause, Tick, decode, encode
from forager.jobs.guardian import Guardian, end_process_group
from forager.jobs.job import Job
from forager.jobs.kinds import JobKind, load_kind
from forager.jobs.lease import Lease
from forager.jobs.queue import Queue
from forager.jobs.runner import RECONNECT_INTERVAL, Runner, patiently
from forager.logs import configure_logs
from forager.metrics.recorder import recording
from forager.settings import Settings
from forager.tracing import tracing

TICK_INTERVAL = 1.0
ORPHAN_LIMIT = 15.0


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    assignment = _receive_assignment(control)
    settings = Settings(**assignment.settings)
    configure_logs(settings.log_level, settings.log_format)
    # first of all: whatever hangs from here on, the process ends in time
    guardian = Guardian(
        control,
        renewed_at=assignment.renewed_at,
        lease_limit=settings.lease_limit,
        orphan_grace=ORPHAN_LIMIT,
    )
    guardian.start()
    with tracing(settings, "runner"):
        uvloop.run(_run(assignment, settings, control, guardian))


async def _run(
    assignment: Assignment, settings: Settings, control: socket.socket, guardian: Guardian
) -> None:
    """One run of one job, from its first look at the database to its last commit."""
    lease = Lease(UUID(assignment.job_id), assignment.lease, UUID(assignment.worker_id))
    ticking = asyncio.ensure_future(_tick(control))
    kind = _load_kind(assignment, settings)
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
            await patiently(lambda: queue.fail(lease, kind))
            return
        job = await _job(queue, lease)
        context = JobContext(
            job, lease, database, settings, on_progress=lambda: _send(control, progress=True)
        )
        _take_orders(context, guardian)
        runner = Runner(context, kind, queue)
        await runner.run()
        if runner.refused_to_stop:
            end_process_group()  # an orderly exit would wait for the handler
    ticking.cancel()


def _load_kind(assignment: Assignment, settings: Settings) -> JobKind | str:
    """Import the handler, or say what is wrong with it."""
    try:
        return load_kind(assignment.kind, settings.job_modules)
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

    loop = asyncio.get_running_loop()
    guardian.attach(loop, deliver)
    # a service manager sends it to every process of a service at once
    loop.add_signal_handler(signal.SIGTERM, deliver, Stop(StopCause.SHUTDOWN))


def _spare_the_collector() -> None:
    """What is imported lives as long as the process: looking at it again and again is for nothing.

    Measured on a crawl: 8 % of the runner's time.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def _tick(control: socket.socket) -> None:
    """Say that the event loop turns. Only from the loop itself, never from a thread."""
    while True:
        _send(control)
        await asyncio.sleep(TICK_INTERVAL)


def _send(control: socket.socket, *, progress: bool = False) -> None:
    # a full socket means that the supervisor does not read: ticks are not worth waiting for
    with contextlib.suppress(OSError):
        control.send(encode(Tick(progress)), socket.MSG_DONTWAIT)


def _receive_assignment(control: socket.socket) -> Assignment:
    """Read the first line, and not a byte more: the guardian reads the rest."""
    line = b""
    while not line.endswith(b"\n"):
        byte = control.recv(1)
        if not byte:
            raise SystemExit(1)  # the supervisor died before it said what to run
        line += byte
    message = decode(line)
    assert isinstance(message, Assignment)
    return message


if __name__ == "__main__":
    main()
