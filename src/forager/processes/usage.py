"""Resource usage of a process from /proc: CPU time, memory, and state."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
# the fields of /proc/PID/stat behind the name of the program
_STATE, _TIMES, _STARTED = 0, slice(11, 15), 19
# shared mappings are no data to RLIMIT_DATA, and files in memory are not the process's own
_OWN_MEMORY = ("RssAnon:", "RssShmem:")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far, and whether it runs."""

    # CPU time of the process, its threads, and children it has waited for
    cpu_seconds: float
    memory_mb: float
    is_asleep: bool
    is_stopped: bool


def read_usage(pid: int) -> Usage | None:
    """The usage of a process; None if it is gone."""
    stat = read_stat(pid)
    if stat is None:
        return None
    return Usage(
        sum(map(int, stat[_TIMES])) / _TICKS,
        _own_memory_mb(pid),
        is_asleep=stat[_STATE] == "S",
        is_stopped=stat[_STATE] in "Tt",
    )


def started_at(pid: int) -> str | None:
    """When a process started, in ticks since the machine did; None if it is gone."""
    stat = read_stat(pid)
    return None if stat is None else stat[_STARTED]


def read_stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; None if the process is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    # a zombie is dead: only its parent has not noticed
    return None if len(fields) <= _STARTED or fields[_STATE] == "Z" else fields


def _own_memory_mb(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    lines = status.splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(_OWN_MEMORY)) / 1024


# how much longer than its limit a request may take on a machine that is overloaded
WALL_CLOCK_FACTOR = 30
# a process that was stopped from outside is replaced after this long
STOPPED_LIMIT = 5.0


class RequestUsage:
    """Time and memory that a process has spent on its current request."""

    def __init__(self) -> None:
        self.memory_mb = 0.0
        self._request: int | None = None
        self._cpu = 0.0
        self._spent = self._elapsed = self._stopped = 0.0
        self._last_look = time.monotonic()

    @property
    def is_stopped_too_long(self) -> bool:
        return self._stopped > STOPPED_LIMIT

    def add(self, pid: int, request: int | None, interval: float) -> None:
        """Add what was used since the last look, which should have been `interval` ago.

        If it was longer ago, this process did not run either, and the time is not counted.
        """
        now = time.monotonic()
        passed, self._last_look = min(now - self._last_look, 2 * interval), now
        usage = read_usage(pid)
        if request != self._request or request is None:
            self._begin(request, usage)
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

    def _begin(self, request: int | None, usage: Usage | None) -> None:
        self._request = request
        self._cpu = 0.0 if usage is None else usage.cpu_seconds
        self._spent = self._elapsed = self._stopped = 0.0

    def _count(self, passed: float, usage: Usage | None) -> None:
        self._elapsed += passed
        if usage is None:
            return
        used, self._cpu = usage.cpu_seconds - self._cpu, usage.cpu_seconds
        self._spent += max(used, passed if usage.is_asleep else 0.0)
        self._stopped = self._stopped + passed if usage.is_stopped else 0.0
