"""The SQL of budgets. `budget.py` decides when, the statements see to it that all agree."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from psycopg.rows import class_row

from forager.db.database import Connection
from forager.db.pool import limits_transactions
from forager.db.rows import Values
from forager.fetch.budgets.domain_state import (
    BLOCKED_UNTIL,
    FURTHEST_AHEAD,
    LAST_SLOT,
    LEAD,
    SLOW_NOW,
)
from forager.fetch.budgets.exchange import PAIR_DELAY, PairReservation, Reservation, SlotRequest

RESERVE_AHEAD = 1.0
"""Slots are reserved for this many seconds at a time."""
PERMITS_LAST = 10.0
FROZEN_MS = 15_000
"""More than a wait for a lock may take."""

SLOWEST = 300.0
SICK_SHARE = 0.5
"""From this error share on, further errors slow the host down."""
RATE_STEP = 0.2
"""Requests per second that each good answer adds to a slowed-down host's rate."""
ASKED_LATELY = 2.5
"""A runner that waits renews its row more often than this."""
# settings of a domain override those of a crawl, and robots.txt overrides both
BASE_DELAY: LiteralString = """
    greatest(coalesce(d.crawl_delay_seconds, w.delay)::float8, d.traffic_delay, w.robots_delay)
"""

PAIR_DELAY_OF: LiteralString = f"coalesce(1 / d.proxy_rate, {PAIR_DELAY})::float8"

SLOWER: LiteralString = f"least({SLOWEST}, greatest(2 * d.slow_delay, {BASE_DELAY}, 1))"


async def select_existing(connection: Connection, domain_ids: Iterable[int]) -> set[int]:
    """Those of the domains that still exist."""
    return await Values(connection).as_set(
        "SELECT id FROM domains WHERE id = ANY(%s)", (list(domain_ids),)
    )


@dataclass(frozen=True, slots=True)
class ExchangeResult:
    """The database's answers by domain, and its time at their end.

    Domains that are missing are locked by another process, or deleted.
    """

    given: Mapping[int, Reservation]
    pairs: Mapping[int, Sequence[PairReservation]]
    clock: float


async def exchange(
    connection: Connection, holder: UUID, wanted: Sequence[SlotRequest], *, waits: bool = False
) -> ExchangeResult:
    """Report, renew and reserve for many domains in one round trip.

    The lock is a separate statement: the next one then sees all that was committed before it. A
    process that is frozen in between holds the lock for `FROZEN_MS`. A row that another process
    has locked is left out unless this one `waits`: it must not delay the other domains.
    """
    values = {
        "ids": [each.domain_id for each in wanted],
        "wanted": json.dumps([each.as_json() for each in wanted]),
        "holder": holder,
        "permits_last": PERMITS_LAST,
        "pairs": json.dumps(
            [(each.domain_id, *pair) for each in wanted for pair in each.proxied.items()]
        ),
    }
    has_pairs = any(each.proxied for each in wanted)
    async with connection.pipeline():
        async with connection.transaction():
            if limits_transactions(connection):
                await connection.execute(_LIMIT, (str(FROZEN_MS),))
            await connection.execute(_LOCK if waits else _LOCK_FREE, values)
            given = connection.cursor(row_factory=class_row(Reservation))
            await given.execute(_RESERVE, values)
            pairs = connection.cursor(row_factory=class_row(PairReservation))
            if has_pairs:
                await pairs.execute(_RESERVE_PAIRS, values)
        clock = Values(connection)
        said = await clock.first(_CLOCK)
        by_domain: dict[int, list[PairReservation]] = defaultdict(list)
        for pair in await pairs.fetchall() if has_pairs else []:
            by_domain[pair.domain_id].append(pair)
        given_by_domain = {row.domain_id: row for row in await given.fetchall()}
        return ExchangeResult(given_by_domain, by_domain, said or 0.0)


async def select_clock(connection: Connection) -> float:
    """The clock of the server, in seconds: the one clock of all budgets."""
    value = await Values(connection).first(_CLOCK)
    return value or 0.0


_CLOCK: LiteralString = "SELECT extract(epoch FROM clock_timestamp())::float8"

