"""The process of a runner, as its supervisor sees it."""

from __future__ import annotations

from collections.abc import Callable

from forager.jobs.lease import Lease
from forager.processes.control import Assignment
from forager.processes.supervised import SupervisedProcess


class RunnerProcess(SupervisedProcess):
    """Runs one job under one lease."""

    def __init__(self, lease: Lease, assignment: Assignment, on_exit: Callable[[], None]) -> None:
        self.lease = lease
        mark = f"{lease.worker_id} {lease.job_id} {lease.number}"
        super().__init__("forager.jobs", assignment, name="runner", mark=mark, on_exit=on_exit)

    def how_it_ended(self) -> str:
        ended = super().how_it_ended()
        by_itself = self.kill_reason is None and (self.exit_code or 0) >= 0
        return f"{ended} before the job was finished" if by_itself else ended
