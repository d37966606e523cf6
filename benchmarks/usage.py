"""What a command costs: time, processor time and peak memory of everything it starts."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE = 0.1
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    output: str
    seconds: float
    cpu_seconds: float
    peak_mb: float


def run_measured(
    command: Sequence[str], *, also: int | None = None, env: dict[str, str] | None = None
) -> Usage:
    """Run a command; `also` is a process whose work for it counts too (the database server)."""
    before = _tree_cpu(also)
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    peak = _Peak([process.pid, *([also] if also else [])])
    output = process.communicate()[0]
    seconds = time.perf_counter() - started
    memory = peak.stop()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with code {process.returncode}\n{output}")
    cpu = _children_cpu() + _tree_cpu(also) - before
    return Usage(output, seconds, cpu, memory)


_counted = 0.0


def _children_cpu() -> float:
    """Processor time of the child that ended last, and of all its own children."""
    global _counted
    times = os.times()
    total = times.children_user + times.children_system
    own, _counted = total - _counted, total
    return own


def _tree_cpu(pid: int | None) -> float:
    """Processor time of a server, its ended children, and its living ones."""
    if pid is None:
        return 0.0
    pids = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    return sum(_cpu_with_ended_children(each) for each in pids)


def _cpu_with_ended_children(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


class _Peak:
    """Samples the memory of process trees; shared pages are shared out (PSS)."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        self._done.set()
        self._thread.join()
        return self._peak / 2**20

    def _sample(self) -> None:
        while not self._done.wait(SAMPLE):
            self._peak = max(self._peak, sum(_memory(pid) for pid in self._pids))


def _memory(pid: int) -> int:
    total = 0
    with contextlib.suppress(psutil.Error):
        leader = psutil.Process(pid)
        for process in (leader, *leader.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += process.memory_full_info().pss
    return total
