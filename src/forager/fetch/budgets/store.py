"""The SQL of budgets. `budgets.py` decides when, the statements see to it that all agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row, scalar_row

from forager.db.database import Connection

PAIR_DELAY = 0.2
"""Each (domain, proxy) pair gets at most five requests per second."""

SLOWEST = 300.0
RECOVERY_STEP = 10
"""So many successes in a row halve the extra delay."""

# The settings of a domain come before those of a crawl; robots.txt before both.
BASE_DELAY: LiteralString = """
    greatest(coalesce(d.crawl_delay_seconds, %(delay)s)::float8, %(robots_delay)s)
"""

SLOWER: LiteralString = f"least({SLOWEST}, greatest(2 * d.slow_delay, {BASE_DELAY}, 1))"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a crawl asks for, and what robots.txt says."""

    delay: float
    concurrency: int
    robots_delay: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a runner reports and asks of one domain; times in seconds."""

    domain_id: int
    holder: UUID
    terms: Terms
    direct: int  # slots for requests without a proxy
    proxied: Mapping[int, int]  # slots by proxy
    patience: float  # a slot further away than this is not reserved
    busy: int  # connections that stay open whatever is granted
    successes: int
    failures: int
    horizon: float
    permits_last: float
    # seconds in addition, for what is over before the answer arrives
    slack: float = 0.0


@dataclass(frozen=True, slots=True)
class Given:
    """The database's answer. All times are its own, in seconds since the epoch."""

    is_active: bool
    per_proxy_only: bool
    delay: float
    slow_delay: float
    blocked_until: float | None
    starts_at: float
    slots: int  # 0: none were wanted, none are needed, or the first is too far away
    permits: int
    limit: int
    expires_at: float


@dataclass(frozen=True, slots=True)
class GivenToPair:
    """The slots of one (domain, proxy) pair."""

    proxy_id: int
    delay: float
    starts_at: float
    slots: int


async def select_domain(connection: Connection, names: Sequence[str]) -> tuple[int, str] | None:
    """The first of these names that has a row."""
    cursor = await connection.execute(
        """
        SELECT id, domain_name
          FROM domains
         WHERE domain_name = ANY(%(names)s)
         ORDER BY array_position(%(names)s, domain_name)
         LIMIT 1
        """,
        {"names": list(names)},
    )
    row = await cursor.fetchone()
    return None if row is None else (row[0], row[1])


async def insert_domain(connection: Connection, name: str, base_url: str) -> None:
    """Make a row unless there is one."""
    await connection.execute(
        """
        INSERT INTO domains (domain_name, base_url) VALUES (%s, %s)
        ON CONFLICT (domain_name) DO NOTHING
        """,
        (name, base_url),
    )


async def exchange(
    connection: Connection, wanted: Wanted
) -> tuple[Given | None, list[GivenToPair], float]:
    """Report, renew and reserve in one round trip; with the time at its end.

    The lock comes in a statement of its own: the next one then sees what the lock waited for.
    Nothing is answered in between, so whoever is frozen here holds no lock.
    """
    values = _values(wanted)
    async with connection.pipeline():
        async with connection.transaction():
            await connection.execute(_LOCK, values)
            given = connection.cursor(row_factory=class_row(Given))
            await given.execute(_RESERVE, values)
            pairs = connection.cursor(row_factory=class_row(GivenToPair))
            if wanted.proxied:
                await pairs.execute(_RESERVE_PAIRS, values)
        clock = connection.cursor(row_factory=scalar_row)
        await clock.execute(_CLOCK)
        found = await given.fetchone()
        return (
            found,
            await pairs.fetchall() if wanted.proxied else [],
            await clock.fetchone() or 0.0,
        )


async def select_clock(connection: Connection) -> float:
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(_CLOCK)
    return await cursor.fetchone() or 0.0


_CLOCK: LiteralString = "SELECT extract(epoch FROM clock_timestamp())::float8"

_LOCK: LiteralString = "SELECT FROM domains WHERE id = %(domain_id)s FOR NO KEY UPDATE"

