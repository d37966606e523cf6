"""Where PostgreSQL answers alone, what was kept for a search engine goes."""

from __future__ import annotations

from forager.db.database import Database
from forager.db.patience import Patience, keep_up
from forager.index.store import indexes, messages
from forager.logs import get_logger

log = get_logger("index")

INTERVAL = 600.0
# other workers may have the engine switched on: one that was not seen for so long has not
UNFED_FOR = 3600.0
CHUNK = 5_000


class IndexUpkeep:
    """Any number of processes may run one."""

    def __init__(self, database: Database, *, unfed_for: float = UNFED_FOR) -> None:
        self._database = database
        self._unfed_for = unfed_for

    async def run(self) -> None:
        patience = Patience(log, "upkeep of the search index put off")
        await keep_up(self.run_once, patience, every=INTERVAL)

    async def run_once(self) -> int:
        """Forget indexes that nobody feeds, and what they have not been told; how many messages."""
        async with self._database.connection() as connection:
            for kind in await indexes.delete_unfed(connection, self._unfed_for):
                log.info("the search engine is switched off, its index is forgotten", kind=kind)
        total = 0
        while True:
            async with self._database.connection() as connection:
                done = await messages.delete_orphans(connection, CHUNK)
            total += done
            if done < CHUNK:
                return total
