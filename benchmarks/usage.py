"""Resource usage of a command and its child processes: time, processor time and peak memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

SAMPLE = 0.1
# how often the processor time of each process is read; usage after the last sample is lost
LOOK = 0.01
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    output: str
    seconds: float
    cpu_seconds: float
    peak_mb: float
    # processor time by part of the command, if parts were requested
    parts: Mapping[str, float] = field(default_factory=dict)
    # peak of each part in MB, not necessarily at the same time
    memory: Mapping[str, float] = field(default_factory=dict)


def run_measured(
    command: Sequence[str],
    *,
    also: int | None = None,
    env: dict[str, str] | None = None,
    parts: Mapping[str, str] | None = None,
) -> Usage:
    """Run a command; `also` is a process whose work for it counts too (the database server).

    `parts` names processes below the command by a word of their command lines.
    """
    before = tree_cpu(also)
    _children_cpu()  # of others that have ended since
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    peak = _Peak(process.pid, also, parts or {})
    work = _Parts(process.pid, parts or {})
    output = process.communicate()[0]
    seconds = time.perf_counter() - started
    peak.stop()
    by_part = work.stop()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with code {process.returncode}\n{output}")
    ours, server = _children_cpu(), tree_cpu(also) - before
    if by_part:
        by_part["command"] = ours - sum(by_part.values())
        by_part["PostgreSQL"] = server
    return Usage(output, seconds, ours + server, peak.megabytes, by_part, peak.by_part())


_counted = 0.0


def _children_cpu() -> float:
    """Processor time of the children that ended since the last call, and of their children."""
    global _counted
    times = os.times()
    total = times.children_user + times.children_system
    own, _counted = total - _counted, total
    return own


def tree_cpu(pid: int | None) -> float:
    """Processor time of a server, its ended children, and its living ones."""
    if pid is None:
        return 0.0
    pids = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    return sum(_cpu_with_ended_children(each) for each in pids)


def _cpu_with_ended_children(pid: int) -> float:
    try:
        return sum(map(int, _stat(pid)[11:15])) / TICKS
    except OSError:
        return 0.0


class _Peak:
    """Samples the memory (PSS) of a command and of a server."""

    def __init__(self, pid: int, also: int | None, names: Mapping[str, str]) -> None:
        self._pid = pid
        self._also = also
        self._names = names
        self._peak = 0
        self._parts: Counter[str] = Counter()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    @property
    def megabytes(self) -> float:
        return self._peak / 2**20

    def by_part(self) -> dict[str, float]:
        return {name: size / 2**20 for name, size in self._parts.items()}

    def _sample(self) -> None:
        while not self._done.wait(SAMPLE):
            now = _memory_by_part(self._pid, self._names, self._also)
            self._peak = max(self._peak, now.total())
            self._parts |= now  # the larger of each


def memory_by_part(pid: int, names: Mapping[str, str], *, also: int) -> dict[str, float]:
    """Memory in MB of a process and everything below it, and of a server, by part."""
    return {part: size / 2**20 for part, size in _memory_by_part(pid, names, also).items()}


def _memory_by_part(pid: int, names: Mapping[str, str], also: int | None) -> Counter[str]:
    now: Counter[str] = Counter()
    for each in (pid, *_below(pid)):
        now[_named(each, names) or "command"] += _memory(each)
    if also is not None:
        now["PostgreSQL"] = sum(map(_memory, (also, *_below(also))))
    return now


def _memory(pid: int) -> int:
    try:
        pss: int = psutil.Process(pid).memory_full_info().pss
    except psutil.Error:
        return 0
    return pss


class _Parts:
    """Reads the processor time of all descendants of a process, by part."""

    def __init__(self, pid: int, names: Mapping[str, str]) -> None:
        self._pid = pid
        self._names = names
        self._part_of: dict[int, str] = {}
        self._used: dict[int, float] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        if names:
            self._thread.start()

    def stop(self) -> dict[str, float]:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()
        total = dict.fromkeys(self._names.values(), 0.0)
        for pid, seconds in self._used.items():
            total[self._part_of[pid]] += seconds
        return total

    def _look(self) -> None:
        while not self._done.wait(LOOK):
            for pid in _below(self._pid):
                with contextlib.suppress(OSError):
                    # read each time: until exec, a child has the name of its parent
                    if name := _named(pid, self._names):
                        self._part_of[pid] = name
                        self._used[pid] = _own_cpu(pid)


def _named(pid: int, names: Mapping[str, str]) -> str | None:
    """The part of a process by its command line; None also if it has ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    return next((name for word, name in names.items() if word in words), None)


def _below(pid: int) -> Iterator[int]:
    """All living descendants of a process."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                yield child
                yield from _below(child)


def _own_cpu(pid: int) -> float:
    return sum(map(int, _stat(pid)[11:13])) / TICKS


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may contain anything."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
