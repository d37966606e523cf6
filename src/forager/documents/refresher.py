"""Scheduled refreshes in the background: what is due goes through the queue."""

from __future__ import annotations

from datetime import datetime

from forager.db.database import Database
from forager.db.patience import Patience, keep_up
from forager.documents import sources, store
from forager.documents.generation import Source
from forager.documents.schedule import Schedule
from forager.errors import InvalidInput, NotFound
from forager.jobs.queue import Queue
from forager.logs import get_logger
from forager.settings import Settings

log = get_logger("refresh")

INTERVAL = 15.0
AT_ONCE = 100
ACTOR = "schedule"


class Refresher:
    """Any number of processes may run one: a refresh that is asked for twice is done once."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._queue = Queue(database, settings)

    async def run(self) -> None:
        await keep_up(self.run_once, Patience(log, "refreshes put off"), every=INTERVAL)

    async def run_once(self) -> int:
        """Enqueue what is due; how many refreshes that were."""
        async with self._database.connection() as connection:
            now = await store.select_now(connection)
            due = await store.select_due(connection, AT_ONCE)
        return sum([await self._refresh(source_id, since, now) for source_id, since in due])

    async def _refresh(self, source_id: str, since: datetime, now: datetime) -> bool:
        """Whether a job was made; in any case, move on to the next time."""
        try:
            source = await sources.get_source(self._database, source_id)
        except NotFound:
            return False  # deleted at this moment
        # Enqueued first: if this process dies in between, the next look finds the job there.
        created = await self._enqueue(source)
        following = Schedule(source.refresh_every, source.refresh_cron).after(now)
        async with self._database.connection() as connection:
            await store.advance(connection, source_id, since, following)
        return created

    async def _enqueue(self, source: Source) -> bool:
        try:
            return (await sources.enqueue_refresh(self._queue, source, actor=ACTOR)).created
        except InvalidInput as error:
            # its options are not valid any more: the others must not wait until somebody sees to it
            log.error("cannot be refreshed", source=source.id, reason=error.message)
            return False


async def run_due_refreshes(database: Database, settings: Settings) -> int:
    """Look once for refreshes that are due."""
    return await Refresher(database, settings).run_once()
