"""The data folder: created atomically, and used only by the version that created it."""

from __future__ import annotations

import os
import shutil
import subprocess

import psutil

from forager.db.embedded.binaries import MAJOR_VERSION, Binaries
from forager.db.embedded.failures import DAMAGE_HINT, explain_exit, explain_os_error
from forager.db.embedded.folder import ServerFolder
from forager.db.embedded.identity import ServerIdentity
from forager.db.embedded.server_log import log_end, log_size, open_log
from forager.errors import EmbeddedServerError
from forager.logs import announce, get_logger
from forager.permissions import private_opener

ROLE = "forager"
DATABASE = "forager"
_INITDB_LIMIT = 300.0
# the character classes of full-text search come from the C library: without UTF-8 ones, every
# non-ASCII character counts as a letter. Not every C library has them
_CHARACTER_TYPES = ("C.UTF-8", "C")

log = get_logger("db.embedded")


def data_version(folder: ServerFolder) -> int | None:
    """The major version that made the data folder; None while there is no data."""
    try:
        text = (folder.data / "PG_VERSION").read_text(encoding="ascii").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError):
        return 0
    return int(text) if text.isdecimal() else 0


def check_version(folder: ServerFolder) -> bool:
    """Whether there is data to use; raise if it is not for this server."""
    version = data_version(folder)
    if version is None:
        return _refuse_strangers(folder)
    if version != MAJOR_VERSION:
        raise EmbeddedServerError(
            f"{folder.data} was made by PostgreSQL {version or 'of an unknown version'}, "
            f"and this Forager brings PostgreSQL {MAJOR_VERSION}",
            hint="keep the folder: start it with its own version, dump it with pg_dump, move it "
            "away, and load the dump into the new one; or run it as a server of your own "
            "and set FORAGER_DATABASE_URL",
        )
    return True


def create_cluster(
    folder: ServerFolder, binaries: Binaries, identity: ServerIdentity, server_lock: int
) -> None:
    """Make the data folder beside its place and rename it: a crash leaves nothing half made."""
    announce(
        log, "first run: creating the database, which takes a few seconds", folder=str(folder.data)
    )
    try:
        # left by an interrupted attempt; not in use, because we hold the server's lock
        shutil.rmtree(folder.unfinished_data, ignore_errors=True)
        _initdb_with_any_locale(folder, binaries, identity, server_lock)
        conf = folder.unfinished_data / "postgresql.conf"
        conf.write_text(MAIN_CONF, encoding="utf-8")
        _sync(conf)
        folder.unfinished_data.rename(folder.data)
        _sync(folder.root)
    except OSError as error:
        raise explain_os_error(error, folder.data) from error


def _refuse_strangers(folder: ServerFolder) -> bool:
    try:
        empty = not folder.data.exists() or not any(folder.data.iterdir())
    except OSError as error:
        raise explain_os_error(error, folder.data) from error
    if not empty:
        raise EmbeddedServerError(
            f"{folder.data} is not empty, but is not a PostgreSQL data folder", hint=DAMAGE_HINT
        )
    return False


def _initdb_with_any_locale(
    folder: ServerFolder, binaries: Binaries, identity: ServerIdentity, server_lock: int
) -> None:
    for ctype in _CHARACTER_TYPES:
        before = log_size(folder)
        if _initdb(folder, binaries, identity, server_lock, ctype):
            return
        output = log_end(folder, before)
        if "locale" not in output:
            break
    raise explain_exit(
        "the embedded database could not be created", output, folder.root, folder.log
    )


def _initdb(
    folder: ServerFolder, binaries: Binaries, identity: ServerIdentity, server_lock: int, ctype: str
) -> bool:
    locale = ("--locale=C", f"--lc-ctype={ctype}")
    # the built-in collation does not change with the operating system, so indexes stay valid
    collation = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--encoding=UTF8")
    # no password: only the owner can open the socket's folder
    access = ("--username", ROLE, "--auth=trust")
    command = [str(binaries.initdb), "-D", str(folder.unfinished_data)]
    output = open_log(folder)
    try:
        code = identity.run(
            [*command, *access, *locale, *collation, "--data-checksums"],
            stdout=output,
            stderr=output,
            cwd=folder.root,
            # if we are killed, the next process waits for what is left of initdb
            pass_fds=(server_lock,),
            timeout=_INITDB_LIMIT,
        )
    except subprocess.TimeoutExpired:
        return False
    finally:
        os.close(output)
    return code == 0


def _sync(path: os.PathLike[str]) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


FORAGER_CONF = "postgresql.forager.conf"
_MB = 1024 * 1024

# replaces the file that initdb wrote: ours first, so that a person's own lines win
MAIN_CONF = f"""\
# Forager rewrites {FORAGER_CONF} at each start. Settings of your own belong below.
include_if_exists = '{FORAGER_CONF}'
"""

_SETTINGS = {
    "max_connections": "200",
    "listen_addresses": "''",
    "unix_socket_permissions": "0700",
    "client_connection_check_interval": "'10s'",
    "idle_in_transaction_session_timeout": "'10min'",
    # a laptop or a small server with a solid-state disk; a commit is on disk when it returns
    "synchronous_commit": "on",
    "work_mem": "'8MB'",
    "random_page_cost": "1.1",
    "jit": "off",
    # the wheel's server has only pglz for it, which took longer than writing the bytes
    "wal_compression": "off",
    "max_wal_size": "'2GB'",
    "min_wal_size": "'160MB'",
    "checkpoint_timeout": "'10min'",
    # queue tables turn over quickly: clean often, in small portions
    "autovacuum_naptime": "'20s'",
    "autovacuum_vacuum_scale_factor": "0.05",
    "autovacuum_analyze_scale_factor": "0.05",
    "autovacuum_vacuum_insert_scale_factor": "0.1",
    "gin_pending_list_limit": "'16MB'",
    # most blocks are in the cache of the kernel: handing one to another process takes longer than
    # reading it
    "io_method": "sync",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
    "lc_messages": "'C'",
    # clients see their own errors; the log is about the server and contains no crawled text
    "logging_collector": "off",
    "log_destination": "'stderr'",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
    "log_line_prefix": "'%m [%p] '",
}


def write_configuration(folder: ServerFolder) -> None:
    """Replace the settings in one step: a crash leaves the old file or the new one."""
    path = folder.data / FORAGER_CONF
    draft = path.with_suffix(".new")
    with open(draft, "w", encoding="utf-8", opener=private_opener) as file:
        file.write(configuration_text())
    folder.hand_over(draft)
    draft.replace(path)


def configuration_text(memory_bytes: int | None = None) -> str:
    """The settings for a machine with this much memory."""
    memory = psutil.virtual_memory().total if memory_bytes is None else memory_bytes
    settings = _SETTINGS | {
        "shared_buffers": f"'{256 if memory >= 4096 * _MB else 128}MB'",
        "effective_cache_size": f"'{max(256, memory // 2 // _MB)}MB'",
        "maintenance_work_mem": f"'{128 if memory >= 4096 * _MB else 64}MB'",
    }
    return "".join(f"{name} = {value}\n" for name, value in sorted(settings.items()))
