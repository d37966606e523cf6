"""Names for processes of this machine that cannot be confused.

A pid may be reused, and another container has its own pids: the name also holds when the process
started, in which boot of the machine and in which pid namespace. A process elsewhere can only be
judged by its heartbeat.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar

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


Key = TypeVar("Key")
Item = TypeVar("Item")


class StaleHeartbeats(Generic[Key]):
    """Heartbeats that were stale at the last check: what is stale twice, unchanged, is dead.

    After an outage or a laptop's sleep every heartbeat is stale, and the living need a moment to
    send the next one.
    """

    def __init__(self) -> None:
        self._suspects: dict[Key, datetime | None] = {}

    def __len__(self) -> int:
        return len(self._suspects)

    def confirm(self, stale: Mapping[Key, datetime | None]) -> list[Key]:
        """Return those that the last check found with the same heartbeat; remember all."""
        before, self._suspects = self._suspects, dict(stale)
        return [key for key, seen in stale.items() if key in before and before[key] == seen]

    async def check_twice(
        self, check: Callable[[], Awaitable[list[Item]]], interval: float
    ) -> list[Item]:
        """Check, wait for heartbeats of the living, and check again: for a single request."""
        found = await check()
        if self._suspects:
            await asyncio.sleep(interval * 1.5)
            found += await check()
        return found


def _place() -> str:
    boot = _BOOT_ID.read_text(encoding="utf-8").strip()
    return f"{boot}/{_NAMESPACE.readlink()}"
