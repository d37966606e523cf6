"""Image files go when no image has them any more, and never one that is about to be had."""

from __future__ import annotations

from forager.archive.errors import ArchiveError
from forager.db.database import Database
from forager.db.patience import Patience, keep_up
from forager.images.files import open_image_files
from forager.images.store import files as store
from forager.logs import get_logger
from forager.settings import Settings

log = get_logger("images")

INTERVAL = 3600.0
# longer than anybody takes from meaning to refer to a file to doing so
SPARED_FOR = 86400.0
CHUNK = 500


class ImageUpkeep:
    """Any number of processes may run one."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._files = open_image_files(settings)

    async def run(self) -> None:
        patience = Patience(log, "image upkeep put off", also=(ArchiveError,))
        await keep_up(self.run_once, patience, every=INTERVAL)

    async def run_once(self) -> int:
        """Delete what nobody has; how many files. Also those that a clean-up died over."""
        await self._mark_all()
        async with self._database.connection() as connection:
            going = await store.select_going_files(connection)
        for content_hash, path in going:
            # the row last: until it is gone, nobody writes this file anew
            await self._files.delete(path)
            async with self._database.connection() as connection:
                await store.delete_file_row(connection, content_hash)
        if going:
            log.info("image files deleted", files=len(going))
        return len(going)

    async def _mark_all(self) -> None:
        while True:
            async with self._database.connection() as connection:
                unused = await store.select_unused_files(
                    connection, seconds=SPARED_FOR, limit=CHUNK
                )
            marked = [await self._mark(content_hash) for content_hash in unused]
            if len(unused) < CHUNK or not any(marked):
                return

    async def _mark(self, content_hash: bytes) -> bool:
        """Look again under the lock: a reference may have come since."""
        async with self._database.transaction() as connection:
            await store.lock_file(connection, content_hash)
            return await store.mark_going(connection, content_hash, seconds=SPARED_FOR)
