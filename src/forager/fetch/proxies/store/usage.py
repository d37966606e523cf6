"""The SQL of what went through proxies: added up by day, domain and proxy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import LiteralString

from forager.db.database import Connection
from forager.db.rows import Rows


@dataclass(frozen=True, slots=True)
class NewUsage:
    """`names`: the host, and the domains above it; it counts for the nearest that has a row."""

    names: tuple[str, ...]
    proxy_id: int
    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class DomainUsage:
    """The traffic of one domain through one proxy, with the price of the proxy."""

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
    cost_currency: str | None
    cost: Decimal | None


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


async def add_usage(connection: Connection, rows: Sequence[NewUsage]) -> None:
    """Add to the counts of today; those of a proxy that was removed meanwhile are dropped."""
    await connection.execute(
        """
        WITH told AS (
            SELECT coalesce(covering.domain_name, split_part(n.names, ' ', 1)) AS domain_name,
                   n.proxy_id, sum(n.requests) AS requests, sum(n.bytes) AS bytes
              FROM unnest(%(names)s::text[], %(proxies)s::bigint[], %(requests)s::bigint[],
                          %(bytes)s::bigint[]) AS n (names, proxy_id, requests, bytes)
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
             WHERE p.id IN (SELECT proxy_id FROM told)
             ORDER BY p.id
               FOR KEY SHARE
        )
        INSERT INTO proxy_usage AS u (day, domain_name, proxy_id, requests, bytes)
        SELECT (now() AT TIME ZONE 'UTC')::date, t.domain_name, t.proxy_id, t.requests, t.bytes
          FROM told t JOIN kept ON kept.id = t.proxy_id
         -- in one order, so that two writers cannot wait for each other
         ORDER BY t.domain_name, t.proxy_id
            ON CONFLICT (day, domain_name, proxy_id) DO UPDATE
           SET requests = u.requests + excluded.requests,
               bytes = u.bytes + excluded.bytes,
               updated_at = now()
        """,
        {
            "names": [" ".join(row.names) for row in rows],
            "proxies": [row.proxy_id for row in rows],
            "requests": [row.requests for row in rows],
            "bytes": [row.bytes for row in rows],
        },
    )


async def select_today(connection: Connection) -> date:
    cursor = await connection.execute("SELECT (now() AT TIME ZONE 'UTC')::date")
    row = await cursor.fetchone()
    assert row is not None
    today: date = row[0]
    return today


async def select_usage(
    connection: Connection, *, first: date, domain: str | None, limit: int
) -> list[DomainUsage]:
    """Usage since a day by domain and proxy, the most expensive lines first."""
    return await Rows(connection, DomainUsage).all(
        f"""
        SELECT u.domain, u.proxy_id, p.proxy_protocol AS scheme, p.proxy_url AS host,
               p.proxy_port AS port, p.proxy_username AS username,
               p.proxy_password IS NOT NULL AS has_password, u.requests, u.bytes,
               p.cost_amount, p.cost_unit, p.cost_currency, {_COST} AS cost
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


async def delete_old_usage(connection: Connection, *, days: float, limit: int) -> int:
    cursor = await connection.execute(
        """
        DELETE FROM proxy_usage
         WHERE id IN (
            SELECT id FROM proxy_usage
             WHERE day < (now() AT TIME ZONE 'UTC')::date - %s::float8::int
             ORDER BY day LIMIT %s
         )
        """,
        (days, limit),
    )
    return cursor.rowcount
