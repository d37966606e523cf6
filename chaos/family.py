"""Who belongs to a run: every process that it started, and nobody else."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

from chaos.control import FOLDER
from forager.processes.started import MARK_VARIABLE

PARENT = "CHAOS_PARENT"
_PR_SET_PDEATHSIG = 1
# how a session tells which lease its runner was started with; the audit compares
LEASE_SETTING = "chaos.lease"


def die_with_parent() -> None:
    """The processes of a harness that was killed end with it; theirs notice by themselves."""
    if sys.platform == "linux" and os.environ.get(PARENT) == str(os.getppid()):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def patches() -> dict[str, Callable[[ModuleType], None]]:
    """Let sessions of runners say which lease they were started with."""
    mark = os.environ.get(MARK_VARIABLE, "").split()

    def change(module: ModuleType) -> None:
        arguments = module.Database.connect_arguments

        def with_lease(self: Any) -> dict[str, Any]:
            given: dict[str, Any] = arguments(self)
            given["options"] += f" -c {LEASE_SETTING}={mark[2]}"
            return given

        module.Database.connect_arguments = with_lease

    return {"forager.db.database": change} if len(mark) == 3 else {}


def members(folder: Path) -> list[psutil.Process]:
    """All processes that were started with this control folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(FOLDER) == str(folder):
                found.append(process)
    return found


def end_members(folder: Path) -> int:
    """Kill what is left of a run; how many there were."""
    left = members(folder)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    return len(left)
