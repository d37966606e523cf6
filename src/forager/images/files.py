"""Image files: one for each content, beside the archive, in a folder or in a bucket.

A file is named after its content, so writing it twice writes the same; and it is complete and on
disk before anything refers to it.
"""

from __future__ import annotations

import re
from pathlib import Path

from forager.archive.options import archive_options
from forager.archive.storage import FileKind, Storage, open_storage
from forager.db.database import Database
from forager.errors import InvalidInput
from forager.images.store import files as store
from forager.logs import get_logger
from forager.services.service import isolated
from forager.settings import Settings

FOLDER = "images"
# images, and the files of archived products
_PATH = re.compile(
    r"images/[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{64}\.[a-z]{2,5}|archived-products/[0-9a-f-]+\.jsonl"
)


def image_path(content_hash: bytes, extension: str) -> str:
    name = content_hash.hex()
    return f"{FOLDER}/{name[:2]}/{name[2:4]}/{name}.{extension}"


def _check(path: str) -> None:
    if _PATH.fullmatch(path) is None:
        raise InvalidInput(f"{path!r} is not the path of an image")


IMAGE_FILES = FileKind("image file", _check)


def open_image_files(settings: Settings) -> Storage:
    """Image files at the location of the archive."""
    return archive_options(settings).open(IMAGE_FILES)


def image_files_at(place: str | Path) -> Storage:
    """Image files at a location."""
    return open_storage(place, IMAGE_FILES)


log = get_logger("images")

# longer than a writer takes between storing a file and referring to it
SPARED_FOR = 86400.0
CHUNK = 500


async def delete_unused_files(database: Database, settings: Settings) -> int:
    """Delete unused files, also those of an interrupted clean-up; returns their number."""
    files = open_image_files(settings)
    await _mark_all(database)
    going = await database.run(store.select_going_files)
    for content_hash, path in going:
        with isolated(f"image file {path}"):
            # the row last: while it exists, no process writes this file again
            await files.delete(path)
            await database.run(store.delete_file_row, content_hash)
    if going:
        log.info("image files deleted", files=len(going))
    return len(going)


async def _mark_all(database: Database) -> None:
    while True:
        unused = await database.run(store.select_unused_files, seconds=SPARED_FOR, limit=CHUNK)
        marked = [await _mark(database, content_hash) for content_hash in unused]
        if len(unused) < CHUNK or not any(marked):
            return


async def _mark(database: Database, content_hash: bytes) -> bool:
    """Mark a file for deletion, unless a reference was added meanwhile."""
    async with database.transaction() as connection:
        await store.lock_file(connection, content_hash)
        return await store.mark_going(connection, content_hash, seconds=SPARED_FOR)
