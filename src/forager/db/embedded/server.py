"""Start and stop the server. Callers hold the start lock, except while they wait for it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from forager.db.embedded.binaries import find_binaries
from forager.db.embedded.cluster import check_version, create_cluster, write_configuration
from forager.db.embedded.failures import ServerStartingError, explain_exit, explain_os_error
from forager.db.embedded.folder import ServerFolder
from forager.db.embedded.identity import ServerIdentity, choose_identity
from forager.db.embedded.locks import EXCLUSIVE, SHARED, open_lock, try_lock
from forager.db.embedded.postmaster import (
    Postmaster,
    find_postmaster,
    forget_reused_pid,
    kill_orphans,
    last_socket_folder,
)
from forager.db.embedded.server_log import log_end, moments, open_log, trim_log
from forager.db.embedded.sockets import (
    PORT,
    SOCKET_NAME,
    accepts_connections,
    choose_socket_folder,
    clear_socket,
    remove_socket_folder,
)
from forager.errors import EmbeddedServerError, error_text
from forager.logs import get_logger

# crash recovery reads up to max_wal_size, which a slow disk may need minutes for
START_LIMIT = 1800.0
STOP_LIMIT = 45.0
_SETTLE_LIMIT = 60.0
# a server that was just started has no pid file yet, and one in another container never has
_YOUNG_LIMIT = 5.0

log = get_logger("db.embedded")


def start_server(folder: ServerFolder) -> bool:
    """Start the server unless one lives; whether it was started here. It may not be ready yet."""
    trim_log(folder)
    settled = _find_server_or_lock(folder)
    if isinstance(settled, Postmaster):
        return False
    try:
        _start_locked(folder, settled)
    except OSError as error:
        raise explain_os_error(error, folder.root) from error
    finally:
        # the server has a copy, so this does not release the lock
        os.close(settled)
    return True


def wait_until_ready(folder: ServerFolder, log_start: int) -> Postmaster:
    """Wait for as long as the server lives and recovers; say so every few seconds."""
    for waited in moments(START_LIMIT, "waiting for the embedded PostgreSQL", folder):
        # asked before the pid file, for a server that ends between the two has no pid file either
        alive = server_lives(folder)
        postmaster = find_postmaster(folder.data)
        if postmaster and postmaster.ready:
            log.debug("embedded PostgreSQL is ready", pid=postmaster.pid, seconds=round(waited, 3))
            return postmaster
        if not alive and postmaster is None:
            output = log_end(folder, log_start)
            raise explain_exit(
                "the embedded PostgreSQL did not start", output, folder.root, folder.log
            )
    raise ServerStartingError(
        f"the embedded PostgreSQL was not ready after {START_LIMIT:g} s",
        hint=f"it keeps starting in the background: try again later, and see {folder.log}",
    )


def stop_server(folder: ServerFolder) -> None:
    """Stop the server and wait until its last process is gone; what it leaves is always valid."""
    postmaster = _wait_for_pid(folder)
    if postmaster is None or (_stops_fast(postmaster) and _signal_and_wait(folder, signal.SIGINT)):
        return
    # like a power cut: what was committed survives the next recovery
    if not _signal_and_wait(folder, signal.SIGQUIT):
        log.warning("the embedded PostgreSQL does not stop", log=str(folder.log))


def server_lives(folder: ServerFolder) -> bool:
    """Whether any process of the server lives, the first moments and orphans included."""
    fd = open_lock(folder, folder.alive)
    try:
        # shared, so that those who ask do not see each other
        return not try_lock(fd, SHARED)
    finally:
        os.close(fd)


def socket_exists(postmaster: Postmaster) -> bool:
    """A runtime folder can vanish under a living server, for instance when its user logs out."""
    return (
        postmaster.socket_folder is not None and (postmaster.socket_folder / SOCKET_NAME).exists()
    )


def _stops_fast(postmaster: Postmaster) -> bool:
    """A server that recovers has nothing to lose, and may hang when asked to end in order."""
    return postmaster.status == "stopping" or (
        postmaster.socket_folder is not None
        and (accepts_connections(postmaster.socket_folder) or not socket_exists(postmaster))
    )


def _signal_and_wait(folder: ServerFolder, number: signal.Signals) -> bool:
    postmaster = find_postmaster(folder.data)
    if postmaster is None:
        return True
    postmaster.signal(number)
    for _ in moments(STOP_LIMIT, "waiting for the embedded PostgreSQL to stop", folder):
        if not server_lives(folder) and find_postmaster(folder.data) is None:
            remove_socket_folder(postmaster.socket_folder)
            return True
    return False


def _wait_for_pid(folder: ServerFolder) -> Postmaster | None:
    for _ in moments(_YOUNG_LIMIT, "waiting for the embedded PostgreSQL's pid", folder):
        alive = server_lives(folder)
        postmaster = find_postmaster(folder.data)
        if postmaster or not alive:
            return postmaster
        kill_orphans(folder.data)
    return None


def _find_server_or_lock(folder: ServerFolder) -> Postmaster | int:
    """Wait for certainty: a living server, or its lock in our hands, so that there is none."""
    for _ in moments(_SETTLE_LIMIT, "waiting for the previous embedded PostgreSQL", folder):
        postmaster = find_postmaster(folder.data)
        if postmaster and postmaster.ready and not socket_exists(postmaster):
            log.warning("the embedded PostgreSQL lost its socket and is restarted")
            stop_server(folder)
        elif postmaster and postmaster.status != "stopping":
            return postmaster
        elif postmaster is None:
            if (lock := _try_server_lock(folder)) is not None:
                return lock
            # someone lives: a server too young for a pid file, or what a killed one left
            if killed := kill_orphans(folder.data):
                log.warning("ended what a killed PostgreSQL left", processes=killed)
    raise EmbeddedServerError(
        f"another PostgreSQL, ending or out of sight, uses {folder.data}",
        hint="it may still be writing to disk, or run in another container: "
        "wait for it or stop it there, and try again",
    )


def _try_server_lock(folder: ServerFolder) -> int | None:
    fd = open_lock(folder, folder.alive)
    if try_lock(fd, EXCLUSIVE):
        return fd
    os.close(fd)
    return None


def _start_locked(folder: ServerFolder, server_lock: int) -> None:
    binaries = find_binaries()
    has_data = check_version(folder)
    identity = choose_identity(folder, binaries)
    if identity.uid is not None and identity.gid is not None:
        os.chown(folder.root, identity.uid, identity.gid)
    if not has_data:
        create_cluster(folder, binaries, identity, server_lock)
    write_configuration(folder)
    sockets = choose_socket_folder(folder, identity, last_socket_folder(folder.data))
    clear_socket(sockets)
    forget_reused_pid(folder.data)
    _spawn(folder, binaries.postgres, identity, sockets, server_lock)


def _spawn(
    folder: ServerFolder, postgres: Path, identity: ServerIdentity, sockets: Path, server_lock: int
) -> None:
    """Start the server detached: the process that started it may exit before it ends.

    A separate session keeps the terminal's Ctrl-C away. The server and all its processes inherit
    the lock on `server.lock`: the kernel releases it when the last of them is gone.
    """
    flags = (f"unix_socket_directories={sockets}", "listen_addresses=", f"port={PORT}")
    command = [str(postgres), "-D", str(folder.data)]
    for flag in flags:
        command += ["-c", flag]
    output = open_log(folder)
    try:
        identity.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *command],
            stdout=output,
            stderr=output,
            cwd=folder.root,
            pass_fds=(server_lock,),
            timeout=_SETTLE_LIMIT,
            check=True,
        )
    except subprocess.SubprocessError as error:
        raise explain_exit(
            f"the embedded PostgreSQL could not be started: {error_text(error)}",
            "",
            folder.root,
            folder.log,
        ) from error
    finally:
        os.close(output)
