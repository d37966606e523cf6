"""Upkeep in the background: segments go when nothing needs them, or when a limit is passed."""

from __future__ import annotations

from forager.archive.deletion import Pruned, plan_prune, prune
from forager.archive.errors import ArchiveError
from forager.archive.options import archive_options
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
        plan = await plan_prune(self._database, self._options.policy)
        pruned = await prune(self._database, self._options.open(), plan.delete)
        if pruned.deleted:
            log.info(
                "archive segments deleted", segments=len(pruned.deleted), bytes=pruned.freed_bytes
            )
        return pruned
