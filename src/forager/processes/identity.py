"""Names for processes of this machine that cannot be confused.

A pid may be reused, and another container has its own pids: the name also holds when the process
started, in which boot of the machine and in which pid namespace.
"""

from __future__ import annotations

import os
from pathlib import Path

from forager.processes.usage import started_at

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


def process_name(pid: int | None = None) -> str | None:
    """The name of a process, by default of this one; None if it is gone or cannot be named."""
    pid = os.getpid() if pid is None else pid
    started = started_at(pid)
    try:
        return None if started is None else f"{_place()} {pid} {started}"
    except OSError:
        return None


def has_died(name: str) -> bool:
    """Whether this certainly was a process of this machine, and is gone."""
    place, _, rest = name.partition(" ")
    pid = rest.partition(" ")[0]
    try:
        return place == _place() and pid.isdigit() and process_name(int(pid)) != name
    except OSError:
        return False


def _place() -> str:
    boot = _BOOT_ID.read_text(encoding="utf-8").strip()
    return f"{boot}/{_NAMESPACE.readlink()}"
