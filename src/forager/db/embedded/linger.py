"""A server that lingers: it runs on for a while after its last user, because starting costs time.

A shell waits until then, which costs next to no memory, and runs this module, which stops the
server unless it is used again by then. The process inherits the lock on `linger.lock`, so there is
one at most: another command only writes a new deadline into that file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from forager.db.embedded.cluster import DATABASE, ROLE
from forager.db.embedded.folder import ServerFolder
from forager.db.embedded.identity import ServerIdentity
from forager.db.embedded.locks import EXCLUSIVE, hold_start_lock, open_lock, try_lock
from forager.db.embedded.postmaster import find_postmaster
from forager.db.embedded.server import stop_server
from forager.db.embedded.sockets import database_url

_LOCK_LIMIT = 120.0
# two short processes every five seconds; the deadline may change meanwhile, or its file be removed
_WAIT = """
while end=0; read -r end < "$1"; left=$((end - $(date +%s))); [ "$left" -gt 0 ]; do
    sleep $((left < 5 ? left : 5))
done
shift
exec "$@"
"""


def linger(folder: ServerFolder, seconds: float) -> None:
    """Keep the server running for some seconds; the caller holds the start lock."""
    lock = open_lock(folder, folder.linger)
    try:
        _write_deadline(lock, time.time() + seconds)
        if not try_lock(lock, EXCLUSIVE):
            return  # a process waits already, and reads the new deadline
        ServerIdentity().run(
            # in the background of a shell that ends at once: an orphan
            ["/bin/sh", "-c", '"$@" &', "sh", *_command(folder, lock)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            pass_fds=(lock,),
            check=True,
        )
    finally:
        os.close(lock)


def prolong(home: Path, seconds: float) -> str | None:
    """Let a running server linger for at least these seconds from now; its URL, None if it stopped.

    A caller that only helps, such as a process in the background, is not its user: that would keep
    a person from stopping it.
    """
    folder = ServerFolder(home)
    postmaster = find_postmaster(folder.data)
    if postmaster is None or not postmaster.ready or postmaster.socket_folder is None:
        return None
    lock = open_lock(folder, folder.linger)
    try:
        _write_deadline(lock, max(_deadline(lock), time.time() + seconds))
    finally:
        os.close(lock)
    return database_url(postmaster.socket_folder, ROLE, DATABASE)


def _command(folder: ServerFolder, lock: int) -> list[str]:
    stop = [sys.executable, "-c", f"from {__name__} import main; main()"]
    return ["/bin/sh", "-c", _WAIT, "sh", *map(str, [folder.linger, *stop, folder.home, lock])]


def _write_deadline(lock: int, at: float) -> None:
    os.pwrite(lock, b"%-20d" % at, 0)


def stop_if_unused(folder: ServerFolder) -> bool:
    """Stop the server if no process uses it; the caller holds the start lock."""
    users = open_lock(folder, folder.users)
    try:
        if not try_lock(users, EXCLUSIVE):
            return False
        stop_server(folder)
        with suppress(FileNotFoundError):
            folder.linger.write_text("0")  # ends a process that waits
        return True
    finally:
        os.close(users)


def main() -> None:
    home, lock = sys.argv[1], int(sys.argv[2])
    folder = ServerFolder(Path(home))
    if not folder.root.is_dir():
        return
    with hold_start_lock(folder, _LOCK_LIMIT):
        deadline = _deadline(lock)
        if deadline <= time.time():
            # the last one out of a used server lets it linger again; a server that was stopped
            # ended this wait, and what runs now is another one
            if deadline:
                stop_if_unused(folder)
            os.close(lock)  # under the start lock, so that no other process relies on this one
            return
    os.set_inheritable(lock, True)
    command = _command(folder, lock)
    os.execv(command[0], command)  # noqa: S606 - no argument comes from outside


def _deadline(lock: int) -> float:
    try:
        return float(os.pread(lock, 64, 0))
    except ValueError:
        return 0.0
