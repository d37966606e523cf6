"""The runners of a worker: which one gets a job, when another one is started, and the brake."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from uuid import UUID

import psutil

from forager.jobs.job import Job
from forager.jobs.kinds import JobKind
from forager.jobs.runners import STARTING_JOBS, HostedJob, RunnerProcess
from forager.processes.control import Assignment, StopCause
from forager.processes.started import StartedProcess
from forager.settings import Settings

# a shared runner without jobs ends after this long
IDLE_LIMIT = 300.0
# no new jobs while less memory of the machine is available
MACHINE_RESERVE_MB = 256
CORES_PER_RUNNER = 4


def shared_runners(settings: Settings) -> int:
    """How many runners of a worker are shared by jobs."""
    if settings.worker_runners is not None:
        return settings.worker_runners
    return max(1, (os.cpu_count() or 1) // CORES_PER_RUNNER)


class Runners:
    """All runners of one worker. Jobs share runners, unless one needs its own."""

    def __init__(
        self,
        worker_id: UUID,
        settings: Settings,
        *,
        on_change: Callable[[], None],
        spare: StartedProcess | None = None,
    ) -> None:
        """`spare`: a process from `start_runner`, for the first runner."""
        self.all: list[RunnerProcess] = []
        self._worker_id = worker_id
        self._settings = settings
        self._on_change = on_change
        self._spare = spare
        self._started = 0
        self._shared_limit = shared_runners(settings)

    def discard_spare(self) -> None:
        """End the process that was started for the first runner if there is no job for it."""
        if self._spare is not None:
            self._spare.discard()
            self._spare = None

    def jobs(self) -> Iterator[tuple[RunnerProcess, HostedJob]]:
        """All jobs, with their runners."""
        for runner in self.all:
            for job in runner.jobs.values():
                yield runner, job

    def of(self, job_id: UUID) -> RunnerProcess | None:
        """The runner of a job; None if the job does not run here."""
        return next((runner for runner in self.all if job_id in runner.jobs), None)

    def free(self, *, own: bool) -> int:
        """How many jobs can be started now."""
        free = self._settings.worker_capacity - sum(len(runner.jobs) for runner in self.all)
        if own:
            used = sum(runner.own for runner in self.all)
            return max(0, min(free, self._settings.worker_own_runners - used))
        starting = sum(runner.starting_jobs for runner in self._shared())
        return max(0, min(free, self._shared_limit * STARTING_JOBS - starting))

    def brake(self) -> str | None:
        """Why no more jobs are claimed at the moment, if this is so."""
        available = psutil.virtual_memory().available >> 20
        if available < MACHINE_RESERVE_MB and any(self.jobs()):
            return f"only {available} MB of the machine's memory are available"
        shared = self._shared()
        reasons = [runner.brake(self._settings) for runner in shared]
        if len(shared) < self._shared_limit or not all(reasons):
            return None
        return reasons[0]

    def place(self, job: Job, kind: JobKind, database_url: str, renewed_at: float) -> RunnerProcess:
        """Assign a job to a runner; OSError if none can be started."""
        if job.own_runner or kind.runs_alone:
            runner = self._start(database_url, own=True)
        else:
            runner = self._shared_runner(kind, database_url)
        runner.assign(job, self._worker_id, renewed_at)
        return runner

    def retire_idle(self) -> None:
        """End runners of single jobs that have ended, and shared ones that are idle for long."""
        now = time.monotonic()
        for runner in self.all:
            is_done = runner.own or now - runner.idle_since > IDLE_LIMIT
            if is_done and not runner.jobs and not runner.retired:
                runner.retired = True
                runner.ask_to_stop(StopCause.SHUTDOWN)

    def _shared(self) -> list[RunnerProcess]:
        return [runner for runner in self.all if runner.is_usable]

    def _shared_runner(self, kind: JobKind, database_url: str) -> RunnerProcess:
        """The one with the fewest jobs, without a brake if possible; a new one while there may be
        more and none is idle."""
        shared = self._shared()
        is_idle = any(not runner.jobs for runner in shared)
        if not is_idle and len(shared) < self._shared_limit:
            return self._start(database_url, own=False, module=kind.module)
        return min(
            shared, key=lambda runner: (runner.brake(self._settings) is not None, len(runner.jobs))
        )

    def _start(self, database_url: str, *, own: bool, module: str | None = None) -> RunnerProcess:
        self._started += 1
        assignment = Assignment(
            worker_id=str(self._worker_id),
            database_url=database_url,
            settings=self._settings.for_child_process(),
        )
        runner = RunnerProcess(
            assignment,
            mark=f"{self._worker_id} {self._started}",
            own=own,
            on_change=self._on_change,
            spare=self._spare,
            preload=() if module is None else (module,),
        )
        self.all.append(runner)
        return runner
