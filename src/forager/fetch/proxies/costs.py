"""The traffic of proxies: counted in memory, stored in batches, and its cost by domain."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from forager.db.cursor import check_limit
from forager.db.database import Connection, Database
from forager.errors import InvalidInput
from forager.extract.hosts import parent_domains
from forager.fetch.domains.store import select_first
from forager.fetch.proxies.store import usage as store
from forager.fetch.proxies.store.usage import OLD_USAGE, CostLine

__all__ = ["OLD_USAGE", "CostLine"]

DEFAULT_DAYS = 30
MAX_DAYS = 3660
MAX_LINES = 1000


@dataclass(frozen=True, slots=True)
class CostReport:
    """The most expensive lines, and totals over all lines; days are whole days in UTC."""

    first: date
    last: date
    lines: list[CostLine]
    count: int
    requests: int
    bytes: int
    totals: dict[str, Decimal]

    @property
    def is_cut(self) -> bool:
        return self.count > len(self.lines)


async def report_costs(
    database: Database, *, days: int = DEFAULT_DAYS, domain: str | None = None, limit: int = 100
) -> CostReport:
    """Report the last days until today, for all domains or for the one that applies to `domain`."""
    if not 1 <= days <= MAX_DAYS:
        raise InvalidInput(f"days must be 1 to {MAX_DAYS}, not {days}")
    check_limit(limit, MAX_LINES)
    async with database.transaction() as connection:
        last = await store.select_today(connection)
        first = last - timedelta(days=days - 1)
        name = None if domain is None else await _covering(connection, domain)
        lines = await store.select_usage(connection, first=first, domain=name, limit=limit)
        sums = await store.select_usage_sums(connection, first=first, domain=name)
    return CostReport(
        first,
        last,
        lines,
        sum(each.lines for each in sums),
        sum(each.requests for each in sums),
        sum(each.bytes for each in sums),
        {each.currency: each.cost for each in sums if each.currency is not None},
    )


async def _covering(connection: Connection, host: str) -> str:
    """The domain to which the traffic of a host is attributed."""
    found = await select_first(connection, [host, *parent_domains(host)])
    return host if found is None else found.domain_name


WRITE_INTERVAL = 5.0
# with this many pairs of host and proxy, counts are written at once
MOST_WAITING = 5_000


class UsageLog:
    """Requests and bytes by host and proxy until they are written."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._requests: Counter[tuple[str, int]] = Counter()
        self._bytes: Counter[tuple[str, int]] = Counter()
        self._written_at = time.monotonic()

    def add(self, proxy_id: int, host: str, size: int) -> None:
        self._requests[host, proxy_id] += 1
        self._bytes[host, proxy_id] += size

    @property
    def is_due(self) -> bool:
        waited = time.monotonic() - self._written_at
        return waited >= WRITE_INTERVAL or len(self._requests) >= MOST_WAITING

    async def run_once(self) -> None:
        """Add the counts to those of today."""
        requests, self._requests = self._requests, Counter()
        sizes, self._bytes = self._bytes, Counter()
        self._written_at = time.monotonic()
        if not requests:
            return
        try:
            await self._database.run(store.add_usage, requests, sizes)
        except BaseException:
            self._requests.update(requests)
            self._bytes.update(sizes)
            raise
