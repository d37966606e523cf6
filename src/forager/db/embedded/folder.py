"""The folder of the embedded server: its paths and permissions."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from forager.db.embedded.trouble import explain_os_error

PRIVATE = 0o700


@dataclass(frozen=True, slots=True)
class ServerFolder:
    """Paths below `home/postgres`. Resolved, so that every process means the same files."""

    home: Path

    @classmethod
    def below(cls, home: Path) -> ServerFolder:
        return cls(home.expanduser().resolve())

    @property
    def root(self) -> Path:
        return self.home / "postgres"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def unfinished_data(self) -> Path:
        """Where initdb works, until the result is renamed to `data`."""
        return self.root / "data.new"

    @property
    def sockets(self) -> Path:
        return self.root / "run"

    @property
    def log(self) -> Path:
        return self.root / "postgres.log"

    @property
    def previous_log(self) -> Path:
        return self.root / "postgres.log.1"

    @property
    def door(self) -> Path:
        """Locked for as long as someone starts or stops the server."""
        return self.root / "door.lock"

    @property
    def users(self) -> Path:
        """Locked, shared, by every process that uses the server."""
        return self.root / "users.lock"

    @property
    def alive(self) -> Path:
        """Locked by the server itself: free only once its last process is gone."""
        return self.root / "server.lock"

    @property
    def linger(self) -> Path:
        """Locked by the process that stops a lingering server; holds the time when it does."""
        return self.root / "linger.lock"

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
        """Root working in a folder of someone else leaves the files to that one."""
        if os.geteuid() == 0:
            owner = self.root.stat()
            os.chown(path, owner.st_uid, owner.st_gid)
