"""Backup and restore, in an order that never leaves a reference without its bytes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg

from forager.archive.options import archive_options
from forager.archive.storage import local_folder
from forager.db.clients import bundled_client, client_environment, installed_client
from forager.db.database import reach_server, translated_errors
from forager.db.schema import current_version
from forager.errors import ForagerError, InvalidInput, NotAllowed, NotFound
from forager.permissions import (
    PRIVATE_FOLDER,
    is_open_to_others,
    make_private_folder,
    private_umask,
)
from forager.products import unseen
from forager.secrets import KEY_FILE
from forager.settings import Settings

DUMP = "database.dump"
ARCHIVE = "archive"
PRODUCTS = unseen.FOLDER
# In the list of a dump: its workers do not work for the restored database.
_WORKERS = re.compile(r" TABLE DATA \S+ workers ")
# In the list of a dump: embeddings are computed again, and a server may lack pgvector.
_VECTORS = re.compile(r" EXTENSION (- )?vector\b|\bsection_vectors(_idx)?\b")

# what is being done, and how many files it has copied so far
Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class BackupContents:
    """What was copied; no archive files where it lies in a bucket."""

    schema: str
    archive_files: int | None
    secret_key: bool
    # of products that left the database
    product_files: int


def _no_progress(_step: str, _files: int) -> None:
    """Report nothing."""


def save(settings: Settings, folder: Path, *, progress: Progress = _no_progress) -> BackupContents:
    """Copy everything into a folder while work continues; into the same folder again, new files.

    Archive, database, archive: what the dump refers to was written before it, so the second copy
    has it; what a clean-up deletes meanwhile the first one has. Archived products likewise: their
    file is written before their rows go, and may be put back and deleted meanwhile.
    """
    with private_umask():
        _make(folder)
        return _save(settings, folder, progress)


def _save(settings: Settings, folder: Path, progress: Progress) -> BackupContents:
    source = archive_folder(settings)
    files = _copy("copying the archive", source, folder / ARCHIVE, progress)
    living, kept = unseen.archive_folder(settings), folder / PRODUCTS
    products = _copy_products(living, kept, progress)
    progress("dumping the database", 0)
    schema = _dump(settings, folder / DUMP)
    if files is not None:
        files += _copy("copying what came since", source, folder / ARCHIVE, progress) or 0
    products += _copy_products(living, kept, progress)
    return BackupContents(schema, files, _copy_key(settings.home, folder), products)


def restore(
    settings: Settings, folder: Path, *, progress: Progress = _no_progress
) -> BackupContents:
    """Bring everything back, into a home and a database that are new.

    The archive first, then the database: references come after their bytes here too.
    """
    if not (folder / DUMP).is_file():
        raise NotFound(f"there is no backup in {folder}", hint=f"It would hold {DUMP}.")
    with reach_server(settings) as server, translated_errors():
        if current_version(server.url) is not None:
            raise NotAllowed(
                "the database is in use already, and would be overwritten",
                hint="Set FORAGER_HOME to a new folder, or FORAGER_DATABASE_URL to an empty"
                " database.",
            )
        target = archive_folder(settings)
        files = _copy("copying the archive", folder / ARCHIVE, target, progress)
        products = _copy_products(folder / PRODUCTS, unseen.archive_folder(settings), progress)
        progress("restoring the database", 0)
        key = _copy_key(folder, settings.home)
        _load(settings, server.url, folder / DUMP)
        return BackupContents(current_version(server.url) or "", files, key, products)


def _make(folder: Path) -> None:
    try:
        make_private_folder(folder)
        if is_open_to_others(folder):
            _close(folder)
    except OSError as error:
        message = f"a backup cannot be made in {folder}: {error.strerror}"
        raise InvalidInput(
            message, hint="Name a folder that is yours, or that can be made."
        ) from None


def _close(folder: Path) -> None:
    """Tighten a folder that is empty or holds a backup; others may be shared for a reason."""
    if any(folder.iterdir()) and not (folder / DUMP).is_file():
        raise InvalidInput(
            f"other users can open {folder}, and it holds more than a backup",
            hint=f"A backup holds all secrets: name a new folder, or run `chmod 700 {folder}`.",
        )
    folder.chmod(PRIVATE_FOLDER)


def _copy(step: str, source: Path | None, target: Path | None, progress: Progress) -> int | None:
    if source is None or target is None:
        return None
    progress(step, 0)
    return copy_tree(source, target, on_copy=partial(progress, step))


def archive_folder(settings: Settings) -> Path | None:
    """None for a bucket, which keeps copies by its own means."""
    return local_folder(archive_options(settings).place)


def _copy_products(source: Path, target: Path, progress: Progress) -> int:
    return _copy("copying archived products", source, target, progress) or 0


def _dump(settings: Settings, target: Path) -> str:
    part = target.with_name(target.name + PART)
    with reach_server(settings) as server, translated_errors():
        schema = current_version(server.url)
        if schema is None:
            raise InvalidInput("there is nothing to save: the database was never used")
        _require_archive(archive_folder(settings), server.url)
        run_tool(settings, server.url, "pg_dump", "--format=custom", f"--file={part}")
    part.chmod(0o600)
    put_in_place(part, target)
    return schema


def _load(settings: Settings, url: str, dump: Path) -> None:
    # an empty name is taken from the environment, like the rest
    arguments = ["--no-owner", "--exit-on-error", "--single-transaction", "--dbname="]
    with tempfile.NamedTemporaryFile("w", suffix=".list") as chosen:
        contents = run_tool(settings, url, "pg_restore", "--list", str(dump)).splitlines(True)
        left_out = [_WORKERS] if has_pgvector(url) else [_WORKERS, _VECTORS]
        chosen.writelines(
            line for line in contents if not any(each.search(line) for each in left_out)
        )
        chosen.flush()
        arguments.append(f"--use-list={chosen.name}")
        run_tool(settings, url, "pg_restore", *arguments, str(dump))


def _require_archive(folder: Path | None, url: str) -> None:
    """Refuse a backup without the archive that rows refer to."""
    if folder is None or folder.is_dir() or not has_archived_records(url):
        return
    raise NotFound(
        f"rows refer to an archive, but there is no folder {folder}",
        hint="Set FORAGER_ARCHIVE_URL to where the archive is; a move is to be finished first.",
    )


def _copy_key(source: Path, target: Path) -> bool:
    """Copy the encryption key, without which stored secrets cannot be read."""
    if not (source / KEY_FILE).is_file():
        return False
    copy_file(source / KEY_FILE, target / KEY_FILE, mode=0o600)
    return True


PART = ".part"


def copy_tree(
    source: Path, target: Path, *, on_copy: Callable[[int], None] = lambda _: None
) -> int:
    """Copy what is new; how many files that was. Nothing is deleted at the target.

    A segment is never written again where it was written, so one of the same size is the same; an
    image's name is its hash. A file that vanishes while it is copied was not wanted any more.
    `on_copy` gets their number so far.
    """
    copied = 0
    for folder, _, names in os.walk(source):
        for name in names:
            path = Path(folder) / name
            if _copy_new(path, target / path.relative_to(source)):
                copied += 1
                on_copy(copied)
    return copied


def copy_file(source: Path, target: Path, *, mode: int | None = None) -> None:
    """Whole or not at all, and on the disk when it is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + PART)
    shutil.copyfile(source, part)
    if mode is not None:
        part.chmod(mode)
    put_in_place(part, target)


