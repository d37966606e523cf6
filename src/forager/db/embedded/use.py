"""One process's use of the embedded server: the last user stops it, or lets it linger.

A process that uses the server holds a shared lock on `users.lock`; the kernel releases it when the
process dies. Joining, starting, leaving and stopping happen under the start lock, so no process
joins while the last one leaves. Waiting for recovery happens without it: that can take minutes,
and the shared lock is enough to keep the server from being stopped meanwhile.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psycopg
from psycopg import errors, sql

from forager.db.embedded.binaries import MAJOR_VERSION
from forager.db.embedded.cluster import DATABASE, ROLE, data_version
from forager.db.embedded.failures import ServerStartingError, disk_is_full
from forager.db.embedded.folder import PRIVATE, ServerFolder
from forager.db.embedded.identity import home_mode
from forager.db.embedded.linger import linger, stop_if_unused
from forager.db.embedded.locks import (
    EXCLUSIVE,
    SHARED,
    hold_start_lock,
    open_lock,
    try_lock,
    unlock,
)
from forager.db.embedded.postmaster import Postmaster, find_postmaster
from forager.db.embedded.server import (
    START_LIMIT,
    socket_exists,
    start_server,
    stop_server,
    wait_until_ready,
)
from forager.db.embedded.server_log import log_size, moments
from forager.db.embedded.sockets import database_url
from forager.errors import EmbeddedServerError, NotAllowed, error_text
from forager.logs import get_logger

# initdb and a slow shutdown both happen under the start lock
LOCK_LIMIT = 120.0

log = get_logger("db.embedded")


def join_server(home: Path, *, linger: float = 0.0, lock_limit: float = LOCK_LIMIT) -> ServerUse:
    """Use the embedded server of this home: start it, or join the running one.

    After its last user, it keeps running for the number of seconds that this user requested.

    Child processes do not take part: give them the URL while you stay, or let them join themselves.
    """
    folder = ServerFolder(home)
    folder.prepare(PRIVATE if folder.home.exists() else home_mode())
    use = ServerUse(folder, lock_limit, linger)
    try:
        use.ensure_running()
    except ServerStartingError:
        use.abandon()  # stopping it now would throw its recovery away
        raise
    except BaseException:
        use.leave()
        raise
    return use


class ServerUse:
    """A user of the embedded server, until `leave` or the end of the process."""

    def __init__(
        self, folder: ServerFolder, lock_limit: float = LOCK_LIMIT, linger: float = 0.0
    ) -> None:
        self.home = folder.home
        self.url = ""
        self.started = False
        self._folder = folder
        self._lock_limit = lock_limit
        self._linger = linger
        self._users_lock: int | None = None
        self._left = False
        self._thread_lock = threading.RLock()
        _uses.add(self)
        atexit.register(self.leave)

    @property
    def pid(self) -> int | None:
        """The server's main process, if it lives."""
        postmaster = find_postmaster(self._folder.data)
        return postmaster.pid if postmaster else None

    def ensure_running(self) -> str:
        """Bring the server back if it died; its URL. Cheap when it runs; blocks while it starts."""
        with self._thread_lock:
            if self._left:
                raise EmbeddedServerError("the embedded PostgreSQL was left by this process")
            if self.url and self._runs():
                return self.url
            log_start = log_size(self._folder)
            with hold_start_lock(self._folder, self._lock_limit):
                self._join()
                self.started = start_server(self._folder) or self.started
            postmaster = wait_until_ready(self._folder, log_start)
            assert postmaster.socket_folder is not None  # part of being ready
            self.url = ensure_database(self._folder, postmaster.socket_folder)
            return self.url

    def leave(self) -> None:
        """Leave the server; the last user stops it. Never raises, may be repeated."""
        with self._thread_lock:
            if self._left:
                return
            try:
                if self._users_lock is not None:
                    with hold_start_lock(self._folder, self._lock_limit):
                        # the conversion fails while another process holds a shared lock
                        if try_lock(self._users_lock, EXCLUSIVE):
                            self._stop()
            except (EmbeddedServerError, OSError, subprocess.SubprocessError) as error:
                log.warning("left the embedded PostgreSQL running", reason=error_text(error))
            finally:
                self.abandon()

    def _stop(self) -> None:
        # in a container the server would be killed when process 1, its first one, ends
        if self._linger > 0 and os.getpid() != 1 and self._runs():
            linger(self._folder, self._linger)
        else:
            stop_server(self._folder)

    def abandon(self) -> None:
        """Leave the server without stopping it."""
        with self._thread_lock:
            self._left = True
            lock, self._users_lock = self._users_lock, None
            if lock is not None:
                unlock(lock)
            _uses.discard(self)
            atexit.unregister(self.leave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def _join(self) -> None:
        if self._users_lock is None:
            lock = open_lock(self._folder, self._folder.users)
            if not try_lock(lock, SHARED):
                os.close(lock)
                raise EmbeddedServerError(
                    f"{self._folder.users} is locked by something that is not Forager",
                    hint="end the process that holds it (see `lslocks`), and try again",
                )
            self._users_lock = lock

    def _runs(self) -> bool:
        postmaster: Postmaster | None = find_postmaster(self._folder.data)
        return postmaster is not None and postmaster.ready and socket_exists(postmaster)

    def _forget_in_child(self) -> None:
        # a forked child shares the parent's lock: it must neither keep it nor stop the server
        self._thread_lock = threading.RLock()
        self._left = True
        lock, self._users_lock = self._users_lock, None
        if lock is not None:
            os.close(lock)


def stop_lingering(home: Path) -> bool:
    """Stop the embedded server of this home; False if it is not running. Refused while in use."""
    folder = ServerFolder(home)
    if not folder.root.is_dir() or find_postmaster(folder.data) is None:
        return False
    with hold_start_lock(folder, LOCK_LIMIT):
        if not stop_if_unused(folder):
            users = _lock_holders(folder.users) or ()
            who = f" by process {', '.join(map(str, users))}" if users else ""
            raise NotAllowed(
                f"the embedded PostgreSQL is in use{who}", hint="Stop those processes first."
            )
    return True


_uses: weakref.WeakSet[ServerUse] = weakref.WeakSet()


def _forget_all_in_child() -> None:
    for use in list(_uses):
        use._forget_in_child()


os.register_at_fork(after_in_child=_forget_all_in_child)


_CONNECT_LIMIT = 30
_DROPPED_LIMIT = 3.0


def ensure_database(folder: ServerFolder, socket_folder: Path) -> str:
    """The URL of Forager's database, which is created if it is missing."""
    url = database_url(socket_folder, ROLE, DATABASE)
    for waited in moments(START_LIMIT, "waiting for the embedded PostgreSQL to recover", folder):
        try:
            if not _exists(url):
                _create_database(socket_folder)
            return url
        except psycopg.Error as error:
            # after the crash of a backend the server closes all sessions, then recovers for as long
            # as that takes, and its pid file says "ready" all the while
            if waited > _DROPPED_LIMIT and "the database system is" not in str(error):
                raise EmbeddedServerError(
                    f"the embedded PostgreSQL runs, but cannot be used: {error_text(error)}",
                    hint=f"the server's log is {folder.log}",
                ) from error
    raise ServerStartingError(hint=f"try again later, and see {folder.log}")


def _exists(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=_CONNECT_LIMIT).close()
    except errors.OperationalError as error:
        if "does not exist" not in str(error):
            raise
        return False
    return True


def _create_database(socket_folder: Path) -> None:
    maintenance = database_url(socket_folder, ROLE, "postgres")
    with psycopg.connect(
        maintenance, autocommit=True, connect_timeout=_CONNECT_LIMIT
    ) as connection:
        try:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        except (errors.DuplicateDatabase, errors.UniqueViolation):
            return  # another process was quicker


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
    users: tuple[int, ...] | None  # pids; None where the system does not show them
    disk_full: bool


def server_status(home: Path) -> ServerStatus:
    """The state of the embedded server of this home."""
    folder = ServerFolder(home)
    postmaster = find_postmaster(folder.data)
    return ServerStatus(
        folder=folder.root,
        server_version=MAJOR_VERSION,
        data_version=data_version(folder),
        pid=postmaster.pid if postmaster else None,
        state=postmaster.status if postmaster else "stopped",
        socket_folder=postmaster.socket_folder if postmaster else None,
        log=folder.log,
        log_bytes=log_size(folder),
        users=_lock_holders(folder.users),
        disk_full=disk_is_full(folder.root),
    )


def _lock_holders(path: Path) -> tuple[int, ...] | None:
    """Pids from lines such as `1: FLOCK  ADVISORY  READ 4711 fe:00:1234 0 EOF`."""
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
