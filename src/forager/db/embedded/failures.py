"""Errors of the embedded server, with hints on what to do."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from forager.db.embedded.binaries import EXTERNAL_HINT
from forager.errors import EmbeddedServerError

# a server cannot start without room for one more WAL segment
WAL_SEGMENT_BYTES = 16 * 1024 * 1024

DISK_FULL_HINT = "free some space on that disk, or set FORAGER_HOME to a folder on another one"
READ_ONLY_HINT = "set FORAGER_HOME to a folder that can be written"
PERMISSION_HINT = "run Forager as the owner of that folder, or set FORAGER_HOME to one of your own"
MEMORY_HINT = (
    "give this machine or container more memory (in a container, a larger /dev/shm), "
    f"or {EXTERNAL_HINT}"
)
OTHER_SERVER_HINT = "another PostgreSQL uses this folder: stop it and try again"
CONFIGURATION_HINT = "correct or remove your own lines in postgresql.conf in the data folder"
DAMAGE_HINT = (
    "the data folder may be damaged: keep a copy of it, restore a backup if there is one, "
    "or move it away to start empty"
)

# the first pattern found in the server's own words decides
_HINTS = (
    (re.compile(r"pre-existing shared memory|lock file .* already exists"), OTHER_SERVER_HINT),
    (re.compile(r"configuration file .* contains errors"), CONFIGURATION_HINT),
    (re.compile(r"invalid permissions|wrong ownership"), PERMISSION_HINT),
    # not any mention of shared memory: initdb says that it selects an implementation of it
    (re.compile(r"could not [^\n]*shared memory|Cannot allocate memory"), MEMORY_HINT),
    (re.compile(r"No space left on device|Disk quota exceeded"), DISK_FULL_HINT),
    (re.compile(r"Read-only file system"), READ_ONLY_HINT),
    (re.compile(r"Permission denied|Operation not permitted"), PERMISSION_HINT),
)


class ServerStartingError(EmbeddedServerError):
    """The embedded PostgreSQL is alive, but has not finished its recovery yet."""


def explain_os_error(error: OSError, path: Path) -> EmbeddedServerError:
    """Explain an operating system error on the server's folder to the user."""
    reason = error.strerror or str(error)
    hint = {
        errno.ENOSPC: DISK_FULL_HINT,
        errno.EDQUOT: DISK_FULL_HINT,
        errno.EROFS: READ_ONLY_HINT,
        errno.EACCES: PERMISSION_HINT,
        errno.EPERM: PERMISSION_HINT,
        errno.ENOTDIR: "something that is not a folder is in the way: move it, "
        "or set FORAGER_HOME to another folder",
        errno.EEXIST: "a file is where a folder should be: move it, "
        "or set FORAGER_HOME to another folder",
    }.get(error.errno or 0, f"set FORAGER_HOME to another folder, or {EXTERNAL_HINT}")
    where = error.filename if isinstance(error.filename, str) else path
    return EmbeddedServerError(
        f"the embedded PostgreSQL cannot use its folder: {where}: {reason}", hint=hint
    )


def explain_exit(what: str, output: str, folder: Path, log: Path) -> EmbeddedServerError:
    """Explain the exit of a program of the server by its last log lines and the disk."""
    return EmbeddedServerError(
        f"{what}\n{output}" if output else what,
        hint=f"{_hint_for(output, folder)}\nthe server's log is {log}",
    )


def _hint_for(output: str, folder: Path) -> str:
    # the log is on the same disk: when that is full, its last words may be missing
    if disk_is_full(folder):
        return DISK_FULL_HINT
    return next((hint for pattern, hint in _HINTS if pattern.search(output)), DAMAGE_HINT)


def disk_is_full(folder: Path) -> bool:
    """Whether the disk has no room for the server to start."""
    try:
        disk = os.statvfs(folder)
    except FileNotFoundError:
        return folder != folder.parent and disk_is_full(folder.parent)
    except OSError:
        return False
    out_of_inodes = disk.f_files > 0 and disk.f_favail == 0
    return out_of_inodes or disk.f_bavail * disk.f_frsize < WAL_SEGMENT_BYTES
