"""The traffic of proxies, counted in memory and stored in batches, and its cost by domain."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from forager.db.cursor import check_limit
from forager.db.database import Connection, Database
from forager.errors import DatabaseUnavailable, DiskFull, InvalidInput
from forager.extract.hosts import parent_domains
from forager.fetch.domains.store import select_first
from forager.fetch.proxies.record import cost_of, shown_address
from forager.fetch.proxies.store import usage as store
from forager.logs import get_logger

DEFAULT_DAYS = 30
MAX_DAYS = 3660
MAX_LINES = 1000


@dataclass(frozen=True, slots=True)
class CostLine:
    """The traffic of one domain through one proxy; its cost is None without a known price."""

    domain: str
    proxy_id: int
    proxy: str
    requests: int
    bytes: int
    price: str | None
    cost: Decimal | None
    currency: str | None


@dataclass(frozen=True, slots=True)
class CostReport:
    """The most expensive lines, and totals over all lines; days are whole days in UTC."""

    first: date
    last: date
    lines: list[CostLine]
    # number of lines in all
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
    """Report the last days up to today, for all domains or for the one that covers `domain`."""
    if not 1 <= days <= MAX_DAYS:
        raise InvalidInput(f"days must be 1 to {MAX_DAYS}, not {days}")
    check_limit(limit, MAX_LINES)
    async with database.transaction() as connection:
        last = await store.select_today(connection)
        first = last - timedelta(days=days - 1)
        name = None if domain is None else await _covering(connection, domain)
        rows = await store.select_usage(connection, first=first, domain=name, limit=limit)
        sums = await store.select_usage_sums(connection, first=first, domain=name)
    return CostReport(
        first,
        last,
        [_line(row) for row in rows],
        sum(each.lines for each in sums),
        sum(each.requests for each in sums),
        sum(each.bytes for each in sums),
        {each.currency: each.cost for each in sums if each.currency is not None},
    )


async def _covering(connection: Connection, host: str) -> str:
    """The domain that the traffic of a host is counted for."""
    found = await select_first(connection, [host, *parent_domains(host)])
    return host if found is None else found.domain_name


def _line(row: store.DomainUsage) -> CostLine:
    price = cost_of(row.cost_amount, row.cost_unit, row.cost_currency)
    return CostLine(
        domain=row.domain,
        proxy_id=row.proxy_id,
        proxy=shown_address(row.scheme, row.host, row.port, row.username, row.has_password),
        requests=row.requests,
        bytes=row.bytes,
        price=None if price is None else str(price),
        cost=row.cost,
        currency=row.cost_currency,
    )


log = get_logger("proxies")

WRITE_INTERVAL = 5.0
# this many pairs of host and proxy are written at once, whatever the time since the last write
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
            await self._database.run(store.add_usage, rows)
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
