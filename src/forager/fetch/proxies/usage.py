"""How much of its traffic each domain sends through each proxy, counted here, written in batches.

What is counted is written every few seconds and when the pool is left. A process that is killed
loses what it has not written; one whose commit was answered by nobody writes it again. So the
numbers are near enough to share a bill by, and are no proof of what was fetched: that is the
ledger of a crawl, and the attempts of a task.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from forager.db.database import Database
from forager.errors import DatabaseUnavailable, DiskFull
from forager.extract.hosts import parent_domains
from forager.fetch.proxies import usage_store as store
from forager.logs import get_logger

log = get_logger("proxies")

WRITE_INTERVAL = 5.0
# so many pairs of host and proxy are written at once, however long that is from the last time
MOST_WAITING = 5_000


@dataclass(slots=True)
class Usage:
    requests: int = 0
    bytes: int = 0

    def add(self, other: Usage) -> None:
        self.requests += other.requests
        self.bytes += other.bytes


class UsageLog:
    """Counts by host and proxy until they are written."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counts: dict[tuple[str, int], Usage] = {}
        self._written_at = time.monotonic()

    def add(self, proxy_id: int, host: str, size: int) -> None:
        self._counts.setdefault((host, proxy_id), Usage()).add(Usage(1, size))

    @property
    def is_due(self) -> bool:
        waited = time.monotonic() - self._written_at
        return waited >= WRITE_INTERVAL or len(self._counts) >= MOST_WAITING

    async def run_once(self) -> None:
        """Add the counts to those of today."""
        counts, self._counts = self._counts, {}
        self._written_at = time.monotonic()
        if not counts:
            return
        rows = [
            store.NewUsage((host, *parent_domains(host)), proxy_id, usage.requests, usage.bytes)
            for (host, proxy_id), usage in counts.items()
        ]
        try:
            async with self._database.connection() as connection:
                await store.add_usage(connection, rows)
        except BaseException:
            self._take_back(counts)
            raise

    async def write_if_possible(self) -> None:
        try:
            await self.run_once()
        except (DatabaseUnavailable, DiskFull) as error:
            log.warning("the use of proxies cannot be written now", reason=error.message)

    def _take_back(self, counts: dict[tuple[str, int], Usage]) -> None:
        for pair, usage in counts.items():
            self._counts.setdefault(pair, Usage()).add(usage)
