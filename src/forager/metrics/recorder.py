"""The recorder: adds what this process has recorded to the database, at every heartbeat.

It opens a separate connection for each addition, so that its errors affect nothing else. A killed
process loses its values since the last addition. An addition that was written, but not confirmed,
is repeated under the same number, and counts once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import isfinite

from forager.db.database import Database, SessionLimits
from forager.db.ids import new_id
from forager.db.outages import Outage
from forager.logs import get_logger
from forager.metrics import store
from forager.metrics.catalog import METERS
from forager.metrics.meters import Key, Meter, take_all
from forager.services.service import Service
from forager.services.supervisor import running
from forager.settings import Settings

log = get_logger("metrics")

LIMITS = SessionLimits(
    statement_ms=5_000, lock_ms=2_000, idle_in_transaction_ms=5_000, answer_ms=8_000
)
LAST_WRITE_LIMIT = 2.0
# a writer that was silent for this long does not repeat an addition
SILENT_AFTER = 86_400.0


class Recorder:
    """Any number of them may run, in one process or in many."""

    def __init__(
        self, database: Database, settings: Settings, *, meters: Sequence[Meter] = METERS
    ) -> None:
        self._server = database
        self._every = settings.heartbeat_interval
        self._meters = meters
        self._writer = new_id()
        self._addition = 0
        self._unanswered: dict[Key, float] = {}
        self._outage = Outage(log, "metrics are kept back")

    def service(self) -> Service:
        return Service(name="metrics", every=self._every, step=self.run_once)

    async def run_once(self) -> None:
        """Add what was not answered the last time, then what came since."""
        if self._unanswered:
            await self._add()
        # the table refuses NaN and infinity, and with one value it would refuse all
        taken = take_all(self._meters)
        self._unanswered = {key: value for key, value in taken.items() if isfinite(value)}
        if self._unanswered:
            self._addition += 1
            await self._add()

    async def end(self) -> None:
        """The last addition; what cannot be added now is lost."""
        with self._outage:
            await self.run_once()
            if self._addition:
                async with self._database() as database, database.connection() as connection:
                    await store.delete_writer(connection, self._writer)

    async def _add(self) -> None:
        async with self._database() as database, database.connection() as connection:
            if self._addition == 1:
                await store.delete_silent_writers(connection, older_than=SILENT_AFTER)
            await store.add_values(connection, self._writer, self._addition, self._unanswered)
        self._unanswered = {}

    def _database(self) -> Database:
        """A connection for one addition only: a server has few, and this one would mostly idle."""
        return self._server.with_own_pool(name="forager metrics", limits=LIMITS, max_size=1)


@asynccontextmanager
async def recording(database: Database, settings: Settings) -> AsyncIterator[None]:
    """Add this process's metrics for as long as the block runs, and once more at its end."""
    recorder = Recorder(database, settings)
    try:
        async with running([recorder.service()]):
            yield
    finally:
        try:
            async with asyncio.timeout(LAST_WRITE_LIMIT):
                await recorder.end()
        except TimeoutError:
            log.warning("the last metrics of this process are lost")
