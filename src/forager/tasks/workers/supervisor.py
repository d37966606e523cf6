"""The supervisor of task workers: starts one process, limits it, and replaces it when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import UUID

from forager.backoff import backoff
from forager.clock import wait_for_event
from forager.db.database import Database
from forager.db.ids import new_id
from forager.db.outages import TRANSIENT_ERRORS, Outage
from forager.errors import error_text
from forager.logs import get_logger
from forager.processes.control import Assignment, Message, StopCause, Tick
from forager.processes.signals import time_to_finish
from forager.processes.supervised import LOOK_INTERVAL, SupervisedProcess, watch_limits
from forager.settings import Settings

if TYPE_CHECKING:
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
    """The process that runs the tasks of a worker."""

    def __init__(
        self, worker_id: UUID, database_url: str, settings: Settings, module: str = MODULE
    ) -> None:
        self.worker_id = worker_id
        assignment = Assignment(
            worker_id=str(worker_id),
            database_url=database_url,
            settings=settings.for_child_process(),
        )
        super().__init__(module, assignment, name="task worker", mark=f"{worker_id} tasks")
        self._last_progress = self.last_tick
        self._busy_for = 0.0

    @property
    def is_busy(self) -> bool:
        return self._busy_for > LOOK_INTERVAL or not self._has_ticked

    def forgive_silence(self) -> None:
        super().forgive_silence()
        self._last_progress = self.last_tick

    def broken_limit(self, settings: Settings) -> str | None:
        return super().broken_limit(settings) or self._broken_work_limit(settings)

    def _broken_work_limit(self, settings: Settings) -> str | None:
        limit = settings.progress_limit
        if time.monotonic() - self._last_progress > limit:
            return f"{self._name} was stuck: no progress for {limit:g} s (progress_limit)"
        if settings.job_time_limit is not None and self._busy_for > settings.job_time_limit:
            return f"a task took longer than {settings.job_time_limit:g} s (job_time_limit)"
        return None

    def _note(self, message: Message) -> None:
        super()._note(message)
        if isinstance(message, Tick):
            self._busy_for = message.busy_for or 0.0
            if message.progress:
                self._last_progress = self.last_tick


class TaskSupervisor:
    """Keeps one worker process running."""

    def __init__(self, database: Database, settings: Settings, module: str = MODULE) -> None:
        self.worker: WorkerProcess | None = None
        self._module = module
        self._database = database
        self._settings = settings
        self._stopping = asyncio.Event()
        self._quick_deaths = 0

    @cached_property
    def _recovery(self) -> TaskRecovery:
        # imported when it is needed: it would delay the first job of the same process
        from forager.tasks.workers.recovery import TaskRecovery

        return TaskRecovery(self._database, self._settings)

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
            self._quick_deaths = 0 if well else self._quick_deaths
            log.warning("task worker died, another one is started", reason=worker.how_it_ended())
            await self._recover(worker)
        self._quick_deaths += 1
        delay = backoff(self._quick_deaths, FIRST_DELAY, LONGEST_DELAY)
        await wait_for_event(self._stopping, delay)

    def _start(self) -> WorkerProcess | None:
        try:
            self.worker = WorkerProcess(new_id(), self._database.url, self._settings, self._module)
        except OSError as error:  # too many processes or files, or no memory
            log.error("no task worker could be started", reason=error_text(error))
            return None
        return self.worker

    async def _end(self, worker: WorkerProcess) -> None:
        worker.ask_to_stop(StopCause.SHUTDOWN)
        await wait_for_event(worker.exited, time_to_finish(self._settings.shutdown_grace))
        worker.kill()
        await wait_for_event(worker.exited, KILL_LIMIT)
        if worker.exit_code != 0 and worker.exited.is_set():
            # it was killed: others need not wait until its heartbeat is stale
            with contextlib.suppress(*TRANSIENT_ERRORS):
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
