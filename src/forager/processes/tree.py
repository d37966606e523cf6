"""The tree below a process: everything it started, including what has left its process group."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from forager.processes.started import MARK_VARIABLE

_BELOW = "/"
BROWSER_MODULE = "forager.render.process"


def mark_below(mark: str) -> str:
    """The mark of a child: below that of this process, so that a search for ours finds it too."""
    return f"{os.environ.get(MARK_VARIABLE, '')}{_BELOW}{mark}"


def kill_descendants(pid: int) -> None:
    """Kill everything below a process that still runs, but not the process itself."""
    for process in _descendants(pid):
        with contextlib.suppress(psutil.Error):
            process.kill()


def kill_marked(mark: str, *, besides: int) -> None:
    """Kill every process with a mark or one below it, wherever it is now in the process tree."""
    if not mark:
        return
    for process in psutil.process_iter():
        if process.pid not in (besides, os.getpid()) and _is_marked(process, mark):
            with contextlib.suppress(psutil.Error):
                process.kill()


def exists_marked(prefix: str) -> bool:
    """Whether a process whose mark starts with this is alive on this machine."""
    return any((_mark_of(process) or "").startswith(prefix) for process in psutil.process_iter())


def resident_mb(pid: int) -> float:
    """Resident memory of a process and everything below it, browsers aside.

    A browser has a separate limit, and its processes share most of the memory they appear to use.
    """
    return _resident(pid) / 2**20


def _resident(pid: int) -> int:
    total = 0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        total = process.memory_info().rss
        for child in _children(process):
            if not _is_browser(child):
                total += _resident(child.pid)
    return total


def _children(process: psutil.Process) -> list[psutil.Process]:
    """The children of a process, as Linux lists them for each of its threads.

    psutil reads all processes of the machine for this, which takes 10 ms where there are hundreds.
    """
    lists = list(Path(f"/proc/{process.pid}/task").glob("*/children"))
    if not lists:  # another system, or a kernel without these files
        return process.children()
    children = []
    for listed in lists:
        with contextlib.suppress(OSError):  # a thread that has ended
            children += listed.read_text(encoding="ascii").split()
    return [found for pid in children if (found := _process(int(pid))) is not None]


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


def _is_browser(process: psutil.Process) -> bool:
    try:
        return BROWSER_MODULE in process.cmdline()
    except psutil.Error:
        return False


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _is_marked(process: psutil.Process, mark: str) -> bool:
    found = _mark_of(process)
    return found is not None and (found == mark or found.startswith(mark + _BELOW))


def _mark_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARK_VARIABLE)
    except (psutil.Error, OSError):  # another user's, or gone
        return None
