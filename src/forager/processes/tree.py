"""The tree below a process: everything it started, including what has left its process group."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from forager.processes.started import MARK_VARIABLE

_BELOW = "/"
BROWSER_MODULE = "forager.render.process"
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
# not every kernel is built with these files
_LISTS_CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()


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
    """In bytes, from /proc: psutil takes 20 times as long, and this is read twice a second."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        children = _children(pid)
    except (OSError, IndexError):  # it has ended
        return 0
    return pages * _PAGE_SIZE + sum(_resident(each) for each in children if not _is_browser(each))


def _children(pid: int) -> list[int]:
    """The children of a process, as Linux lists them for each of its threads."""
    if not _LISTS_CHILDREN:
        with contextlib.suppress(psutil.Error):
            return [child.pid for child in psutil.Process(pid).children()]
        return []
    children: list[str] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has ended
            children += (thread / "children").read_text(encoding="ascii").split()
    return [int(child) for child in children]


def _is_browser(pid: int) -> bool:
    try:
        return BROWSER_MODULE.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
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
