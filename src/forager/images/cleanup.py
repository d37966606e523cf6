"""Clean-up of image files: delete those that no image refers to."""

from __future__ import annotations

from forager.db.database import Database
from forager.images.files import open_image_files
from forager.images.store import files as store
from forager.logs import get_logger
from forager.services.isolation import isolated
from forager.settings import Settings

log = get_logger("images")

# longer than any writer takes between storing a file and referring to it
SPARED_FOR = 86400.0
CHUNK = 500


async def delete_unused_files(database: Database, settings: Settings) -> int:
    """Delete unused files, also those that an interrupted clean-up left; return their number."""
    files = open_image_files(settings)
    await _mark_all(database)
    async with database.connection() as connection:
        going = await store.select_going_files(connection)
    for content_hash, path in going:
        with isolated(f"image file {path}"):
            # the row last: while it exists, no process writes this file again
            await files.delete(path)
            async with database.connection() as connection:
                await store.delete_file_row(connection, content_hash)
    if going:
        log.info("image files deleted", files=len(going))
    return len(going)


async def _mark_all(database: Database) -> None:
    while True:
        async with database.connection() as connection:
            unused = await store.select_unused_files(connection, seconds=SPARED_FOR, limit=CHUNK)
        marked = [await _mark(database, content_hash) for content_hash in unused]
        if len(unused) < CHUNK or not any(marked):
            return


async def _mark(database: Database, content_hash: bytes) -> bool:
    """Check again under the lock: a reference may have been added meanwhile."""
    async with database.transaction() as connection:
        await store.lock_file(connection, content_hash)
        return await store.mark_going(connection, content_hash, seconds=SPARED_FOR)
