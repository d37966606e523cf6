"""The folder of the embedded server: its paths and permissions."""

from __future__ import annotations

import os
from pathlib import Path

from forager.db.embedded.failures import explain_os_error

PRIVATE = 0o700


class ServerFolder:
    """Paths below `home/postgres`. Resolved, so that every process means the same files."""

    def __init__(self, home: Path) -> None:
        self.home = home.expanduser().resolve()
        self.root = self.home / "postgres"
        self.data = self.root / "data"
        # where initdb works, until the result is renamed to `data`
        self.unfinished_data = self.root / "data.new"
        self.sockets = self.root / "run"
        self.log = self.root / "postgres.log"
        self.previous_log = self.root / "postgres.log.1"
        # locked while a process starts, stops, joins or leaves the server
        self.start_lock = self.root / "door.lock"
        # locked, shared, by every process that uses the server
        self.users = self.root / "users.lock"
        # locked by the server itself: free only once its last process is gone
        self.alive = self.root / "server.lock"
        # locked by the process that stops a lingering server; holds the time when it does
        self.linger = self.root / "linger.lock"

    def prepare(self, home_mode: int = PRIVATE) -> None:
        """Create the folder, accessible only to its owner."""
        try:
            self.home.mkdir(mode=home_mode, parents=True, exist_ok=True)
            self.root.mkdir(mode=PRIVATE, exist_ok=True)
            if self.root.stat().st_mode & 0o077:
                self.root.chmod(PRIVATE)
        except OSError as error:
            raise explain_os_error(error, self.root) from error

    def hand_over(self, path: Path | int) -> None:
        """Give a file that root created to the owner of the folder."""
        if os.geteuid() == 0:
            owner = self.root.stat()
            os.chown(path, owner.st_uid, owner.st_gid)
