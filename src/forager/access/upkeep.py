"""Upkeep in the background: answers that are no longer given again."""

from __future__ import annotations

from forager.access import store
from forager.db.database import Database
from forager.db.patience import Patience, keep_up
from forager.logs import get_logger

log = get_logger("access")

INTERVAL = 3600.0
CHUNK = 5_000
KEPT_FOR = 24 * 3600.0


class AccessUpkeep:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> None:
        await keep_up(self.run_once, Patience(log, "upkeep put off"), every=INTERVAL)

    async def run_once(self) -> int:
        """Delete answers that are older than a day, in chunks; how many."""
        deleted = 0
        while True:
            async with self._database.connection() as connection:
                some = await store.delete_expired_answers(
                    connection, older_than=KEPT_FOR, limit=CHUNK
                )
            deleted += some
            if some < CHUNK:
                return deleted
