"""Upkeep in the background: finished jobs go when they are old enough."""

from __future__ import annotations

import asyncio
import random

from forager.errors import DatabaseUnavailable, DiskFull
from forager.jobs.queue import Queue
from forager.logs import get_logger

log = get_logger("upkeep")

INTERVAL = 3600.0


class Upkeep:
    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    async def run(self) -> None:
        """Once per hour, at a random minute, so that workers do not all come at once."""
        while True:
            await asyncio.sleep(INTERVAL * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
            try:
                await self.run_once()
            except (DatabaseUnavailable, DiskFull) as error:
                log.warning("upkeep put off", reason=error.message)

    async def run_once(self) -> int:
        deleted = await self._queue.prune()
        if deleted:
            log.info("old jobs deleted", jobs=deleted)
        return deleted
