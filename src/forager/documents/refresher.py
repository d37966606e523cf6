"""Scheduled refreshes in the background: what is due goes through the queue.

An owner who has no room for one now gets it later: it is put off and not left out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from forager.db.database import Database
from forager.documents import sources, store
from forager.documents.generation import Schedule, Source
from forager.errors import InvalidInput, NotAllowed, NotFound, NotYet
from forager.jobs.queue import Enqueued
from forager.logs import get_logger
from forager.services.service import UNAVAILABLE, Service, isolated
from forager.settings import Settings

log = get_logger("refresh")

INTERVAL = 15.0
AT_ONCE = 100
# room may come sooner than was said, and a look costs little
PUT_OFF = (60, 1800)
# for a source that cannot be refreshed because of a fault in its row
FAULT_DELAY = timedelta(hours=1)

# whether its owner may, is asked by whoever starts it
Start = Callable[[Database, Settings, Source], Awaitable[Enqueued]]


class Refresher:
    """Any number of processes may run one: a refresh that is asked for twice is done once."""

    def __init__(self, database: Database, settings: Settings, start: Start) -> None:
        self._database = database
        self._settings = settings
        self._start = start

    def service(self) -> Service:
        return Service(name="source refresh", every=INTERVAL, step=self.run_once, chunk=AT_ONCE)

    async def run_once(self) -> int:
        """Enqueue what is due; how many refreshes that were."""
        async with self._database.connection() as connection:
            now = await store.select_now(connection)
            due = await store.select_due(connection, AT_ONCE)
        created = 0
        for source_id, since in due:
            with isolated(f"source {source_id}"):
                created += await self._refresh_or_postpone(source_id, since, now)
        return created

    async def _refresh_or_postpone(self, source_id: str, since: datetime, now: datetime) -> bool:
        """A source that fails waits, so that it cannot take the turn of others each time."""
        try:
            return await self._refresh(source_id, since, now)
        except UNAVAILABLE:
            raise
        except Exception:
            async with self._database.connection() as connection:
                await store.advance(connection, source_id, since, now + FAULT_DELAY)
            raise

    async def _refresh(self, source_id: str, since: datetime, now: datetime) -> bool:
        """Whether a job was made; in any case, move on to the next time."""
        try:
            source = await sources.get_source(self._database, source_id)
        except NotFound:
            return False  # deleted at this moment
        following = Schedule(source.refresh_every, source.refresh_cron).after(now)
        created = False
        try:
            # Enqueued first: if this process dies in between, the next look finds the job there.
            created = await self._enqueue(source)
        except NotYet as lack:
            following = _later(source, now, lack)
        async with self._database.connection() as connection:
            await store.advance(connection, source_id, since, following)
        return created

    async def _enqueue(self, source: Source) -> bool:
        try:
            return (await self._start(self._database, self._settings, source)).created
        except NotYet:
            raise
        except (InvalidInput, NotAllowed) as error:
            # its options are not valid any more: the others must not wait until somebody sees to it
            log.error("cannot be refreshed", source=source.id, reason=error.message)
            return False


def _later(source: Source, now: datetime, lack: NotYet) -> datetime:
    least, most = PUT_OFF
    wait = timedelta(seconds=min(max(least, lack.retry_after), most))
    log.warning("a refresh is put off", source=source.id, until=now + wait, reason=lack.message)
    return now + wait
