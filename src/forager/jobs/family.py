"""A runner's family: everything it started, also what has left its process group."""

from __future__ import annotations

import contextlib
import os
from uuid import UUID

import psutil

from forager.jobs.lease import Lease

# Every process that a runner starts inherits this variable: by it even a child that made a session
# of its own and lost its parent is found. (The prefix keeps it apart from the settings.)
RUN_MARK = "_FORAGER_RUN"


def end_descendants(pid: int, mark: str) -> None:
    """Kill all that a runner started, but not the runner itself."""
    for process in _descendants(pid) + _marked(pid, mark):
        with contextlib.suppress(psutil.Error):
            process.kill()


def run_mark(lease: Lease) -> str:
    """What the variable says: whose runner, of which job, under which lease."""
    return f"{lease.worker_id} {lease.job_id} {lease.number}"


def has_family(worker_id: UUID) -> bool:
    """Whether a runner of this worker, or anything one started, is still alive here."""
    return any(
        (_mark_of(process) or "").startswith(f"{worker_id} ") for process in psutil.process_iter()
    )


def memory_mb(pid: int) -> float:
    """Resident memory of a process and everything it started."""
    total = 0
    with contextlib.suppress(psutil.Error):
        for process in [psutil.Process(pid), *_descendants(pid)]:
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
    return total / 2**20


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _marked(pid: int, mark: str) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter()
        if mark and process.pid not in (pid, os.getpid()) and _mark_of(process) == mark
    ]


def _mark_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(RUN_MARK)
    except (psutil.Error, OSError):  # another user's, or gone
        return None
