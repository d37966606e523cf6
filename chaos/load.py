"""Processes that compete with the cluster for the cores of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos import control, run_processes

# it ends with the harness; the reaper finds it by the folder in its environment
BUSY = "from chaos.run_processes import die_with_parent; die_with_parent()\nwhile True: pass"


@contextmanager
def busy_cores(folder: Path, processes: int) -> Iterator[None]:
    """Keep this many processes busy during the block."""
    environment = {
        **os.environ,
        control.FOLDER: str(folder),
        run_processes.PARENT: str(os.getpid()),
    }
    busy = [
        subprocess.Popen([sys.executable, "-c", BUSY], env=environment, cwd=control.ROOT)
        for _ in range(processes)
    ]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()
