"""Saving and restoring, in the order that keeps the promise: no reference without its bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from forager.archive.options import archive_options
from forager.archive.storage import local_folder
from forager.backup import store
from forager.backup.files import PART, copy_file, copy_tree, put_in_place
from forager.backup.tools import run_tool
from forager.db.database import reach_server, translated_errors
from forager.db.schema import current_version
from forager.errors import InvalidInput, NotAllowed, NotFound
from forager.products import archiving
from forager.secrets import KEY_FILE
from forager.settings import Settings

DUMP = "database.dump"
ARCHIVE = "archive"
PRODUCTS = archiving.FOLDER

# what is being done, and how many files it has copied so far
Told = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied; no archive files where it lies in a bucket."""

    schema: str
    archive_files: int | None
    secret_key: bool
    # of products that left the database
    product_files: int


def _nobody(_step: str, _files: int) -> None:
    """Who hears of progress, if nobody wants to."""


def save(settings: Settings, folder: Path, *, told: Told = _nobody) -> Copied:
    """Copy everything into a folder, while work goes on. Again into the same one: what is new.

    Archive, database, archive: what the dump refers to was written before it, so the second copy
    has it; what a clean-up deletes meanwhile the first one has. Archived products likewise: their
    file is written before their rows go, and may be put back and deleted meanwhile.
    """
    _make(folder)
    source = archive_folder(settings)
    files = _copy("copying the archive", source, folder / ARCHIVE, told)
    living, kept = archiving.archive_folder(settings), folder / PRODUCTS
    products = _copy_products(living, kept, told)
    told("dumping the database", 0)
    schema = _dump(settings, folder / DUMP)
    if files is not None:
        files += _copy("copying what came since", source, folder / ARCHIVE, told) or 0
    products += _copy_products(living, kept, told)
    return Copied(schema, files, _copy_key(settings.home, folder), products)


def restore(settings: Settings, folder: Path, *, told: Told = _nobody) -> Copied:
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
        files = _copy("copying the archive", folder / ARCHIVE, target, told)
        products = _copy_products(folder / PRODUCTS, archiving.archive_folder(settings), told)
        told("restoring the database", 0)
        key = _copy_key(folder, settings.home)
        # an empty name is taken from the environment, like the rest
        arguments = ("--no-owner", "--exit-on-error", "--single-transaction", "--dbname=")
        run_tool(settings, server.url, "pg_restore", *arguments, str(folder / DUMP))
        return Copied(current_version(server.url) or "", files, key, products)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        words = f"a backup cannot be made in {folder}: {error.strerror}"
        raise InvalidInput(
            words, hint="Name a folder that is yours, or that can be made."
        ) from None


def _copy(step: str, source: Path | None, target: Path | None, told: Told) -> int | None:
    if source is None or target is None:
        return None
    told(step, 0)
    return copy_tree(source, target, on_copy=partial(told, step))


def archive_folder(settings: Settings) -> Path | None:
    """None for a bucket, which keeps copies by its own means."""
    return local_folder(archive_options(settings).place)


def _copy_products(source: Path, target: Path, told: Told) -> int:
    return _copy("copying archived products", source, target, told) or 0


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


def _require_archive(folder: Path | None, url: str) -> None:
    """A copy of nothing would look like a backup until the day it is needed."""
    if folder is None or folder.is_dir() or not store.has_archived_records(url):
        return
    raise NotFound(
        f"rows refer to an archive, but there is no folder {folder}",
        hint="Set FORAGER_ARCHIVE_URL to where the archive is; a move is to be finished first.",
    )


def _copy_key(source: Path, target: Path) -> bool:
    """Without it, stored secrets cannot be read; with it, whoever has the backup can."""
    if not (source / KEY_FILE).is_file():
        return False
    copy_file(source / KEY_FILE, target / KEY_FILE, mode=0o600)
    return True
