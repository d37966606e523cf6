"""The folder of the server's Unix socket: short enough for the kernel, closed to other users."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import stat
import tempfile
from pathlib import Path
from urllib.parse import quote

from psycopg.pq import PGconn, Ping

from forager.db.embedded.failures import explain_os_error
from forager.db.embedded.folder import PRIVATE, ServerFolder
from forager.db.embedded.identity import ServerIdentity
from forager.errors import EmbeddedServerError

PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
# 104 bytes with the final zero on macOS, 108 on Linux
_MAX_PATH_BYTES = 103
# characters that mean nothing to PostgreSQL, libpq or SQLAlchemy: these read lists and host:port
_PLAIN = re.compile(r"[A-Za-z0-9._/+@=~-]+")


def database_url(folder: Path, role: str, database: str) -> str:
    """The libpq URL of a database behind the socket in this folder."""
    return f"postgresql://{role}@/{database}?host={quote(str(folder), safe='')}&port={PORT}"


def accepts_connections(folder: Path) -> bool:
    """Whether the server behind the socket works, and is neither starting nor recovering."""
    address = f"host={folder} port={PORT} user=any dbname=any connect_timeout=5"
    return PGconn.ping(address.encode()) == Ping.OK


def choose_socket_folder(
    folder: ServerFolder, identity: ServerIdentity, last_used: Path | None = None
) -> Path:
    """Below home if a socket fits there, otherwise a short folder that belongs to us alone.

    A folder used before comes first: those who only know the URL find the new server there.
    """
    if last_used is not None and _is_private(last_used, identity) and _takes_sockets(last_used):
        return last_used
    for place in _places(folder, identity):
        _make_private(place, identity)
        if _takes_sockets(place):
            return place
    raise EmbeddedServerError(
        f"no Unix socket can be made for the embedded PostgreSQL in {folder.sockets} "
        f"or {tempfile.gettempdir()}",
        hint="set FORAGER_HOME to a shorter path on a local disk, or XDG_RUNTIME_DIR or TMPDIR "
        "to a folder that takes sockets",
    )


def clear_socket(folder: Path) -> None:
    """Remove what a killed server left; its lock file may name a pid that is another's now."""
    for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
        with contextlib.suppress(FileNotFoundError):
            (folder / name).unlink()


def remove_socket_folder(folder: Path | None) -> None:
    """Leave no empty folder behind in /tmp once the server is gone."""
    if folder is not None:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _places(folder: ServerFolder, identity: ServerIdentity) -> list[Path]:
    short = f"forager-{identity.files_uid}-{hashlib.sha256(bytes(folder.home)).hexdigest()[:12]}"
    places = [folder.sockets]
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    # after `su` the variable can name the folder of another user
    if runtime.is_absolute() and _is_private(runtime, identity):
        places.append(runtime / short)
    places.append(Path(tempfile.gettempdir()) / short)
    return [place for place in places if _fits(place)]


def _fits(place: Path) -> bool:
    path = str(place / SOCKET_NAME)
    return len(os.fsencode(path)) <= _MAX_PATH_BYTES and _PLAIN.fullmatch(path) is not None


def _make_private(place: Path, identity: ServerIdentity) -> None:
    try:
        with contextlib.suppress(FileExistsError):
            place.mkdir(mode=PRIVATE)
            if identity.uid is not None and identity.gid is not None:
                os.chown(place, identity.uid, identity.gid)
    except OSError as error:
        raise explain_os_error(error, place) from error
    # in a folder like /tmp another user could have created it first, to listen there
    if not _is_private(place, identity):
        raise EmbeddedServerError(
            f"{place} belongs to another user or is accessible to others, "
            "so the embedded PostgreSQL does not use it",
            hint="remove it, or set FORAGER_HOME to a shorter path, or TMPDIR to a folder of yours",
        )


def _is_private(place: Path, identity: ServerIdentity) -> bool:
    try:
        found = place.lstat()
    except OSError:
        return False
    owned = stat.S_ISDIR(found.st_mode) and found.st_uid == identity.files_uid
    return owned and not found.st_mode & 0o077


def _takes_sockets(place: Path) -> bool:
    """Whether sockets can be created; some network file systems have only files."""
    probe = place / f".p{os.getpid()}"
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(probe))
    except OSError:
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True