_RESERVE: LiteralString = f"""
WITH was AS MATERIALIZED (
    SELECT d.*,
           clock_timestamp() AS at,
           {BASE_DELAY} AS base_delay,
           CASE WHEN %(failures)s > 0 THEN 0 ELSE d.successes + %(successes)s END AS streak
      FROM domains d
     WHERE d.id = %(domain_id)s
), paced AS (
    SELECT *,
           CASE
               WHEN streak < {RECOVERY_STEP} THEN slow_delay
               WHEN slow_delay < 0.1 THEN 0
               ELSE slow_delay / 2
           END AS slow,
           %(direct)s + CASE WHEN per_proxy_only THEN 0 ELSE %(proxied)s END AS asked_slots,
           greatest(next_slot_at, at, blocked_until) AS start
      FROM was
), planned AS (
    SELECT *,
           base_delay + slow AS pace,
           CASE
               WHEN base_delay + slow = 0 OR NOT is_active
                   OR start > at + %(patience)s * interval '1 second' THEN 0
               ELSE least(asked_slots, ceil(%(horizon)s / (base_delay + slow)))
           END::int AS slots
      FROM paced
), reserved AS (
    UPDATE domains d
       SET next_slot_at = CASE
               WHEN slots = 0 THEN d.next_slot_at
               ELSE start + (slots * pace + %(slack)s) * interval '1 second'
           END,
           slow_delay = slow,
           successes = CASE WHEN slow = 0 OR streak >= {RECOVERY_STEP} THEN 0 ELSE streak END
      FROM planned
     WHERE d.id = planned.id
), others AS (
    -- who is first in line changes every ten seconds, so that more runners than connections
    -- take turns
    SELECT count(*)::int AS holders,
           coalesce(sum(p.permits), 0)::int AS taken,
           greatest(max(p.asked), %(concurrency)s) AS most_asked,
           count(*) FILTER (
               WHERE md5(p.holder::text || turn) < md5(%(holder)s::uuid::text || turn)
           )::int AS ahead
      FROM was
     CROSS JOIN floor(extract(epoch FROM was.at) / 10) AS turn
      JOIN domain_permits p
        ON p.domain_id = was.id AND p.holder <> %(holder)s AND p.expires_at > was.at
), shared AS (
    SELECT *, coalesce(max_concurrent_requests, most_asked) AS limit_, holders + 1 AS parts
      FROM planned, others
), granted AS (
    SELECT *,
           CASE
               WHEN NOT is_active THEN 0
               ELSE greatest(0, least(
                   limit_ / parts + (ahead < mod(limit_, parts))::int,
                   limit_ - taken,
                   CASE WHEN max_concurrent_requests IS NULL THEN %(concurrency)s ELSE limit_ END
               ))
           END AS grant_
      FROM shared
), kept AS (
    INSERT INTO domain_permits AS mine (domain_id, holder, permits, asked, expires_at)
    SELECT id, %(holder)s, greatest(grant_, %(busy)s), %(concurrency)s,
           at + %(permits_last)s * interval '1 second'
      FROM granted
    ON CONFLICT (domain_id, holder) DO UPDATE
       SET permits = excluded.permits, asked = excluded.asked, expires_at = excluded.expires_at
), gone AS (
    DELETE FROM domain_permits p
     USING was
     WHERE p.domain_id = was.id AND p.holder <> %(holder)s
       AND p.expires_at < was.at - interval '1 minute'
)
SELECT is_active,
       per_proxy_only,
       pace AS delay,
       slow AS slow_delay,
       extract(epoch FROM blocked_until)::float8 AS blocked_until,
       extract(epoch FROM start)::float8 AS starts_at,
       slots,
       grant_ AS permits,
       limit_ AS "limit",
       extract(epoch FROM at + %(permits_last)s * interval '1 second')::float8 AS expires_at
  FROM granted
"""

