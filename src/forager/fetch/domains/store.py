"""SQL of domains and their settings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from forager.db.database import Connection
from forager.db.ids import REGION_LOCK
from forager.db.rows import Rows, Tuples, Values
from forager.errors import InvalidInput
from forager.extract.hosts import base_url, parent_domains
from forager.fetch.budgets.domain_state import (
    BLOCK_IS_STRAY,
    BLOCKED_UNTIL,
    SLOT_IS_STRAY,
    SLOW_NOW,
)
from forager.fetch.domains import Domain


@dataclass(frozen=True, slots=True)
class CoveringDomain:
    """The row whose settings apply to a host."""

    host: str
    id: int
    name: str
    allow_private: bool


async def select_covers(
    connection: Connection, hosts: Collection[str]
) -> dict[str, CoveringDomain]:
    """The row of each host, or of its nearest parent domain; hosts without one are left out."""
    names = {host: (host, *parent_domains(host)) for host in hosts}
    found = await Rows(connection, CoveringDomain).all(
        """
        SELECT DISTINCT ON (n.host) n.host, d.id, d.domain_name AS name, d.allow_private
          FROM unnest(%s::text[], %s::text[], %s::int[]) AS n (host, name, nth)
          JOIN domains d ON d.domain_name = n.name
         ORDER BY n.host, n.nth
        """,
        (
            [host for host, line in names.items() for _ in line],
            [name for line in names.values() for name in line],
            [nth for line in names.values() for nth in range(len(line))],
        ),
    )
    return {cover.host: cover for cover in found}


async def insert_domains(connection: Connection, hosts: Iterable[str]) -> None:
    """Insert rows for hosts that have none, in the same order in all transactions."""
    names = sorted(hosts)
    await connection.execute(
        """
        INSERT INTO domains (domain_name, base_url)
        SELECT * FROM unnest(%s::text[], %s::text[])
        ON CONFLICT (domain_name) DO NOTHING
        """,
        (names, [base_url(name) for name in names]),
    )


async def allow_private(connection: Connection, domain_ids: Sequence[int]) -> None:
    """Allow private addresses; rows are locked in the same order in all transactions."""
    await connection.execute(
        """
        WITH locked AS MATERIALIZED (
            SELECT id FROM domains
             WHERE id = ANY(%s) AND NOT allow_private
             ORDER BY id
               FOR NO KEY UPDATE
        )
        UPDATE domains d
           SET allow_private = true, updated_at = now()
          FROM locked
         WHERE d.id = locked.id
        """,
        (list(domain_ids),),
    )


async def hold_domain(connection: Connection, domain_id: int, hold: str | None) -> bool:
    """Hold the tasks of a domain, or end that with None; whether this changed anything."""
    return await Tuples(connection).changed(
        """
        UPDATE domains
           SET task_hold = %(hold)s, updated_at = now()
         WHERE id = %(id)s AND task_hold IS DISTINCT FROM %(hold)s
        """,
        {"id": domain_id, "hold": hold},
    )


async def update_traffic_delay(connection: Connection, name: str, delay: float | None) -> bool:
    """False if there is no such domain."""
    return await Tuples(connection).changed(
        "UPDATE domains SET traffic_delay = %s, updated_at = now() WHERE domain_name = %s",
        (delay, name),
    )


_COLUMNS: LiteralString = f"""
    d.id, d.domain_name, d.base_url, d.crawl_delay_seconds::float8, d.max_concurrent_requests,
    d.per_proxy_only, d.proxy_rate, d.is_active,
    extract(epoch FROM d.crawl_frequency)::float8 AS crawl_frequency,
    d.adaptive,
    extract(epoch FROM d.min_frequency)::float8 AS min_frequency,
    extract(epoch FROM d.max_frequency)::float8 AS max_frequency,
    d.use_proxies, d.allow_private, d.currency, d.task_hold, d.traffic_delay, d.region,
    d.render, d.render_urls,
    d.created_at, d.updated_at,
    CASE WHEN {BLOCKED_UNTIL} > now() THEN d.blocked_until END AS blocked_until,
    {SLOW_NOW} AS slow_delay,
    CASE WHEN d.next_slot_at > now() AND NOT {SLOT_IS_STRAY} THEN d.next_slot_at END
        AS next_slot_at,
    used.runners, used.connections
