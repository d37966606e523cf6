"""A worker's process: `python -m forager.catalog FD`, started by a keeper with a socket to it.

Everything it does is in the database when it is committed, so it may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys

import uvloop

from forager.catalog.control import Instructions, receive_instructions
from forager.catalog.lifeline import Lifeline
from forager.catalog.worker import TaskWorker
from forager.db.database import RUNNER_LIMITS, Database, pool_url
from forager.errors import LeaseLost
from forager.logs import configure_logs, get_logger
from forager.metrics.recorder import recording

log = get_logger("tasks")

TICK_INTERVAL = 1.0
CONNECTIONS = 10


def main() -> None:
    parent = socket.socket(fileno=int(sys.argv[1]))
    parent.set_inheritable(False)
    instructions = receive_instructions(parent)
    if instructions is None:
        raise SystemExit(1)
    configure_logs(instructions.settings.log_level, instructions.settings.log_format)
    uvloop.run(_run(instructions, parent))


async def _run(instructions: Instructions, parent: socket.socket) -> None:
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
        worker = TaskWorker(database, settings, instructions.worker_id, on_renewed=lifeline.renewed)
        loop.add_signal_handler(signal.SIGTERM, stop)
        ticking = asyncio.ensure_future(_tick(lifeline))
        try:
            await worker.run()
        except LeaseLost as error:
            log.error("task worker ends: others have its tasks", reason=error.message)
            raise SystemExit(1) from None
        finally:
            ticking.cancel()


async def _tick(lifeline: Lifeline) -> None:
    while True:
        lifeline.tick()
        await asyncio.sleep(TICK_INTERVAL)


if __name__ == "__main__":
    main()