# After _RESERVE in the same transaction, so under the same lock.
_RESERVE_PAIRS: LiteralString = f"""
WITH planned AS MATERIALIZED (
    SELECT d.id AS domain_id,
           p.id AS proxy_id,
           pace.delay,
           least(want.slots, ceil(%(horizon)s / pace.delay))::int AS slots,
           greatest(s.next_slot_at, d.blocked_until, clock_timestamp()) AS start
      FROM domains d
     CROSS JOIN unnest(%(proxy_ids)s::bigint[], %(proxy_slots)s::int[]) AS want (proxy_id, slots)
     CROSS JOIN LATERAL (
        SELECT greatest({PAIR_DELAY}, CASE
                   WHEN d.per_proxy_only THEN {BASE_DELAY} + d.slow_delay ELSE 0
               END)::float8 AS delay
     ) AS pace
      JOIN proxies p ON p.id = want.proxy_id
      LEFT JOIN proxy_slots s ON s.domain_id = d.id AND s.proxy_id = p.id
     WHERE d.id = %(domain_id)s
), near AS MATERIALIZED (
    SELECT domain_id, proxy_id, delay, start,
           CASE
               WHEN start > clock_timestamp() + %(patience)s * interval '1 second' THEN 0
               ELSE slots
           END AS slots
      FROM planned
), reserved AS (
    INSERT INTO proxy_slots (domain_id, proxy_id, next_slot_at)
    SELECT domain_id, proxy_id, start + (slots * delay + %(slack)s) * interval '1 second'
      FROM near
     WHERE slots > 0
    ON CONFLICT (domain_id, proxy_id) DO UPDATE SET next_slot_at = excluded.next_slot_at
)
SELECT proxy_id, delay, extract(epoch FROM start)::float8 AS starts_at, slots FROM near
"""


def _values(wanted: Wanted) -> dict[str, Any]:
    return {
        "domain_id": wanted.domain_id,
        "holder": wanted.holder,
        "delay": wanted.terms.delay,
        "concurrency": wanted.terms.concurrency,
        "robots_delay": wanted.terms.robots_delay,
        "direct": wanted.direct,
        "proxied": sum(wanted.proxied.values()),
        "proxy_ids": list(wanted.proxied),
        "proxy_slots": list(wanted.proxied.values()),
        "patience": wanted.patience,
        "busy": wanted.busy,
        "successes": wanted.successes,
        "failures": wanted.failures,
        "horizon": wanted.horizon,
        "slack": wanted.slack,
        "permits_last": wanted.permits_last,
    }


async def block_domain(connection: Connection, domain_id: int, seconds: float) -> None:
    """Nobody sends to this domain for so long."""
    await connection.execute(
        """
        UPDATE domains
           SET blocked_until = greatest(
                   blocked_until, clock_timestamp() + %(seconds)s * interval '1 second'
               ),
               successes = 0
         WHERE id = %(id)s
        """,
        {"id": domain_id, "seconds": seconds},
    )


async def slow_domain(connection: Connection, domain_id: int, terms: Terms, *, seen: float) -> None:
    """Double the extra delay, unless that was done since a request left under `seen`.

    Many requests are under way when a host begins to refuse; their answers are one complaint.
    """
    await connection.execute(
        f"""
        UPDATE domains d
           SET slow_delay = {SLOWER},
               next_slot_at = greatest(
                   next_slot_at,
                   clock_timestamp() + ({BASE_DELAY} + {SLOWER}) * interval '1 second'
               ),
               successes = 0
         WHERE id = %(id)s AND slow_delay <= %(seen)s
        """,
        {
            "id": domain_id,
            "delay": terms.delay,
            "robots_delay": terms.robots_delay,
            "seen": seen,
        },
    )


async def delete_permits(
    connection: Connection, holder: UUID, domain_id: int | None = None
) -> None:
    """Give back what a runner may use of one domain, or of all."""
    await connection.execute(
        """
        DELETE FROM domain_permits
         WHERE holder = %(holder)s
           AND domain_id = coalesce(%(domain_id)s, domain_id)
        """,
        {"holder": holder, "domain_id": domain_id},
    )