"""

_USED: LiteralString = """
    CROSS JOIN LATERAL (
        SELECT count(*)::int AS runners, coalesce(sum(p.permits), 0)::int AS connections
          FROM domain_permits p
         WHERE p.domain_id = d.id AND p.expires_at > now()
    ) AS used
"""

_SLOWED: LiteralString = f"({SLOW_NOW} > 0 OR {BLOCKED_UNTIL} > now())"

# settings as `DomainChanges` names them, and their columns
_SETTABLE: dict[str, LiteralString] = {
    "delay": "crawl_delay_seconds",
    "concurrency": "max_concurrent_requests",
    "active": "is_active",
    "per_proxy_only": "per_proxy_only",
    "proxy_rate": "proxy_rate",
    "every": "crawl_frequency",
    "adaptive": "adaptive",
    "shortest": "min_frequency",
    "longest": "max_frequency",
    "proxies": "use_proxies",
    "allow_private": "allow_private",
    "currency": "currency",
    "region": "region",
    "render": "render",
    "render_urls": "render_urls",
}


async def select_domains(
    connection: Connection,
    *,
    after: str | None,
    limit: int,
    active: bool | None,
    slowed: bool,
    region: str | None,
    text: str | None = None,
    on_hold: bool = False,
) -> list[Domain]:
    """Domains by name, after one, that meet all conditions that are given."""
    return await Rows(connection, Domain).all(
        f"""
        SELECT {_COLUMNS}
          FROM domains d {_USED}
         WHERE d.domain_name > coalesce(%(after)s, '')
           AND d.is_active = coalesce(%(active)s, d.is_active)
           AND ({_SLOWED} OR NOT %(slowed)s)
           AND (%(region)s::text IS NULL OR d.region = %(region)s)
           AND (%(text)s::text IS NULL OR strpos(d.domain_name, %(text)s) > 0)
           AND (d.task_hold IS NOT NULL OR NOT d.is_active OR NOT %(on_hold)s)
         ORDER BY d.domain_name
         LIMIT %(limit)s
        """,
        {
            "after": after,
            "active": active,
            "slowed": slowed,
            "region": region,
            "text": text,
            "on_hold": on_hold,
            "limit": limit,
        },
    )


async def select_first(connection: Connection, names: Sequence[str]) -> Domain | None:
    """The first of these names that has a row."""
    return await Rows(connection, Domain).first(
        f"""
        SELECT {_COLUMNS}
          FROM domains d {_USED}
         WHERE d.domain_name = ANY(%(names)s)
         ORDER BY array_position(%(names)s, d.domain_name)
         LIMIT 1
        """,
        {"names": list(names)},
    )


async def select_meant(connection: Connection, names: Sequence[str]) -> list[int]:
    """The first of these names that has a row, and all rows of subdomains of the first name."""
    return await Values(connection).all(
        """
        SELECT id
          FROM domains
         WHERE right(domain_name, length(%(below)s)) = %(below)s
            OR id = (
                SELECT id FROM domains
                 WHERE domain_name = ANY(%(names)s)
                 ORDER BY array_position(%(names)s, domain_name)
                 LIMIT 1
            )
         ORDER BY id
        """,
        {"below": f".{names[0]}", "names": list(names)},
    )


async def select_like(connection: Connection, pattern: str) -> list[str]:
    """The names that match a pattern; * stands for any characters."""
    like = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return await Values(connection).all(
        "SELECT domain_name FROM domains WHERE domain_name LIKE %s ORDER BY domain_name",
        (like.replace("*", "%"),),
    )


async def insert_domain(connection: Connection, name: str, base_url: str) -> bool:
    """False if the name exists."""
    return await Tuples(connection).changed(
        """
        INSERT INTO domains (domain_name, base_url) VALUES (%s, %s)
        ON CONFLICT (domain_name) DO NOTHING
        """,
        (name, base_url),
    )


async def update_domain(connection: Connection, name: str, changes: Mapping[str, Any]) -> bool:
    """False if there is no such domain."""
    columns = [f"{_SETTABLE[key]} = %({key})s" for key in changes]
    assignments = ", ".join([*columns, "updated_at = now()"])
    return await Tuples(connection).changed(
        f"UPDATE domains SET {assignments} WHERE domain_name = %(name)s", {**changes, "name": name}
    )


async def lock_regions(connection: Connection) -> None:
    """Keep jobs from being added with a region that is about to change; call it first."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", (REGION_LOCK,))