# a time limit that runs already is not changed, only ended
_LIMIT: LiteralString = """
SELECT set_config('transaction_timeout', '0', true), set_config('transaction_timeout', %s, true)
"""

_ROWS: LiteralString = (
    "SELECT id FROM domains WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE"
)
_LOCK: LiteralString = f"""
SELECT set_config('forager.locked_domains', coalesce(array_agg(id), '{{}}')::text, true)
  FROM ({_ROWS}) AS locked
"""
_LOCK_FREE = _LOCK.replace(_ROWS, f"{_ROWS} SKIP LOCKED")
_IS_LOCKED: LiteralString = "d.id = ANY(current_setting('forager.locked_domains')::bigint[])"

_WANTED: LiteralString = """
    json_to_recordset(%(wanted)s::json) AS w (
        domain_id bigint, delay float8, robots_delay float8, concurrency int, direct int,
        proxied int, max_wait float8, busy int, waiting int, good int, errors int,
        repeated_errors int, seen float8, kept_share float8, new_share float8, slack float8,
        unused_from float8, reserved_until float8, block_for float8, refused_under float8,
        leaves boolean
    )
"""

# reservations are consecutive, so that only the last one can be returned
FREE_AT: LiteralString = """
    CASE
        WHEN abs(extract(epoch FROM d.next_slot_at) - w.reserved_until) < 0.001
        THEN to_timestamp(w.unused_from)
        ELSE d.next_slot_at
    END
"""