def put_in_place(part: Path, target: Path) -> None:
    """Replace a file by a complete one, so that one of them exists at any moment."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)


def _copy_new(source: Path, target: Path) -> bool:
    try:
        if target.exists() and target.stat().st_size == source.stat().st_size:
            return False
        copy_file(source, target)
    except FileNotFoundError:
        return False
    return True


def has_pgvector(url: str) -> bool:
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        cursor = connection.execute("SELECT FROM pg_available_extensions WHERE name = 'vector'")
        return cursor.fetchone() is not None


def has_archived_records(url: str) -> bool:
    """Whether there is a segment that responses were written to."""
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        cursor = connection.execute(
            "SELECT FROM archive_segments WHERE records > 0 AND going_at IS NULL LIMIT 1"
        )
        return cursor.fetchone() is not None


# as many hours as a dump of a very large database may take
LIMIT = 12 * 3600.0


class DumpFailed(ForagerError):
    """A dump was not made, or not read back."""


def run_tool(settings: Settings, url: str, name: str, *arguments: str) -> str:
    """Run `pg_dump` or `pg_restore` and return its output.

    No password is among its arguments, which others can see.
    """
    command = [str(_find(settings, name)), "--no-password", *arguments]
    try:
        done = subprocess.run(
            command, env=client_environment(url), check=True, capture_output=True, timeout=LIMIT
        )
        return done.stdout.decode("utf-8", "replace")
    except subprocess.CalledProcessError as error:
        message = error.stderr.decode("utf-8", "replace").strip()[-2000:]
        raise DumpFailed(f"{name} failed: {message}") from None
    except subprocess.TimeoutExpired:
        raise DumpFailed(f"{name} took more than {LIMIT / 3600:g} hours") from None


def _find(settings: Settings, name: str) -> Path:
    """The programs of the embedded server, or those installed for a configured one."""
    embedded = settings.database_url is None
    found = bundled_client(name) if embedded else installed_client(name)
    if found is None:
        raise InvalidInput(
            f"{name} is not installed",
            hint="Install the client programs of your PostgreSQL, of its version or newer.",
        )
    return found
