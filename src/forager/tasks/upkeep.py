"""Upkeep in the background: what is kept by its age goes when it is old."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from forager.db.database import Connection, Database
from forager.db.patience import Patience, keep_up
from forager.fetch.proxies.usage_store import delete_old_usage
from forager.logs import get_logger
from forager.parsers.store.rates import delete_old_rates
from forager.settings import Settings
from forager.tasks.store import upkeep as store
from forager.webhooks.store.events import delete_old_events

log = get_logger("tasks")

INTERVAL = 3600.0
CHUNK = 10_000


class TaskUpkeep:
    def __init__(self, database: Database, settings: Settings, *, chunk: int = CHUNK) -> None:
        self._database = database
        self._days = settings.history_days
        self._chunk = chunk

    async def run(self) -> None:
        await keep_up(self.run_once, Patience(log, "upkeep put off"), every=INTERVAL)

    async def run_once(self) -> int:
        """Delete what is older than the history that is wanted; how many rows."""
        days, limit = self._days, self._chunk
        deleted = await self._all(partial(delete_old_events, days=days, limit=limit))
        for ageing in store.AGEING:
            deleted += await self._all(
                partial(store.delete_old, ageing=ageing, days=days, limit=limit)
            )
        deleted += await self._all(partial(delete_old_rates, days=days, limit=limit))
        deleted += await self._all(partial(delete_old_usage, days=days, limit=limit))
        if deleted:
            log.info("old history of tasks deleted", rows=deleted)
        return deleted

    async def _all(self, delete: Callable[[Connection], Awaitable[int]]) -> int:
        """Chunk by chunk, each with a connection of its own: others want one too."""
        deleted = 0
        while True:
            async with self._database.connection() as connection:
                rows = await delete(connection)
            deleted += rows
            if rows < self._chunk:
                return deleted
