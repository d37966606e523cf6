"""What the proxies cost, domain by domain."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from decimal import Decimal

from forager.db.database import Connection, Database
from forager.errors import InvalidInput
from forager.extract.hosts import parent_domains
from forager.fetch.domains.store import select_first
from forager.fetch.proxies import usage_store as store
from forager.fetch.proxies.cost import ProxyCost, Share, Traffic, shares
from forager.fetch.proxies.record import cost_of, shown_address
from forager.fetch.proxies.usage_store import UsageSum, UsedProxy

DEFAULT_DAYS = 30
MOST_DAYS = 3660
MAX_LINES = 1000


@dataclass(frozen=True, slots=True)
class CostLine:
    """What one domain sent through one proxy, and has to pay for it; None: nobody knows.

    Without a domain it is the price of a month in which the proxy was not used.
    """

    domain: str | None
    proxy_id: int
    proxy: str
    requests: int
    bytes: int
    price: str | None
    cost: Decimal | None
    currency: str | None


@dataclass(frozen=True, slots=True)
class CostReport:
    """The dearest lines, and what all of them come to; days are whole ones, in UTC."""

    first: date
    last: date
    lines: list[CostLine]
    # how many lines there are in all
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
    """The last so many days, today among them; with `domain`, the lines of the one that applies."""
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(f"costs are told of 1 to {MOST_DAYS} days, not of {days}")
    if not 1 <= limit <= MAX_LINES:
        raise InvalidInput(f"limit must be 1 to {MAX_LINES}, not {limit}")
    async with database.transaction() as connection:
        last = await store.select_today(connection)
        first = last - timedelta(days=days - 1)
        bill = _Bill(first, last, limit)
        domain = None if domain is None else await _applying(connection, domain)
        async with aclosing(_by_proxy(connection, first, domain)) as found:
            async for proxy, used in found:
                lines = _lines(proxy, used, first, last)
                bill.add(line for line in lines if _is_asked(line, domain))
    return bill.report()


async def _applying(connection: Connection, host: str) -> str:
    """What the traffic of a host was counted for."""
    found = await select_first(connection, [host, *parent_domains(host)])
    return host if found is None else found.domain_name


class _Bill:
    """Sums of all lines, of which only the dearest are kept."""

    def __init__(self, first: date, last: date, limit: int) -> None:
        self._first, self._last, self._limit = first, last, limit
        self._lines: list[CostLine] = []
        self._count = self._requests = self._bytes = 0
        self._totals: defaultdict[str, Decimal] = defaultdict(Decimal)

    def add(self, lines: Iterable[CostLine]) -> None:
        new = list(lines)
        self._lines = heapq.nlargest(self._limit, [*self._lines, *new], key=_dearness)
        self._count += len(new)
        for line in new:
            self._requests += line.requests
            self._bytes += line.bytes
            if line.cost is not None and line.currency is not None:
                self._totals[line.currency] += line.cost

    def report(self) -> CostReport:
        return CostReport(
            self._first,
            self._last,
            self._lines,
            self._count,
            self._requests,
            self._bytes,
            dict(sorted(self._totals.items())),
        )


async def _by_proxy(
    connection: Connection, first: date, domain: str | None
) -> AsyncGenerator[tuple[UsedProxy, list[UsageSum]]]:
    """Every proxy with what went through it, also if that is nothing; one at a time in memory."""
    proxies = iter(await store.select_proxies(connection))
    proxy, used = next(proxies, None), list[UsageSum]()
    async with aclosing(store.stream_usage(connection, first=first, domain=domain)) as rows:
        async for row in rows:
            while proxy is not None and proxy.id < row.proxy_id:
                yield proxy, used
                proxy, used = next(proxies, None), []
            # it may have been added since the proxies were read
            if proxy is not None and proxy.id == row.proxy_id:
                used.append(row)
    while proxy is not None:
        yield proxy, used
        proxy, used = next(proxies, None), []


def _lines(proxy: UsedProxy, used: list[UsageSum], first: date, last: date) -> Iterable[CostLine]:
    cost = cost_of(proxy.cost_amount, proxy.cost_unit, proxy.cost_currency)
    since = max(first, proxy.created_at.astimezone(UTC).date())
    address = shown_address(
        proxy.scheme, proxy.host, proxy.port, proxy.username, proxy.has_password
    )
    for share in _shares(cost, used, since, last):
        yield CostLine(
            domain=share.domain,
            proxy_id=proxy.id,
            proxy=address,
            requests=share.requests,
            bytes=share.bytes,
            price=None if cost is None else str(cost),
            cost=None if cost is None else share.cost,
            currency=None if cost is None else cost.currency,
        )


def _shares(cost: ProxyCost | None, used: list[UsageSum], first: date, last: date) -> list[Share]:
    traffic = [Traffic(row.domain, row.requests, row.bytes) for row in used]
    if cost is None:
        return [Share(each.domain, each.requests, each.bytes, Decimal(0)) for each in traffic]
    return shares(cost, traffic, first, last)


def _is_asked(line: CostLine, domain: str | None) -> bool:
    return domain is None or line.domain == domain


def _dearness(line: CostLine) -> tuple[Decimal, int, int, str]:
    return line.cost or Decimal(0), line.bytes, line.requests, line.domain or ""
