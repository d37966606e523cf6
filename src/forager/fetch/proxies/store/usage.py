"""SQL of the traffic of proxies, added up by day, domain and proxy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import LiteralString

from forager.db.database import Connection
from forager.db.retention import OldRows
from forager.db.rows import RowArrays, Rows, Values
from forager.extract.hosts import parent_domains
from forager.fetch.proxies.proxy import cost_of, shown_address

# names: the host and its parent domains; the traffic counts for the nearest with a row
_NEW = RowArrays("n", names="text", proxy_id="bigint", requests="bigint", bytes="bigint")


@dataclass(frozen=True, slots=True)
class CostLine:
    """The traffic of one domain through one proxy; its cost is None without a known price."""

    domain: str
    proxy_id: int
    scheme: str
    host: str
    port: int
    username: str | None
    has_password: bool
    requests: int
    bytes: int
    cost_amount: Decimal | None
    cost_unit: str | None
    currency: str | None
    cost: Decimal | None

    @property
    def proxy(self) -> str:
        """The address as it is shown: without the password."""
        return shown_address(self.scheme, self.host, self.port, self.username, self.has_password)

    @property
    def price(self) -> str | None:
        """The price as it was given, such as `4 EUR/GB`."""
        price = cost_of(self.cost_amount, self.cost_unit, self.currency)
        return None if price is None else str(price)


@dataclass(frozen=True, slots=True)
class CurrencySum:
    """Sums over all lines in one currency; None: lines without a known price."""

    currency: str | None
    lines: int
    requests: int
    bytes: int
    cost: Decimal


_USED: LiteralString = """
    SELECT u.domain_name AS domain, u.proxy_id,
           sum(u.requests)::bigint AS requests, sum(u.bytes)::bigint AS bytes
      FROM proxy_usage u
     WHERE u.day >= %(first)s AND (%(domain)s::text IS NULL OR u.domain_name = %(domain)s)
     GROUP BY u.domain_name, u.proxy_id
"""

_COST: LiteralString = """
    round(p.cost_amount * CASE p.cost_unit
        WHEN 'request' THEN u.requests
        WHEN 'GB' THEN u.bytes / 1000000000.0
    END, 4)
"""


async def add_usage(
    connection: Connection,
    requests: Mapping[tuple[str, int], int],
    sizes: Mapping[tuple[str, int], int],
) -> None:
    """Add requests and bytes by host and proxy to those of today; removed proxies are dropped."""
    await connection.execute(
        f"""
        WITH counted AS (
            SELECT coalesce(covering.domain_name, split_part(n.names, ' ', 1)) AS domain_name,
                   n.proxy_id, sum(n.requests) AS requests, sum(n.bytes) AS bytes
              FROM {_NEW}
              LEFT JOIN LATERAL (
                   SELECT d.domain_name
                     FROM domains d
                    WHERE d.domain_name = ANY(string_to_array(n.names, ' '))
                    ORDER BY length(d.domain_name) DESC
                    LIMIT 1
              ) AS covering ON true
             GROUP BY 1, 2
        ), kept AS MATERIALIZED (
            SELECT p.id
              FROM proxies p
             WHERE p.id IN (SELECT proxy_id FROM counted)
             ORDER BY p.id
               FOR KEY SHARE
        )
        INSERT INTO proxy_usage AS u (day, domain_name, proxy_id, requests, bytes)
        SELECT (now() AT TIME ZONE 'UTC')::date, t.domain_name, t.proxy_id, t.requests, t.bytes
          FROM counted t JOIN kept ON kept.id = t.proxy_id
         -- in one order, so that two writers cannot wait for each other
         ORDER BY t.domain_name, t.proxy_id
            ON CONFLICT (day, domain_name, proxy_id) DO UPDATE
           SET requests = u.requests + excluded.requests,
               bytes = u.bytes + excluded.bytes,
               updated_at = now()
        """,
        _NEW.values(
            (),
            names=[" ".join((host, *parent_domains(host))) for host, _ in requests],
            proxy_id=[proxy_id for _, proxy_id in requests],
            requests=list(requests.values()),
            bytes=[sizes[pair] for pair in requests],
        ),
    )


async def select_today(connection: Connection) -> date:
    """The day in UTC, by the clock of the server."""
    return await Values(connection, date).one("SELECT (now() AT TIME ZONE 'UTC')::date")


async def select_usage(
    connection: Connection, *, first: date, domain: str | None, limit: int
) -> list[CostLine]:
    """Usage since a day by domain and proxy, the most expensive lines first."""
    return await Rows(connection, CostLine).all(
        f"""
        SELECT u.domain, u.proxy_id, p.proxy_protocol AS scheme, p.proxy_url AS host,
               p.proxy_port AS port, p.proxy_username AS username,
               p.proxy_password IS NOT NULL AS has_password, u.requests, u.bytes,
               p.cost_amount, p.cost_unit, p.cost_currency AS currency, {_COST} AS cost
          FROM ({_USED}) AS u
          JOIN proxies p ON p.id = u.proxy_id
         ORDER BY cost DESC NULLS LAST, u.bytes DESC, u.requests DESC, u.domain, u.proxy_id
         LIMIT %(limit)s
        """,
        {"first": first, "domain": domain, "limit": limit},
    )


async def select_usage_sums(
    connection: Connection, *, first: date, domain: str | None
) -> list[CurrencySum]:
    """Requests, bytes and costs since a day, by currency."""
    return await Rows(connection, CurrencySum).all(
        f"""
        SELECT p.cost_currency AS currency, count(*) AS lines,
               sum(u.requests)::bigint AS requests, sum(u.bytes)::bigint AS bytes,
               coalesce(sum({_COST}), 0) AS cost
          FROM ({_USED}) AS u
          JOIN proxies p ON p.id = u.proxy_id
         GROUP BY p.cost_currency
         ORDER BY p.cost_currency
        """,
        {"first": first, "domain": domain},
    )


OLD_USAGE = OldRows(
    "proxy_usage", "t.day < (now() AT TIME ZONE 'UTC')::date - %(days)s::float8::int", "t.day"
)
