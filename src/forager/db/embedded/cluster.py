"""The data folder: made once, in one step, and only used by the version that made it."""

from __future__ import annotations

import os
import shutil
import subprocess

from forager.db.embedded.binaries import MAJOR_VERSION, Binaries
from forager.db.embedded.configuration import MAIN_CONF
from forager.db.embedded.folder import ServerFolder
from forager.db.embedded.identity import Identity, environment
from forager.db.embedded.server_log import last_words, log_size, open_log
from forager.db.embedded.trouble import DAMAGE_HINT, explain_exit, explain_os_error
from forager.errors import EmbeddedServerError
from forager.logs import announce, get_logger

ROLE = "forager"
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
    folder: ServerFolder, binaries: Binaries, identity: Identity, server_lock: int
) -> None:
    """Make the data folder beside its place and rename it: a crash leaves nothing half made."""
    announce(
        log, "first run: creating the database, which takes a few seconds", folder=str(folder.data)
    )
    try:
        # what an interrupted attempt left; nobody works there, for we hold the server's lock
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
    folder: ServerFolder, binaries: Binaries, identity: Identity, server_lock: int
) -> None:
    for ctype in _CHARACTER_TYPES:
        before = log_size(folder)
        if _initdb(folder, binaries, identity, server_lock, ctype):
            return
        words = last_words(folder, before)
        if "locale" not in words:
            break
    raise explain_exit("the embedded database could not be created", words, folder.root, folder.log)


def _initdb(
    folder: ServerFolder, binaries: Binaries, identity: Identity, server_lock: int, ctype: str
) -> bool:
    locale = ("--locale=C", f"--lc-ctype={ctype}")
    # the built-in collation does not change with the operating system, so indexes stay valid
    collation = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--encoding=UTF8")
    # no password: the socket's folder lets nobody else in
    access = ("--username", ROLE, "--auth=trust")
    command = [*identity.prefix, str(binaries.initdb), "-D", str(folder.unfinished_data)]
    output = open_log(folder)
    try:
        done = subprocess.run(
            [*command, *access, *locale, *collation, "--data-checksums"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment(),
            cwd=folder.root,
            user=identity.uid,
            group=identity.gid,
            extra_groups=identity.groups,
            start_new_session=True,
            # if we are killed, the next one waits for what is left of initdb
            pass_fds=(server_lock,),
            timeout=_INITDB_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    finally:
        os.close(output)
    return done.returncode == 0


def _sync(path: os.PathLike[str]) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
