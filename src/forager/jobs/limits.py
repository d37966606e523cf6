"""The limits a runner must keep: signs of life, progress, time and memory."""

from __future__ import annotations

import time

from forager.jobs.control import Stop, StopCause
from forager.jobs.process import RunnerProcess
from forager.settings import Settings

# the runner itself cancels a handler that does not stop; a frozen one cannot
PAUSE = Stop(StopCause.PAUSE)
PAUSE_LIMIT = 10.0


def broken_limit(runner: RunnerProcess, settings: Settings) -> str | None:
    """The limit this runner has broken, in words for the job's history; None while it is well."""
    if runner.exited.is_set():
        return None
    now = time.monotonic()
    if now - runner.last_tick > settings.stall_limit:
        return f"runner was frozen: no sign of life for {settings.stall_limit:g} s (stall_limit)"
    if now - runner.last_progress > settings.progress_limit:
        return f"runner was stuck: no progress for {settings.progress_limit:g} s (progress_limit)"
    time_limit = settings.job_time_limit
    if time_limit is not None and now - runner.started > time_limit:
        return f"run took longer than {time_limit:g} s (job_time_limit)"
    if runner.stop_sent == PAUSE and now - (runner.stop_sent_at or now) > PAUSE_LIMIT:
        return f"runner did not pause within {PAUSE_LIMIT:g} s"
    memory = runner.memory_mb()
    if memory > settings.job_memory_limit_mb:
        return (
            f"runner used {memory:.0f} MB, more than {settings.job_memory_limit_mb} MB"
            " (job_memory_limit_mb)"
        )
    return None
