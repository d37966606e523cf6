"""What one question has cost the process that works on it.

Only what a question causes counts: processor time, and time asleep, since everything it needs is
in memory. A process that waits for a processor, for a disk or for SIGCONT is not at fault: that
has a far larger limit of its own.
"""

from __future__ import annotations

import time

from forager.processes.usage import Usage, read_usage

# how much longer than its limit a question may take on a machine that is overloaded
WALL_CLOCK_FACTOR = 30
# a process that was stopped from outside is replaced after this long
STOPPED_LIMIT = 5.0


class Effort:
    """Of one process; it starts from zero with every question."""

    def __init__(self) -> None:
        self.memory_mb = 0.0
        self._question: int | None = None
        self._cpu = 0.0
        self._spent = self._elapsed = self._stopped = 0.0
        self._last_look = time.monotonic()

    @property
    def is_stopped_too_long(self) -> bool:
        return self._stopped > STOPPED_LIMIT

    def add(self, pid: int, question: int | None, interval: float) -> None:
        """Add what was used since the last look, which should have been `interval` ago.

        If it was longer ago, this process did not run either, and the time counts for nobody.
        """
        now = time.monotonic()
        passed, self._last_look = min(now - self._last_look, 2 * interval), now
        usage = read_usage(pid)
        if question != self._question or question is None:
            self._begin(question, usage)
        else:
            self._count(passed, usage)
        self.memory_mb = 0.0 if usage is None else usage.memory_mb

    def broken_limit(self, seconds: float) -> str | None:
        if self._spent > seconds:
            return f"it takes longer than {seconds:g} s"
        longest = seconds * WALL_CLOCK_FACTOR
        if self._elapsed > longest:
            return f"it takes longer than {longest:g} s on this machine"
        return None

    def _begin(self, question: int | None, usage: Usage | None) -> None:
        self._question = question
        self._cpu = 0.0 if usage is None else usage.cpu_seconds
        self._spent = self._elapsed = self._stopped = 0.0

    def _count(self, passed: float, usage: Usage | None) -> None:
        self._elapsed += passed
        if usage is None:
            return
        used, self._cpu = usage.cpu_seconds - self._cpu, usage.cpu_seconds
        self._spent += max(used, passed if usage.is_asleep else 0.0)
        self._stopped = self._stopped + passed if usage.is_stopped else 0.0