_RESERVE: LiteralString = f"""
WITH was AS MATERIALIZED (
    SELECT w.*, d.is_active, d.per_proxy_only, d.max_concurrent_requests, d.next_slot_at,
           d.slow_delay, d.slowed_at, d.error_share, now.at,
           greatest(
               {BLOCKED_UNTIL},
               CASE WHEN w.block_for > 0 THEN now.at + w.block_for * interval '1 second' END
           ) AS blocked,
           d.blocked_until,
           {BASE_DELAY} AS base_delay,
           {SLOW_NOW} AS slow_before,
           {SLOWER} AS slower,
           least({FREE_AT}, now.at + {LAST_SLOT}) AS free_at,
           {PAIR_DELAY_OF} AS pair_delay,
           d.error_share * w.kept_share + w.new_share * (1 - w.kept_share) AS share,
           w.direct + CASE WHEN d.per_proxy_only THEN 0 ELSE w.proxied END AS asked_slots
      FROM {_WANTED}
      JOIN domains d ON d.id = w.domain_id
     CROSS JOIN clock_timestamp() AS now (at)
     WHERE {_IS_LOCKED}
), judged AS (
    SELECT *,
           share >= {SICK_SHARE} AND errors + repeated_errors > 0 AS is_sick,
           (share >= {SICK_SHARE} AND errors > 0 AND slow_delay <= seen)
           OR coalesce(slow_delay <= refused_under, false) AS is_slower,
           slow_before / (1 + {RATE_STEP} * good * slow_before) AS recovered
      FROM was
), paced AS (
    SELECT *,
           CASE
               WHEN is_slower THEN slower
               WHEN is_sick THEN slow_before
               WHEN recovered < 0.1 THEN 0
               ELSE recovered
           END AS slow
      FROM judged
), timed AS (
    -- the last slot was reserved under the delay of that time: a shorter one begins at once
    SELECT *,
           base_delay + slow AS pace,
           CASE
               WHEN is_slower
               THEN greatest(free_at, at + (base_delay + slow) * interval '1 second')
               ELSE free_at - (slow_delay - slow) * interval '1 second'
           END AS next_free
      FROM paced
), placed AS (
    SELECT *, greatest(next_free, at, blocked) AS start FROM timed
), planned AS (
    -- several runners share the slots of the horizon; if there are too few, they take turns
    SELECT placed.*, others.*,
           CASE
               WHEN pace = 0 OR NOT is_active
                   OR start > at + least(max_wait, {LEAD} + slack) * interval '1 second'
                   OR (waited_longer AND pace * (wanting + 1) > {RESERVE_AHEAD}) THEN 0
               ELSE least(asked_slots, ceil({RESERVE_AHEAD} / pace / (wanting + 1)))
           END::int AS slots
      FROM placed
     CROSS JOIN LATERAL (
        -- who is first in line changes every ten seconds, so that more runners than connections
        -- take turns
        SELECT count(p)::int AS holders,
               coalesce(sum(p.permits), 0)::int AS taken,
               greatest(max(p.asked), placed.concurrency) AS most_asked,
               count(p) FILTER (
                   WHERE md5(p.holder::text || turn) < md5(%(holder)s::uuid::text || turn)
               )::int AS ahead,
               count(p) FILTER (WHERE is_here AND p.waiting > 0)::int AS others_waiting,
               count(p) FILTER (WHERE is_here AND p.wanted > 0)::int AS wanting,
               coalesce(bool_or(
                   is_here AND p.wanted > 0
                   AND coalesce(p.last_slot_at, '-infinity')
                       < coalesce(mine.last_slot_at, '-infinity')
               ), false) AS waited_longer
          FROM floor(extract(epoch FROM placed.at) / 10) AS turn
          JOIN domain_permits p
            ON p.domain_id = placed.domain_id AND p.holder <> %(holder)s
               AND p.expires_at > placed.at
               AND p.expires_at < placed.at + {FURTHEST_AHEAD} * interval '1 second'
          LEFT JOIN domain_permits mine
            ON mine.domain_id = placed.domain_id AND mine.holder = %(holder)s
         CROSS JOIN LATERAL (
            SELECT p.expires_at
                   > placed.at + (%(permits_last)s - {ASKED_LATELY}) * interval '1 second'
         ) AS lately (is_here)
     ) AS others
), decided AS (
    SELECT *,
           CASE
               WHEN slots = 0 THEN next_free
               ELSE start + (slots * pace + slack) * interval '1 second'
           END AS new_slot_at,
           coalesce(max_concurrent_requests, most_asked) AS limit_,
           holders + 1 AS parts
      FROM planned
), granted AS MATERIALIZED (
    SELECT *,
           CASE
               WHEN NOT is_active THEN 0
               ELSE greatest(0, least(
                   limit_ / parts + (ahead < mod(limit_, parts))::int,
                   limit_ - taken,
                   CASE WHEN max_concurrent_requests IS NULL THEN concurrency ELSE limit_ END
               ))
           END AS grant_
      FROM decided
), reserved AS (
    UPDATE domains d
       SET next_slot_at = new_slot_at,
           slot_delay = CASE WHEN slots > 0 OR is_slower THEN pace ELSE d.slot_delay END,
           blocked_until = blocked,
           blocked_at = CASE
               WHEN blocked IS DISTINCT FROM g.blocked_until THEN at
               ELSE d.blocked_at
           END,
           slow_delay = slow,
           error_share = share,
           slowed_at = CASE
               WHEN is_sick OR is_slower OR slow_before < g.slow_delay THEN at
               ELSE d.slowed_at
           END
      FROM granted g
     WHERE d.id = g.domain_id
       AND (is_sick OR is_slower
            OR (new_slot_at, blocked, slow, share) IS DISTINCT FROM
               (g.next_slot_at, g.blocked_until, g.slow_delay, g.error_share))
), kept AS (
    INSERT INTO domain_permits AS mine (
        domain_id, holder, permits, asked, waiting, wanted, last_slot_at, expires_at
    )
    SELECT domain_id, %(holder)s, greatest(grant_, busy), concurrency, waiting,
           CASE
               WHEN start > at + max_wait * interval '1 second' THEN 0
               ELSE asked_slots - slots
           END,
           CASE WHEN slots > 0 THEN at END,
           at + %(permits_last)s * interval '1 second'
      FROM granted
     WHERE NOT leaves
    ON CONFLICT (domain_id, holder) DO UPDATE
       SET permits = excluded.permits, asked = excluded.asked, waiting = excluded.waiting,
           wanted = excluded.wanted, expires_at = excluded.expires_at,
           last_slot_at = coalesce(excluded.last_slot_at, mine.last_slot_at)
), gone AS (
    DELETE FROM domain_permits p
     USING was
     WHERE p.domain_id = was.domain_id
       AND CASE
               WHEN p.holder = %(holder)s THEN was.leaves
               ELSE p.expires_at < was.at - interval '1 minute'
           END
)
SELECT domain_id,
       is_active,
       per_proxy_only,
       pace AS delay,
       pair_delay,
       slow AS slow_delay,
       extract(epoch FROM blocked)::float8 AS blocked_until,
       extract(epoch FROM start)::float8 AS starts_at,
       slots,
       grant_ AS permits,
       limit_ AS "limit",
       max_concurrent_requests IS NOT NULL AS has_own_limit,
       extract(epoch FROM at + %(permits_last)s * interval '1 second')::float8 AS expires_at,
       extract(epoch FROM new_slot_at)::float8 AS reserved_until,
       others_waiting
  FROM granted
"""

