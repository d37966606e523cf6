"""Runner processes as their supervisor sees them: their jobs, limits and load."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from uuid import UUID

from forager.jobs.job import Job, Lease
from forager.jobs.lifecycle import LOSSES_LIMIT
from forager.jobs.shared import longest_backlog
from forager.logs import get_logger
from forager.processes.control import (
    Assignment,
    BlameJob,
    CancelJob,
    Continue,
    JobFinished,
    JobProgress,
    Message,
    RenewedLeases,
    RunJob,
    Stop,
    StopCause,
    Tick,
)
from forager.processes.started import StartedProcess
from forager.processes.supervised import SupervisedProcess
from forager.settings import Settings

log = get_logger("supervisor")

# the runner itself cancels a job that does not pause; a frozen one cannot
PAUSE_LIMIT = 10.0
# how long a job may take to end after it was dropped, before its whole runner is killed
DROP_LIMIT = 5.0
# a job counts as starting until its first commit, or for this long
STARTING = 2.0
STARTING_JOBS = 100
# a run that still commits after this long starts to count its lost runners again
FORGET_LOSSES_AFTER = 3600.0
# a job that runs alone because of lost runners, and commits, returns to a shared one after this
# long: a page that kills its runner was in flight when it did, and is fetched among the first
PROOF = 60.0

# No new jobs for a runner beyond these.
LAG_LIMIT = 0.5
MEMORY_LIMIT = 0.75


class HostedJob:
    """One run of a job in a runner."""

    def __init__(self, job: Job, worker_id: UUID) -> None:
        self.id = job.id
        self.lease = Lease(job.id, job.lease, worker_id)
        self.losses = job.runner_losses
        self.started = self.last_progress = time.monotonic()
        self.stop_sent: StopCause | None = None
        self.stop_sent_at = 0.0
        # why it was dropped: text for the history if the job itself is the cause, else empty
        self.drop_reason: str | None = None
        self.dropped_at = 0.0
        self.ended = False
        # why the runner leaves the release of the job to its supervisor
        self.release_reason: str | None = None

    @property
    def is_leased(self) -> bool:
        """Whether its lease is to be renewed."""
        return not self.ended and self.drop_reason is None

    def is_overdue(self, now: float) -> bool:
        """Whether it was dropped and does not end."""
        was_dropped = self.drop_reason is not None and not self.ended
        return was_dropped and now - self.dropped_at > DROP_LIMIT

    @property
    def is_starting(self) -> bool:
        """Whether it was assigned lately and has not committed yet."""
        began = time.monotonic() - self.started
        return self.last_progress == self.started and began < STARTING

    def has_survived(self, now: float) -> bool:
        """Whether a job that was in lost runners is not the one that kills them."""
        has_committed = self.last_progress > self.started
        return self.losses >= LOSSES_LIMIT and has_committed and now - self.started > PROOF

    @property
    def earlier_losses(self) -> int:
        """Lost runners that count: progress long after the start of the run forgets them."""
        return 0 if self.last_progress - self.started > FORGET_LOSSES_AFTER else self.losses

    def broken_limit(self, settings: Settings) -> str | None:
        """The limit that this run has exceeded, as text for the history."""
        now = time.monotonic()
        limit = settings.progress_limit
        if now - self.last_progress > limit:
            return f"job was stuck: no progress for {limit:g} s (progress_limit)"
        time_limit = settings.job_time_limit
        if time_limit is not None and now - self.started > time_limit:
            return f"run took longer than {time_limit:g} s (job_time_limit)"
        if self.stop_sent is StopCause.PAUSE and now - self.stop_sent_at > PAUSE_LIMIT:
            return f"job did not pause within {PAUSE_LIMIT:g} s"
        return None


class RunnerProcess(SupervisedProcess):
    """Runs jobs under their leases; one that is `own` runs a single job."""

    def __init__(
        self,
        assignment: Assignment,
        *,
        mark: str,
        own: bool,
        on_change: Callable[[], None],
        spare: StartedProcess | None = None,
        preload: Sequence[str] = (),
    ) -> None:
        self.own = own
        self.jobs: dict[UUID, HostedJob] = {}
        self.idle_since = time.monotonic()
        # no more jobs are assigned
        self.retired = False
        # the job that blocks the event loop, or refused to stop
        self.blamed: UUID | None = None
        self._lag = 0.0
        self._backlog = 0
        self._on_change = on_change
        super().__init__(
            "forager.jobs",
            assignment,
            name="runner",
            mark=mark,
            on_exit=on_change,
            spare=spare,
            preload=preload,
        )

    @property
    def is_usable(self) -> bool:
        """Whether further jobs may be assigned to it."""
        return not (self.own or self.retired or self.kill_reason or self.exited.is_set())

    @property
    def starting_jobs(self) -> int:
        """Number of jobs that are starting."""
        return sum(job.is_starting for job in self.jobs.values())

    def brake(self, settings: Settings) -> str | None:
        """Why it should get no more jobs at the moment; one without jobs can take some."""
        if not self.jobs:
            return None
        if self._lag > LAG_LIMIT:
            return f"the event loop of a runner lags by {self._lag:.1f} s"
        if self.memory_mb > MEMORY_LIMIT * settings.job_memory_limit_mb:
            return f"a runner uses {self.memory_mb:.0f} of {settings.job_memory_limit_mb} MB"
        if self._backlog > longest_backlog(len(self.jobs)):
            return f"{self._backlog} pages wait for extraction"
        return None

    # --- its jobs ----------------------------------------------------------------------------

    def assign(self, job: Job, worker_id: UUID, renewed_at: float) -> HostedJob:
        """Let it run a job."""
        hosted = self.jobs[job.id] = HostedJob(job, worker_id)
        self.send(RunJob(str(job.id), job.kind, job.lease, renewed_at, alone=self.own))
        return hosted

    def renewed(self, jobs: Sequence[UUID], at: float) -> None:
        """Let it know that the leases of jobs were renewed."""
        self.send(RenewedLeases([str(job) for job in jobs], at))

    def ask_job_to_stop(self, job: HostedJob, cause: StopCause) -> None:
        """Ask a job to commit and return; asked once for each cause."""
        if job.stop_sent != cause:
            job.stop_sent, job.stop_sent_at = cause, time.monotonic()
            self.send(Stop(cause, str(job.id)))

    def carry_on(self, job: HostedJob) -> None:
        """Revoke a pause."""
        if job.stop_sent is StopCause.PAUSE:
            job.stop_sent = None
            self.send(Continue(str(job.id)))

    def drop(self, job: HostedJob, reason: str = "") -> None:
        """Cancel a job, for a reason that its history will state if it is still held."""
        if job.drop_reason is not None or job.ended:
            return
        job.drop_reason, job.dropped_at = reason, time.monotonic()
        if self.own:  # there are no neighbors
            self.kill(reason or "lease lost")
        else:
            self.send(CancelJob(str(job.id)))

    def forget(self, job: HostedJob) -> None:
        """The job no longer runs here."""
        del self.jobs[job.id]
        self.idle_since = time.monotonic()

    def how_it_ended(self) -> str:
        """Why it ended, for the history of its jobs."""
        ended = super().how_it_ended()
        by_itself = self.kill_reason is None and (self.exit_code or 0) >= 0
        return f"{ended} before the job was finished" if by_itself else ended

    # --- limits ------------------------------------------------------------------------------

    def forgive_silence(self) -> None:
        """Begin all limits again, after a time in which this process did not run."""
        super().forgive_silence()
        for job in self.jobs.values():
            job.last_progress = self.last_tick

    def enforce_limits(self, settings: Settings) -> None:
        """Kill it if it, or one of its jobs, exceeds a limit."""
        super().enforce_limits(settings)
        now = time.monotonic()
        for job in self.jobs.values():
            if job.is_leased and (reason := job.broken_limit(settings)):
                log.warning("job dropped", job=str(job.id), reason=reason)
                self.drop(job, reason)
            elif job.is_overdue(now):
                self._kill_for(job)

    def _kill_for(self, job: HostedJob) -> None:
        """Only the end of the process ends this job."""
        if self.kill_reason is None:
            self.blamed = job.id
            reason = job.drop_reason or f"job {job.id} did not end within {DROP_LIMIT:g} s"
            log.warning("runner killed", pid=self.pid, job=str(job.id), reason=reason)
            self.kill(reason)

    def _note(self, message: Message) -> None:
        super()._note(message)
        if isinstance(message, Tick):
            self._lag, self._backlog = message.lag, message.backlog
            if self.kill_reason is None:
                self.blamed = None
        elif isinstance(message, BlameJob):
            self.blamed = UUID(message.job)
        elif isinstance(message, JobProgress | JobFinished):
            self._note_job(message)

    def _note_job(self, message: JobProgress | JobFinished) -> None:
        job = self.jobs.get(UUID(message.job))
        if job is None:
            return
        if isinstance(message, JobProgress):
            job.last_progress = time.monotonic()
        else:
            job.ended, job.release_reason = True, message.release
            self._on_change()
