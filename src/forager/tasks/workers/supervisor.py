"""The supervisor of task workers: starts one process, limits it, and replaces it when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import time
from uuid import UUID

from forager.clock import wait_for_event
from forager.db.database import Database
from forager.db.ids import new_id
from forager.db.outages import TROUBLE, Outage
from forager.logs import get_logger
from forager.processes.control import Assignment, StopCause
from forager.processes.supervised import SupervisedProcess, watch_limits
from forager.settings import Settings
from forager.tasks.workers.recovery import TaskRecovery

log = get_logger("tasks")

MODULE = "forager.tasks"
FIRST_DELAY, LONGEST_DELAY = 1.0, 60.0
# after this time the delay before the next start is reset
WELL_AFTER = 60.0
KILL_LIMIT = 5.0
RECOVERY_INTERVAL = 1.0
STOPPED = "the worker was stopped"
UNRENEWED = "the row of the worker was not renewed in time"


class WorkerProcess(SupervisedProcess):
    def __init__(
        self, worker_id: UUID, database_url: str, settings: Settings, module: str = MODULE
    ) -> None:
        self.worker_id = worker_id
        assignment = Assignment(
            worker_id=str(worker_id),
            database_url=database_url,
            settings=settings.for_child_process(),
        )
        super().__init__(
            module, assignment, name="task worker", mark=f"{worker_id} tasks", counts_run=False
        )


class TaskSupervisor:
    """Keeps one worker process running."""

    def __init__(self, database: Database, settings: Settings, module: str = MODULE) -> None:
        self.worker: WorkerProcess | None = None
        self._module = module
        self._database = database
        self._settings = settings
        self._recovery = TaskRecovery(database, settings)
        self._stopping = asyncio.Event()
        self._delay = FIRST_DELAY

    def stop(self) -> None:
        """Request a graceful stop: the worker commits its results and releases its other tasks."""
        self._stopping.set()

    async def run(self) -> None:
        limits = asyncio.ensure_future(
            watch_limits(lambda: [self.worker] if self.worker else [], self._settings)
        )
        try:
            while not self._stopping.is_set():
                await self._run_one()
        finally:
            limits.cancel()
            if self.worker is not None:
                self.worker.kill()

    async def _run_one(self) -> None:
        """Start a worker, wait for its end, and recover its tasks."""
        worker = self._start()
        if worker is not None:
            await _first_of(worker.exited, self._stopping)
            if self._stopping.is_set():
                await self._end(worker)
                return
            well = time.monotonic() - worker.started >= WELL_AFTER
            self._delay = FIRST_DELAY if well else self._delay
            log.warning(
                "task worker died, another one is started",
                reason=worker.how_it_ended(),
                seconds=self._delay,
            )
            await self._recover(worker)
        await wait_for_event(self._stopping, self._delay)
        self._delay = min(LONGEST_DELAY, 2 * self._delay)

    def _start(self) -> WorkerProcess | None:
        try:
            self.worker = WorkerProcess(new_id(), self._database.url, self._settings, self._module)
        except OSError as error:  # too many processes or files, or no memory
            log.error("no task worker could be started", reason=str(error))
            return None
        return self.worker

    async def _end(self, worker: WorkerProcess) -> None:
        worker.ask_to_stop(StopCause.SHUTDOWN)
        await wait_for_event(worker.exited, self._settings.shutdown_grace)
        worker.kill()
        await wait_for_event(worker.exited, KILL_LIMIT)
        if worker.exit_code != 0 and worker.exited.is_set():
            # it was killed: others need not wait until its heartbeat is stale
            with contextlib.suppress(*TROUBLE):
                await self._recovery.release_worker(worker.worker_id, reason=STOPPED)

    async def _recover(self, worker: WorkerProcess) -> None:
        """Recover its tasks, as soon as the database is reachable."""
        outage = Outage(log, "tasks of the dead worker cannot be recovered yet")
        revival = Outage(log, "the embedded database does not start")
        while not self._stopping.is_set():
            with outage:
                if worker.unrenewed:
                    await self._recovery.release_worker(worker.worker_id, reason=UNRENEWED)
                else:
                    await self._recovery.recover_worker(worker.worker_id)
                return
            with revival:
                await self._database.revive()
            await wait_for_event(self._stopping, RECOVERY_INTERVAL)


async def _first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
