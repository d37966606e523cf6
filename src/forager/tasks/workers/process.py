"""The process of a worker: everything it does is in the database when it is committed."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

import uvloop

from forager.db.database import RUNNER_LIMITS, Database, pool_url
from forager.errors import LeaseLost
from forager.logs import configure_logs, get_logger
from forager.metrics.recorder import recording
from forager.settings import Settings
from forager.tasks.hints import Hints
from forager.tasks.workers.control import Instructions, receive_instructions
from forager.tasks.workers.lifeline import Lifeline
from forager.tasks.workers.worker import TaskWorker

log = get_logger("tasks")

TICK_INTERVAL = 1.0
CONNECTIONS = 10

# brings hints for as long as its context lasts
Receive = Callable[[Settings, Hints], AbstractAsyncContextManager[object]]


def main(receive: Receive | None = None) -> None:
    """Be told who one is, and work until told to stop; with `receive`, on what that brings."""
    parent = socket.socket(fileno=int(sys.argv[1]))
    parent.set_inheritable(False)
    instructions = receive_instructions(parent)
    if instructions is None:
        raise SystemExit(1)
    configure_logs(instructions.settings.log_level, instructions.settings.log_format)
    uvloop.run(_run(instructions, parent, receive))


async def _run(instructions: Instructions, parent: socket.socket, receive: Receive | None) -> None:
    loop = asyncio.get_running_loop()
    settings = instructions.settings
    database = Database(
        instructions.database_url,
        name=f"forager tasks {instructions.worker_id}",
        limits=RUNNER_LIMITS,
        max_size=CONNECTIONS,
        pool_url=pool_url(settings),
    )
    async with database, recording(database, settings):
        worker: TaskWorker | None = None

        def stop() -> None:
            if worker is not None:
                worker.stop()

        def orphaned() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: it leaves anyway
                loop.call_soon_threadsafe(stop)

        lifeline = Lifeline(parent, lease_limit=settings.lease_limit, on_orphaned=orphaned)
        lifeline.start()
        hints = None if receive is None else Hints()
        worker = TaskWorker(
            database, settings, instructions.worker_id, on_renewed=lifeline.renewed, hints=hints
        )
        loop.add_signal_handler(signal.SIGTERM, stop)
        ticking = asyncio.ensure_future(_tick(lifeline))
        try:
            async with _receiving(receive, settings, hints):
                await worker.run()
        except LeaseLost as error:
            log.error("task worker ends: others have its tasks", reason=error.message)
            raise SystemExit(1) from None
        finally:
            ticking.cancel()


def _receiving(
    receive: Receive | None, settings: Settings, hints: Hints | None
) -> AbstractAsyncContextManager[object]:
    return nullcontext() if receive is None or hints is None else receive(settings, hints)


async def _tick(lifeline: Lifeline) -> None:
    while True:
        lifeline.tick()
        await asyncio.sleep(TICK_INTERVAL)
