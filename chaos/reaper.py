"""The reaper: stops all processes of a run if the harness was killed.

`python -m chaos.reaper FOLDER`: reads standard input until it is closed, which happens when the
harness ends for any reason.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from chaos.control import ROOT
from chaos.run_processes import kill_processes_of
from forager.db.embedded import server_status


def start_reaper(folder: Path) -> subprocess.Popen[bytes]:
    """Start a reaper for this process that Ctrl-C does not reach."""
    return subprocess.Popen(
        [sys.executable, "-m", "chaos.reaper", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd=ROOT,
        start_new_session=True,
    )


def main() -> None:
    folder = Path(sys.argv[1])
    sys.stdin.buffer.read()
    kill_processes_of(folder)
    pid = server_status(folder / "server").pid if (folder / "server").exists() else None
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGQUIT)
    kill_processes_of(folder)  # processes that were being started meanwhile
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
