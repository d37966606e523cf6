"""What `forager doctor` says about the embedded server, without starting or changing anything."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from forager.db.embedded.binaries import MAJOR_VERSION
from forager.db.embedded.cluster import data_version
from forager.db.embedded.folder import ServerFolder
from forager.db.embedded.postmaster import find_postmaster
from forager.db.embedded.trouble import disk_is_full

_LOCKS = Path("/proc/locks")


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The embedded server as it is now."""

    folder: Path
    server_version: int
    data_version: int | None  # None: no data yet
    pid: int | None
    state: str  # "stopped", or the server's own word: starting, ready, stopping
    socket_folder: Path | None
    log: Path
    log_bytes: int
    users: tuple[int, ...] | None  # pids; None where the system does not tell
    disk_full: bool


def server_status(home: Path) -> ServerStatus:
    """Look at the embedded server of this home."""
    folder = ServerFolder.below(home)
    postmaster = find_postmaster(folder.data)
    return ServerStatus(
        folder=folder.root,
        server_version=MAJOR_VERSION,
        data_version=data_version(folder),
        pid=postmaster.pid if postmaster else None,
        state=postmaster.status if postmaster else "stopped",
        socket_folder=postmaster.socket_folder if postmaster else None,
        log=folder.log,
        log_bytes=_size(folder.log),
        users=_lock_holders(folder.users),
        disk_full=disk_is_full(folder.root),
    )


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


def _lock_holders(path: Path) -> tuple[int, ...] | None:
    """From lines such as `1: FLOCK  ADVISORY  READ 4711 fe:00:1234 0 EOF`."""
    try:
        inode = path.stat().st_ino
        lines = [line.split() for line in _LOCKS.read_text(encoding="ascii").splitlines()]
    except FileNotFoundError:
        return () if _LOCKS.exists() else None
    except OSError:
        return None
    return tuple(
        sorted(
            int(line[4])
            for line in lines
            # blocked waiters have a "->" in second place
            if len(line) > 5 and line[1] == "FLOCK" and line[5].endswith(f":{inode}")
        )
    )
