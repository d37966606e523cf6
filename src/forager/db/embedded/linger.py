"""A server that lingers: it runs on for a while after its last user, because starting costs time.

A shell sleeps until then, so that waiting costs no memory, and runs this module, which stops the
server unless it is used again by then. The process inherits the lock on `linger.lock`: there is one
at most, and a new deadline is written to the file that it reads.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from forager.db.embedded.folder import ServerFolder
from forager.db.embedded.identity import environment
from forager.db.embedded.locks import EXCLUSIVE, hold_door, open_lock, try_lock
from forager.db.embedded.server import stop_server

_DOOR_LIMIT = 120.0
_SLEEP = 'sleep "$1"; shift; exec "$@"'


def linger(folder: ServerFolder, seconds: float) -> None:
    """Let the server run for some seconds more; the caller holds the door."""
    lock = open_lock(folder, folder.linger)
    try:
        os.truncate(lock, 0)
        os.pwrite(lock, str(time.time() + seconds).encode(), 0)
        if not try_lock(lock, EXCLUSIVE):
            return  # a process waits already, and reads the new deadline
        subprocess.run(
            # in the background of a shell that ends at once: a child of nobody
            ["/bin/sh", "-c", '"$@" &', "sh", *_command(folder.home, lock, seconds)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
            cwd="/",
            start_new_session=True,
            pass_fds=(lock,),
            check=True,
        )
    finally:
        os.close(lock)


def _command(home: Path, lock: int, seconds: float) -> list[str]:
    stop = [sys.executable, "-c", f"from {__name__} import main; main()", str(home), str(lock)]
    return ["/bin/sh", "-c", _SLEEP, "sh", f"{max(0.1, seconds):.1f}", *stop]


def stop_if_unused(folder: ServerFolder) -> bool:
    """Stop the server if no process uses it; the caller holds the door."""
    users = open_lock(folder, folder.users)
    try:
        if not try_lock(users, EXCLUSIVE):
            return False
        stop_server(folder)
        return True
    finally:
        os.close(users)


def main() -> None:
    home, lock = sys.argv[1], int(sys.argv[2])
    folder = ServerFolder.below(Path(home))
    if not folder.root.is_dir():
        return
    with hold_door(folder, _DOOR_LIMIT):
        left = _deadline(lock) - time.time()
        if left <= 0:
            stop_if_unused(folder)  # the last one out of a used server lets it linger again
            os.close(lock)  # behind the door, so that nobody relies on this process by now
            return
    os.set_inheritable(lock, True)
    command = _command(folder.home, lock, left)
    os.execv(command[0], command)  # noqa: S606 - no argument comes from outside


def _deadline(lock: int) -> float:
    try:
        return float(os.pread(lock, 64, 0))
    except ValueError:
        return 0.0
