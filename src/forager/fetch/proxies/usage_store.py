"""The SQL of what went through proxies: added up by day, domain and proxy."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from psycopg.rows import class_row

from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class NewUsage:
    """`names`: the host, and the domains above it; it counts for the nearest that has a row."""

    names: tuple[str, ...]
    proxy_id: int
    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class UsedProxy:
    """A proxy as a bill names it."""

    id: int
    scheme: str
    host: str
    port: int
    username: str | None
    has_password: bool
    created_at: datetime
    cost_amount: Decimal | None
    cost_unit: str | None
    cost_currency: str | None


@dataclass(frozen=True, slots=True)
class UsageSum:
    """What went through a proxy for one domain; None: for all others together."""

    proxy_id: int
    domain: str | None
    requests: int
    bytes: int


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


async def select_proxies(connection: Connection) -> list[UsedProxy]:
    cursor = connection.cursor(row_factory=class_row(UsedProxy))
    await cursor.execute(
        """
        SELECT id, proxy_protocol AS scheme, proxy_url AS host, proxy_port AS port,
               proxy_username AS username, proxy_password IS NOT NULL AS has_password, created_at,
               cost_amount, cost_unit, cost_currency
          FROM proxies ORDER BY id
        """
    )
    return await cursor.fetchall()


async def stream_usage(
    connection: Connection, *, first: date, domain: str | None
) -> AsyncGenerator[UsageSum]:
    """Since a day, proxy by proxy; with `domain`, that one and the sum of the others."""
    cursor = connection.cursor(row_factory=class_row(UsageSum))
    statement = """
        SELECT proxy_id, domain, sum(requests)::bigint AS requests, sum(bytes)::bigint AS bytes
          FROM (
            SELECT proxy_id, requests, bytes,
                   CASE WHEN %(domain)s::text IS NULL OR domain_name = %(domain)s
                        THEN domain_name END AS domain
              FROM proxy_usage
             WHERE day >= %(first)s
          ) AS used
         GROUP BY proxy_id, domain
         ORDER BY proxy_id, domain
    """
    async for row in cursor.stream(statement, {"first": first, "domain": domain}):
        yield row


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
