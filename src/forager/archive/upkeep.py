"""Upkeep in the background: segments go when nothing needs them, or when a limit is passed.

In an object store, small ones become larger ones.
"""

from __future__ import annotations

from forager.archive.deletion import Pruned, plan_prune, prune
from forager.archive.errors import ArchiveError
from forager.archive.options import archive_options
from forager.archive.storage import Storage
from forager.db.database import Database
from forager.db.patience import Patience, keep_up
from forager.logs import get_logger
from forager.settings import Settings

log = get_logger("archive")

INTERVAL = 3600.0


class ArchiveUpkeep:
    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._options = archive_options(settings)

    async def run(self) -> None:
        patience = Patience(log, "archive upkeep put off", also=(ArchiveError,))
        await keep_up(self.run_once, patience, every=INTERVAL)

    async def run_once(self) -> Pruned:
        storage = self._options.open()
        if self._options.in_bucket:
            await self._merge(storage)
        plan = await plan_prune(self._database, self._options.policy)
        pruned = await prune(self._database, storage, plan.delete)
        if pruned.deleted:
            log.info(
                "archive segments deleted", segments=len(pruned.deleted), bytes=pruned.freed_bytes
            )
        return pruned

    async def _merge(self, storage: Storage) -> None:
        from forager.archive.merging import merge_segments

        merged = await merge_segments(self._database, storage, self._options.segment_bytes)
        if merged.into:
            log.info("archive segments merged", segments=merged.segments, into=merged.into)
