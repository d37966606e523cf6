"""File locks that the kernel releases when their process dies, however it dies.

`flock` belongs to an open file, not to a process: a child that inherits the descriptor holds the
lock too. Descriptors are therefore closed on exec, except the one the server is given on purpose.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import psutil

from forager.db.embedded.binaries import EXTERNAL_HINT
from forager.db.embedded.failures import explain_os_error
from forager.db.embedded.folder import ServerFolder
from forager.db.embedded.server_log import moments
from forager.errors import EmbeddedServerError

SHARED = fcntl.LOCK_SH
EXCLUSIVE = fcntl.LOCK_EX

_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


def open_lock(folder: ServerFolder, path: Path) -> int:
    """Open a lock file, to be locked with `try_lock` and released by closing it."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise explain_os_error(error, path) from error
    try:
        folder.hand_over(fd)
    except OSError as error:
        os.close(fd)
        raise explain_os_error(error, path) from error
    return fd


def try_lock(fd: int, kind: int) -> bool:
    """Take or convert a lock at once. A failed conversion loses the lock held before."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        raise EmbeddedServerError(
            "the file system of FORAGER_HOME has no file locks",
            hint=f"set FORAGER_HOME to a folder on a local disk, or {EXTERNAL_HINT}",
        ) from error
    return True


def unlock(fd: int) -> None:
    """Release and close: also for copies of the descriptor that a fork may have made."""
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


@contextlib.contextmanager
def hold_start_lock(folder: ServerFolder, limit: float) -> Iterator[None]:
    """Be the only process that starts, stops, joins or leaves the server."""
    fd = open_lock(folder, folder.start_lock)
    try:
        _wait_for_lock(fd, folder, limit)
        _sign(fd)
        yield
    finally:
        unlock(fd)


def _wait_for_lock(fd: int, folder: ServerFolder, limit: float) -> None:
    for _ in moments(limit, "waiting for another process to start or stop PostgreSQL", folder):
        if try_lock(fd, EXCLUSIVE):
            return
    raise _locked_out(fd, folder, limit)


def _locked_out(fd: int, folder: ServerFolder, limit: float) -> EmbeddedServerError:
    return EmbeddedServerError(
        f"the embedded PostgreSQL's folder {folder.root} was locked for {limit:g} s "
        f"by {_holder(fd)}",
        hint="wait for that process, or end it if it hangs, and try again; the lock goes with it",
    )


def _sign(fd: int) -> None:
    # only for error messages of others, so a full disk does not matter
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)


def _holder(fd: int) -> str:
    signature = os.pread(fd, 32, 0).strip()
    if not signature.isdigit():
        return "another process"
    pid = int(signature)
    try:
        command = " ".join(psutil.Process(pid).cmdline())[:200]
    except psutil.Error:
        return "another process (perhaps in another container)"
    return f"process {pid} ({command})"
