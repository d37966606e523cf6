"""What a process uses, as the kernel counts it: processor time, memory, and whether it runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
# the fields of /proc/PID/stat behind the name of the program
_STATE, _TIMES, _STARTED = 0, slice(11, 15), 19
# shared mappings are no data to RLIMIT_DATA, and files in memory are not the process's own
_OWN_MEMORY = ("RssAnon:", "RssShmem:")


@dataclass(frozen=True, slots=True)
class Usage:
    # of the process, its threads, and children it has waited for
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
