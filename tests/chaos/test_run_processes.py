"""Nothing outlives a run: not even if the harness is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from chaos.run_processes import processes_of
from forager.db.embedded import server_status

LIMIT = 100.0
HARNESS = """
import asyncio, sys
from pathlib import Path
from chaos.cluster import running_cluster
from chaos.run_processes import processes_of
from chaos.reaper import start_reaper
from forager.logs import configure_logs

async def main(folder: Path) -> None:
    configure_logs("critical")
    start_reaper(folder)
    async with running_cluster(folder, workers=1) as cluster:
        while len(processes_of(folder)) < 3:
            await asyncio.sleep(0.1)
        print(cluster.server.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.timeout(300)
def test_a_killed_harness_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert harness.stdout is not None
    with harness.stdout as said:
        postmaster = int(said.readline())
        left = processes_of(folder)
        assert len(left) >= 3
        assert server_status(folder / "server").pid == postmaster
        harness.kill()
        harness.wait(LIMIT)
    deadline = time.monotonic() + LIMIT
    while folder.exists() or psutil.pid_exists(postmaster) or processes_of(folder):
        assert time.monotonic() < deadline, "something is left"
        time.sleep(0.1)
    assert not any(process.is_running() for process in left)
