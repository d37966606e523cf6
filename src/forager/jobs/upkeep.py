"""Upkeep in the background: old jobs go, and the names of workers that died."""

from __future__ import annotations

from forager.db.database import Database
from forager.db.patience import Patience, keep_up
from forager.jobs import workers
from forager.jobs.queue import Queue
from forager.logs import get_logger
from forager.settings import Settings

log = get_logger("upkeep")

INTERVAL = 3600.0
# how long a worker that died without a word stays in the list
WORKER_MEMORY = 24 * 3600.0


class Upkeep:
    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._queue = Queue(database, settings)

    async def run(self) -> None:
        await keep_up(self.run_once, Patience(log, "upkeep put off"), every=INTERVAL)

    async def run_once(self) -> int:
        deleted = await self._queue.prune()
        if deleted:
            log.info("old jobs deleted", jobs=deleted)
        async with self._database.connection() as connection:
            await workers.delete_gone(connection, older_than=WORKER_MEMORY)
        return deleted
