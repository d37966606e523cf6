"""The lease monitor ends a process whose lease has run out, whatever its control descriptor is."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# a process with many open files gets its control socket at a high number
PROGRAM = """
import fcntl, os, resource, socket, sys, time
from forager.clock import local_time
from forager.processes.lease_monitor import LeaseMonitor

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
ours, theirs = socket.socketpair()
descriptor = fcntl.fcntl(ours.fileno(), fcntl.F_DUPFD, int(sys.argv[1]))
monitor = LeaseMonitor(socket.socket(fileno=descriptor), lease_limit=0.5)
monitor.renewed(local_time())
monitor.start()
time.sleep(60)
"""


@pytest.mark.parametrize("descriptor", [10, 1500])
def test_a_process_ends_when_its_lease_has_run_out(descriptor: int) -> None:
    command = [sys.executable, "-c", PROGRAM, str(descriptor)]
    ended = subprocess.run(command, start_new_session=True, timeout=100, check=False)
    assert ended.returncode == -signal.SIGKILL
