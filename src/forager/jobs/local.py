"""Processes of this machine, named so that nobody can be taken for somebody else.

A pid alone may be used again, and another container has pids of its own: the name also holds when
the process started, in which boot of the machine and in which pid namespace.
"""

from __future__ import annotations

import os
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


def process_name(pid: int | None = None) -> str | None:
    """The name of a process, by default of this one; None if it is gone, or nobody can tell."""
    pid = os.getpid() if pid is None else pid
    try:
        started = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        # a zombie is dead: only its parent has not noticed
        return None if started[0] == "Z" else f"{_place()} {pid} {started[19]}"
    except (OSError, IndexError):
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
