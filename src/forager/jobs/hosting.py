"""The inside of a runner: many jobs, each a task of one event loop with its own lease."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from typing import Any
from uuid import UUID

import structlog

from forager.db.database import Database
from forager.db.outages import retry_until_available
from forager.errors import error_text
from forager.jobs.context import JobContext
from forager.jobs.job import Lease
from forager.jobs.kinds import JobKind, load_kind
from forager.jobs.queue import Queue
from forager.jobs.runner import Runner, log
from forager.jobs.shared import SharedServices
from forager.logs import kept_lines
from forager.processes.control import (
    BlameJob,
    CancelJob,
    Command,
    Continue,
    JobFinished,
    JobProgress,
    RunJob,
    Stop,
)
from forager.processes.lease_monitor import LeaseMonitor, end_process_group
from forager.settings import Settings

UNRENEWED = "the lease was not renewed in time"

# the job that the current task works for
CURRENT_JOB: ContextVar[str | None] = ContextVar("current_job", default=None)


class JobHost:
    """Runs the jobs that the supervisor assigns, until it is stopped.

    Jobs share the database pool and the services in `shared`. Orders for one job do not touch its
    neighbors, except if it refuses to stop: then the process ends, because only that stops it.
    """

    def __init__(
        self,
        worker_id: UUID,
        database: Database,
        settings: Settings,
        shared: SharedServices,
        lease_monitor: LeaseMonitor,
    ) -> None:
        self._worker_id = worker_id
        self._database = database
        self._settings = settings
        self._shared = shared
        self._lease_monitor = lease_monitor
        self._queue = Queue(database, settings)
        self._runs: dict[str, _HostedRun] = {}
        self._stop: Stop | None = None
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Return when a stop was ordered and all jobs have ended."""
        self._lease_monitor.find_blocking_job = TaskOwners(asyncio.get_running_loop()).blocking_job
        self._lease_monitor.attach(self._deliver)
        await self._ended.wait()

    def _deliver(self, command: Command) -> None:
        if isinstance(command, RunJob):
            self._begin(command)
        elif command.job is not None:
            if (run := self._runs.get(command.job)) is not None:
                run.deliver(command)
        elif isinstance(command, Stop):
            self._stop = command
            for run in self._runs.values():
                run.deliver(command)
            self._end_if_idle()

    def _begin(self, command: RunJob) -> None:
        if self._stop is not None:
            self._lease_monitor.forget(command.job)
            self._lease_monitor.send(JobFinished(command.job, release=self._stop.cause))
            return
        run = self._runs[command.job] = _HostedRun()
        self._shared.jobs = len(self._runs)
        run.task = asyncio.create_task(self._run(command, run))
        run.task.add_done_callback(lambda task: self._settle(command.job, task))

    async def _run(self, command: RunJob, run: _HostedRun) -> None:
        """One run of one job, from its first query to its last commit."""
        CURRENT_JOB.set(command.job)
        structlog.contextvars.bind_contextvars(job=command.job)
        with kept_lines(command.job):
            await self._run_leased(command, run)

    async def _run_leased(self, command: RunJob, run: _HostedRun) -> None:
        lease = Lease(UUID(command.job), command.lease, self._worker_id)
        kind = _load_kind(command.kind, self._settings)
        if isinstance(kind, str):
            await retry_until_available(lambda: self._queue.fail(lease, kind), log)
            return
        job = await retry_until_available(lambda: self._queue.get(lease.job_id), log)
        context = JobContext(
            job,
            lease,
            self._database,
            self._settings,
            shared=self._shared,
            alone=command.alone,
            on_progress=lambda: self._lease_monitor.send(JobProgress(command.job)),
        )
        run.attach(context)
        runner = Runner(context, kind, self._queue, leaves_release=not command.alone)
        try:
            await runner.run()
        finally:
            # also if the job is dropped because it has just left its lease
            if runner.refused_to_stop:
                self._lease_monitor.send(BlameJob(command.job))
                end_process_group()  # an orderly exit would wait for the handler
        run.release = runner.release_left

    def _settle(self, job: str, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("run ended by a bug", job=job, exc_info=error)
        run = self._runs.pop(job)
        self._shared.jobs = len(self._runs)
        release = UNRENEWED if self._lease_monitor.was_dropped(job) else run.release
        self._lease_monitor.forget(job)
        self._lease_monitor.send(JobFinished(job, release=release))
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if self._stop is not None and not self._runs:
            self._ended.set()


class _HostedRun:
    """The task of a job, and orders that came before its context was there."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        # why its supervisor has to release the job
        self.release: str | None = None
        self._context: JobContext | None = None
        self._early: list[Stop | Continue] = []
        self._is_dropped = False

    def attach(self, context: JobContext) -> None:
        self._context = context
        for command in self._early:
            self.deliver(command)

    def deliver(self, command: Stop | Continue | CancelJob) -> None:
        if isinstance(command, CancelJob):
            if self.task is not None and not self._is_dropped:
                self._is_dropped = True
                self.task.cancel()
        elif self._context is None:
            self._early.append(command)
        elif isinstance(command, Stop):
            self._context.ask_to_stop(command.cause)
        else:
            self._context.carry_on()


class TaskOwners:
    """Remembers for which job each task of the loop was created."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: weakref.WeakKeyDictionary[asyncio.Task[Any], str] = weakref.WeakKeyDictionary()
        loop.set_task_factory(self._create)

    def blocking_job(self) -> str | None:
        """The job of the task that runs now; called from another thread while the loop hangs."""
        task = asyncio.current_task(self._loop)
        return None if task is None else self._jobs.get(task)

    def _create(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        **options: Any,
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coroutine, loop=loop, **options)
        if (job := CURRENT_JOB.get()) is not None:
            self._jobs[task] = job
        return task


def _load_kind(name: str, settings: Settings) -> JobKind | str:
    """Import the handler, or say what is wrong with it."""
    try:
        return load_kind(name, settings.job_modules)
    except Exception as error:
        return f"the handler cannot be loaded: {error_text(error)}"
