"""The reaper: ends everything a harness started, if the harness cannot do so any more.

`python -m chaos.reaper FOLDER`: reads standard input until it ends, which it does when the
harness is gone in whatever way.
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
from chaos.family import end_members
from forager.db.embedded import server_status


def start_reaper(folder: Path) -> subprocess.Popen[bytes]:
    """Watch over this process from one that Ctrl-C does not reach."""
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
    end_members(folder)
    pid = server_status(folder / "server").pid if (folder / "server").exists() else None
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGQUIT)
    end_members(folder)  # whoever was being started meanwhile
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
