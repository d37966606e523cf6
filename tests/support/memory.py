"""A folder in memory for the server of a test run.

Ext4 searches long for the inodes of new files while it has many that were just deleted: on a disk,
PostgreSQL took 40 % more processor time, because databases come and go.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil

MEMORY = Path("/dev/shm")
PREFIX = f"forager-tests-{os.getuid()}-"
# a run needs less than one
ROOM = 4 * 1024**3


def memory_folder(run: int) -> Path | None:
    """The folder of the run that the process `run` started; None without enough memory."""
    folder = _folder(run)
    if folder.exists():
        return folder
    if not os.access(MEMORY, os.W_OK) or _free_memory() < ROOM:
        return None
    for left in MEMORY.glob(f"{PREFIX}*"):  # of runs that were killed
        if not psutil.pid_exists(int(left.name.removeprefix(PREFIX))):
            shutil.rmtree(left, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def remove_memory_folder(run: int) -> None:
    shutil.rmtree(_folder(run), ignore_errors=True)


def _folder(run: int) -> Path:
    return MEMORY / f"{PREFIX}{run}"


def _free_memory() -> int:
    return min(shutil.disk_usage(MEMORY).free, psutil.virtual_memory().available)
