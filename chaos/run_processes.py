"""The processes of a run: all that it started, directly or indirectly."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

import psutil

from chaos.control import FOLDER

PARENT = "CHAOS_PARENT"
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """End this process when the harness is killed; its children notice that by themselves."""
    if sys.platform == "linux" and os.environ.get(PARENT) == str(os.getppid()):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def processes_of(folder: Path) -> list[psutil.Process]:
    """Find all processes that were started with this control folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(FOLDER) == str(folder):
                found.append(process)
    return found


def kill_processes_of(folder: Path) -> int:
    """Kill the remaining processes of a run; return their number."""
    left = processes_of(folder)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    return len(left)