# after _RESERVE in the same transaction, under the same locks
_RESERVE_PAIRS: LiteralString = f"""
WITH planned AS MATERIALIZED (
    SELECT d.id AS domain_id,
           p.id AS proxy_id,
           w.max_wait,
           w.slack,
           pace.delay,
           least(want.slots, ceil({RESERVE_AHEAD} / pace.delay))::int AS slots,
           greatest(
               least(
                   coalesce(s.next_slot_at, clock_timestamp()),
                   clock_timestamp() + (pace.delay + {FURTHEST_AHEAD}) * interval '1 second'
               ),
               d.blocked_until,
               clock_timestamp()
           ) AS start
      FROM (
        SELECT (pair ->> 0)::bigint AS domain_id,
               (pair ->> 1)::bigint AS proxy_id,
               (pair ->> 2)::int AS slots
          FROM json_array_elements(%(pairs)s::json) AS pair
     ) AS want
      JOIN domains d ON d.id = want.domain_id
      JOIN {_WANTED} ON w.domain_id = d.id
     CROSS JOIN LATERAL (
        SELECT greatest({PAIR_DELAY_OF}, CASE
                   WHEN d.per_proxy_only THEN {BASE_DELAY} + d.slow_delay ELSE 0
               END)::float8 AS delay
     ) AS pace
      JOIN proxies p ON p.id = want.proxy_id
      LEFT JOIN proxy_slots s ON s.domain_id = d.id AND s.proxy_id = p.id
     WHERE {_IS_LOCKED}
), near AS MATERIALIZED (
    SELECT domain_id, proxy_id, delay, start, slack,
           CASE
               WHEN start > clock_timestamp() + max_wait * interval '1 second' THEN 0
               ELSE slots
           END AS slots
      FROM planned
), reserved AS (
    INSERT INTO proxy_slots (domain_id, proxy_id, next_slot_at)
    SELECT domain_id, proxy_id, start + (slots * delay + slack) * interval '1 second'
      FROM near
     WHERE slots > 0
    ON CONFLICT (domain_id, proxy_id) DO UPDATE SET next_slot_at = excluded.next_slot_at
)
SELECT domain_id, proxy_id, delay, extract(epoch FROM start)::float8 AS starts_at, slots FROM near
"""


async def block_domain(connection: Connection, domain_id: int, seconds: float) -> None:
    """Block a domain for a time; a longer block stays."""
    await connection.execute(
        f"""
        UPDATE domains d
           SET blocked_at = clock_timestamp(),
               blocked_until = greatest(
                   {BLOCKED_UNTIL}, clock_timestamp() + %(seconds)s * interval '1 second'
               )
         WHERE id = %(id)s
        """,
        {"id": domain_id, "seconds": seconds},
    )


async def unblock_domain(connection: Connection, domain_id: int, *, ends_by: datetime) -> None:
    """End a block that ends by a time; a longer one was requested by the host."""
    await connection.execute(
        "UPDATE domains SET blocked_until = NULL WHERE id = %s AND blocked_until <= %s",
        (domain_id, ends_by),
    )


async def delete_permits(connection: Connection, holder: UUID) -> None:
    """Return all permits of a runner."""
    await connection.execute("DELETE FROM domain_permits WHERE holder = %s", (holder,))
