"""Upkeep in the background: old jobs go, and the names of workers that died."""

from __future__ import annotations

import asyncio
import random

import psycopg

from forager.db.database import Database
from forager.errors import DatabaseUnavailable, DiskFull
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
        """Once per hour, at a random minute, so that workers do not all come at once."""
        while True:
            await asyncio.sleep(INTERVAL * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
            try:
                await self.run_once()
            except (DatabaseUnavailable, DiskFull, psycopg.Error) as error:
                log.warning("upkeep put off", reason=str(error))

    async def run_once(self) -> int:
        deleted = await self._queue.prune()
        if deleted:
            log.info("old jobs deleted", jobs=deleted)
        async with self._database.connection() as connection:
            await workers.delete_gone(connection, older_than=WORKER_MEMORY)
        return deleted
