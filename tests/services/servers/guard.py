"""Runs one server and ends it, with all that it started, when its starter is gone.

    python guard.py [--detached] COMMAND...

SIGTERM asks the server to end and kills what is left; SIGUSR1 kills at once, as a crash would.
Standard input is a pipe from the starter: its end is the starter's end. Detached, no
process holds it, and the server runs until it gets a signal.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress

import psutil

GRACE = 20.0
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    detached = sys.argv[1] == "--detached"
    command = sys.argv[2:] if detached else sys.argv[1:]
    # daemons that the server leaves behind (epmd is one) become our children, and end with us
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake, alarm = os.pipe()
    os.set_blocking(alarm, False)
    signal.set_wakeup_fd(alarm)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_end_with_guard)
    _end(server, graceful=_wait(server, wake, detached=detached))
    return server.returncode or 0


def _end_with_guard() -> None:
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _wait(server: subprocess.Popen[bytes], wake: int, *, detached: bool) -> bool:
    """Wait for the end of the server or its starter, or a signal; say whether to end it gently."""
    watched = [wake] if detached else [wake, sys.stdin.fileno()]
    while server.poll() is None:
        ready, _, _ = select.select(watched, [], [])
        if wake not in ready:
            return False  # the starter is gone, and the data is not needed
        signals = os.read(wake, 64)
        if signal.SIGUSR1 in signals:
            return False
        if signal.SIGTERM in signals or signal.SIGINT in signals:
            return True
    return False


def _end(server: subprocess.Popen[bytes], *, graceful: bool) -> None:
    if graceful:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(GRACE)
    # again and again: what is killed may have started another just before
    while left := psutil.Process().children(recursive=True):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=GRACE)
        server.poll()


if __name__ == "__main__":
    sys.exit(main())