async def move_jobs(connection: Connection, name: str) -> None:
    """Update the region of jobs for the hosts that this domain may cover.

    A name without a dot covers only itself. A running job continues where it is; the region
    applies when it is released.
    """
    await connection.execute(
        """
        WITH covered AS (
            SELECT j.id, region_of_host(j.host) AS region
              FROM crawl_jobs j
             WHERE j.status IN ('pending', 'processing', 'paused', 'failed')
               AND (j.host = %(name)s
                    OR %(name)s LIKE '%%.%%' AND right(j.host, length(%(below)s)) = %(below)s)
             ORDER BY j.id
               FOR NO KEY UPDATE OF j
        )
        UPDATE crawl_jobs j
           SET region = covered.region
          FROM covered
         WHERE j.id = covered.id AND j.region IS DISTINCT FROM covered.region
        """,
        {"name": name, "below": f".{name}"},
    )


async def forget_slow_down(connection: Connection, name: str) -> bool:
    """Reset Retry-After and the slow-down; False if there is no such domain."""
    return await Tuples(connection).changed(
        """
        UPDATE domains
           SET blocked_until = NULL, slow_delay = 0, error_share = 0, updated_at = now(),
               next_slot_at = least(
                   next_slot_at,
                   now() + greatest(coalesce(crawl_delay_seconds, 1), traffic_delay)
                         * interval '1 second'
               )
         WHERE domain_name = %s
        """,
        (name,),
    )


_REGION = re.compile("[a-z0-9-]{1,32}")


def check_region(region: str | None) -> None:
    """Raise an error unless this is a short name, or None for no region."""
    if region is not None and not _REGION.fullmatch(region):
        raise InvalidInput(
            f"{region[:40]!r} is not the name of a region",
            hint="Write it in 1 to 32 small letters, digits and hyphens, as eu or us-east-1.",
        )


# Work bound to a region goes to workers of that region; workers without one get unbound work.
IN_REGION: LiteralString = "(d.region IS NULL OR d.region = %(region)s)"

# Proxied work goes to workers with a usable proxy, unless no proxy is active anywhere: waiting
# would then be pointless. The subqueries refer to no row, so PostgreSQL runs them once.
HAS_PROXY: LiteralString = """
    (NOT coalesce(d.use_proxies, %(task_proxies)s)
     OR EXISTS (SELECT FROM proxies
                 WHERE is_active AND (region IS NULL OR region = %(region)s))
     OR NOT EXISTS (SELECT FROM proxies WHERE is_active))
"""


async def select_stray_slots(connection: Connection, *, limit: int) -> list[str]:
    """Hosts whose next slot or block was written under a clock that was ahead."""
    return await Values(connection, str).all(
        f"""
        SELECT domain_name FROM domains d
         WHERE {SLOT_IS_STRAY} OR ({BLOCK_IS_STRAY} AND d.blocked_until > now())
         ORDER BY id LIMIT %s
        """,
        (limit,),
    )
