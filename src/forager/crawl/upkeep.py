"""Upkeep in the background: the rows of crawls whose job is gone. They have no cascade."""

from __future__ import annotations

from forager.crawl import store
from forager.db.database import Database
from forager.db.patience import Patience, keep_up
from forager.logs import get_logger

log = get_logger("crawl")

INTERVAL = 600.0
CHUNK = 10_000


class CrawlUpkeep:
    def __init__(self, database: Database, *, chunk: int = CHUNK) -> None:
        self._database = database
        self._chunk = chunk

    async def run(self) -> None:
        await keep_up(self.run_once, Patience(log, "upkeep put off"), every=INTERVAL)

    async def run_once(self) -> int:
        """Delete what jobs left behind, in chunks that hold nothing up; how many rows."""
        deleted = 0
        async with self._database.connection() as connection:
            orphans = await store.select_orphaned_jobs(connection)
        for job_id in orphans:
            while True:
                # a connection of its own for each chunk: others want one too
                async with self._database.connection() as connection:
                    rows = await store.purge(connection, job_id, limit=self._chunk)
                if not rows:
                    break
                deleted += rows
        if deleted:
            log.info("rows of old crawls deleted", rows=deleted, crawls=len(orphans))
        return deleted
