"""Records the responses of hosts: counted in memory, stored every few seconds."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import psycopg

from forager.db.database import Database
from forager.errors import DatabaseUnavailable, error_text
from forager.fetch.domains.service import Domains
from forager.fetch.host_history import store
from forager.fetch.host_history.store import OLD_MINUTES, HostCounts, HostMinute
from forager.logs import get_logger

__all__ = ["OLD_MINUTES", "HostMinute"]

log = get_logger("hosts")

WRITE_INTERVAL = 5.0


class HostRecorder:
    """The counts of one process. What a killed process had not written yet is lost."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counts: dict[int, HostCounts] = {}

    def add(
        self, domain_id: int, *, status: int | None, seconds: float = 0.0, delay: float = 0.0
    ) -> None:
        """Count a request; `status` is None if it got no answer."""
        counts = self._counts.setdefault(domain_id, HostCounts(domain_id))
        counts.requests += 1
        counts.delay = max(counts.delay, delay)
        if status is None:
            counts.unanswered += 1
            return
        counts.seconds += seconds
        counts.redirects += 300 <= status < 400
        counts.client_errors += 400 <= status < 500
        counts.server_errors += status >= 500

    async def run(self) -> None:
        """Write every few seconds until canceled."""
        while True:
            await asyncio.sleep(WRITE_INTERVAL)
            with suppress(DatabaseUnavailable):
                await self.write()

    async def write(self) -> None:
        """Store the counts. They are statistics: those that cannot be stored are dropped."""
        counts, self._counts = self._counts, {}
        if not counts:
            return
        try:
            await self._database.run(store.add_counts, list(counts.values()))
        except psycopg.Error as error:
            log.warning("counts of hosts are not stored", reason=error_text(error))


async def host_minutes(database: Database, host: str, *, minutes: int) -> list[HostMinute]:
    """The last minutes of the domain that applies to a host, the oldest first."""
    domain = await Domains(database).get(host)
    return await database.run(store.select_minutes, domain.id, minutes=minutes)
