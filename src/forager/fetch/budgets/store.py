"""The SQL of budgets. `budgets.py` decides when, the statements see to it that all agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row, scalar_row

from forager.db.database import Connection
from forager.db.rows import Values
from forager.fetch.budgets.exchange import (
    PAIR_DELAY,
    Given,
    GivenToPair,
    Returned,
    Terms,
    Wanted,
)

SLOWEST = 300.0
ANSWERS_REMEMBERED = 20
"""The error share of a host is a moving average over about as many answers."""
SICK_SHARE = 0.5
"""From this error share on, further errors slow the host down."""
RATE_STEP = 0.2
"""Requests per second that each good answer adds to a slowed-down host's rate."""
SHORTEST_HALVING = 30.0
"""The extra delay halves when this many seconds, or twice the delay, pass without an error."""
LEAD = 2.0
"""Slots further away than this many seconds are not reserved: a reservation is soon used."""
ASKED_LATELY = 2.5
"""A runner that waits renews its row more often than this."""

# The settings of a domain come before those of a crawl; robots.txt before both.
BASE_DELAY: LiteralString = """
    greatest(coalesce(d.crawl_delay_seconds, %(delay)s)::float8, %(robots_delay)s)
"""

PAIR_DELAY_OF: LiteralString = f"coalesce(1 / d.proxy_rate, {PAIR_DELAY})::float8"

SLOWER: LiteralString = f"least({SLOWEST}, greatest(2 * d.slow_delay, {BASE_DELAY}, 1))"

# The extra delay of `domains d` now: it halves with time although no statement writes that.
SLOW_NOW: LiteralString = f"""
    (SELECT CASE WHEN slow.seconds < 0.1 THEN 0 ELSE slow.seconds END
       FROM (SELECT d.slow_delay / 2 ^ least(20, floor(
                 greatest(0, extract(epoch FROM clock_timestamp() - d.slowed_at)::float8)
                 / greatest({SHORTEST_HALVING}, 2 * d.slow_delay)))) AS slow (seconds))
"""


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

    The lock is a separate statement: the next one then sees what the lock waited for.
    Nothing is sent in between, so a frozen process holds no lock here.
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
    value = await Values(connection).first(_CLOCK)
    return value or 0.0


_CLOCK: LiteralString = "SELECT extract(epoch FROM clock_timestamp())::float8"

_LOCK: LiteralString = "SELECT FROM domains WHERE id = %(domain_id)s FOR NO KEY UPDATE"

# Reservations follow each other, so that only the last one can be given back.
FREE_AT: LiteralString = """
    CASE
        WHEN abs(extract(epoch FROM d.next_slot_at) - %(reserved_until)s) < 0.001
        THEN to_timestamp(%(unused_from)s)
        ELSE d.next_slot_at
    END
"""

_RESERVE: LiteralString = f"""
WITH was AS MATERIALIZED (
    SELECT d.*,
           clock_timestamp() AS at,
           {BASE_DELAY} AS base_delay,
           {SLOW_NOW} AS slow_before,
           {SLOWER} AS slower,
           {FREE_AT} AS free_at,
           {PAIR_DELAY_OF} AS pair_delay,
           d.error_share * %(kept_share)s + %(new_share)s * (1 - %(kept_share)s) AS share,
           %(direct)s + CASE WHEN per_proxy_only THEN 0 ELSE %(proxied)s END AS asked_slots
      FROM domains d
     WHERE d.id = %(domain_id)s
), judged AS (
    SELECT *,
           share >= {SICK_SHARE} AND %(errors)s + %(repeated_errors)s > 0 AS is_sick,
           share >= {SICK_SHARE} AND %(errors)s > 0 AND slow_delay <= %(seen)s AS is_slower,
           slow_before / (1 + {RATE_STEP} * %(good)s * slow_before) AS recovered
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
), others AS (
    -- who is first in line changes every ten seconds, so that more runners than connections
    -- take turns
    SELECT count(p)::int AS holders,
           coalesce(sum(p.permits), 0)::int AS taken,
           greatest(max(p.asked), %(concurrency)s) AS most_asked,
           count(p) FILTER (
               WHERE md5(p.holder::text || turn) < md5(%(holder)s::uuid::text || turn)
           )::int AS ahead,
           count(p) FILTER (WHERE is_here AND p.waiting > 0)::int AS waiting,
           count(p) FILTER (WHERE is_here AND p.wanted > 0)::int AS wanting,
           coalesce(bool_or(
               is_here AND p.wanted > 0
               AND coalesce(p.last_slot_at, '-infinity') < coalesce(mine.last_slot_at, '-infinity')
           ), false) AS waited_longer
      FROM was
     CROSS JOIN floor(extract(epoch FROM was.at) / 10) AS turn
      JOIN domain_permits p
        ON p.domain_id = was.id AND p.holder <> %(holder)s AND p.expires_at > was.at
      LEFT JOIN domain_permits mine
        ON mine.domain_id = was.id AND mine.holder = %(holder)s
     CROSS JOIN LATERAL (
        SELECT p.expires_at
               > was.at + (%(permits_last)s - {ASKED_LATELY}) * interval '1 second' AS is_here
     ) AS lately
), placed AS (
    SELECT *, greatest(next_free, at, blocked_until) AS start FROM timed
), planned AS (
    -- several runners share the slots of the horizon; if there are too few, they take turns
    SELECT placed.*,
           CASE
               WHEN pace = 0 OR NOT is_active
                   OR start > at + least(%(patience)s, {LEAD} + %(slack)s) * interval '1 second'
                   OR (waited_longer AND pace * (wanting + 1) > %(horizon)s) THEN 0
               ELSE least(asked_slots, ceil(%(horizon)s / pace / (wanting + 1)))
           END::int AS slots,
           holders, taken, most_asked, ahead, waiting
      FROM placed, others
), reserved AS (
    UPDATE domains d
       SET next_slot_at = CASE
               WHEN slots = 0 THEN next_free
               ELSE start + (slots * pace + %(slack)s) * interval '1 second'
           END,
           slow_delay = slow,
           error_share = share,
           slowed_at = CASE
               WHEN is_sick OR slow_before < planned.slow_delay THEN at
               ELSE d.slowed_at
           END
      FROM planned
     WHERE d.id = planned.id
    RETURNING d.next_slot_at
), shared AS (
    SELECT *, coalesce(max_concurrent_requests, most_asked) AS limit_, holders + 1 AS parts
      FROM planned
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
    INSERT INTO domain_permits AS mine (
        domain_id, holder, permits, asked, waiting, wanted, last_slot_at, expires_at
    )
    SELECT id, %(holder)s, greatest(grant_, %(busy)s), %(concurrency)s, %(waiting)s,
           CASE
               WHEN start > at + %(patience)s * interval '1 second' THEN 0
               ELSE asked_slots - slots
           END,
           CASE WHEN slots > 0 THEN at END,
           at + %(permits_last)s * interval '1 second'
      FROM granted
    ON CONFLICT (domain_id, holder) DO UPDATE
       SET permits = excluded.permits, asked = excluded.asked, waiting = excluded.waiting,
           wanted = excluded.wanted, expires_at = excluded.expires_at,
           last_slot_at = coalesce(excluded.last_slot_at, mine.last_slot_at)
), gone AS (
    DELETE FROM domain_permits p
     USING was
     WHERE p.domain_id = was.id AND p.holder <> %(holder)s
       AND p.expires_at < was.at - interval '1 minute'
)
SELECT is_active,
       per_proxy_only,
       pace AS delay,
       pair_delay,
       slow AS slow_delay,
       extract(epoch FROM blocked_until)::float8 AS blocked_until,
       extract(epoch FROM start)::float8 AS starts_at,
       slots,
       grant_ AS permits,
       limit_ AS "limit",
       extract(epoch FROM at + %(permits_last)s * interval '1 second')::float8 AS expires_at,
       extract(epoch FROM reserved.next_slot_at)::float8 AS reserved_until,
       waiting AS others_waiting
  FROM granted, reserved
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
        SELECT greatest({PAIR_DELAY_OF}, CASE
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
    answers = wanted.answers
    judging = answers.good + answers.errors
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
        "waiting": wanted.waiting,
        "good": answers.good,
        "errors": answers.errors,
        "repeated_errors": answers.repeated_errors,
        "seen": answers.seen,
        # each answer moves the share of errors by one part of those that are remembered
        "kept_share": (1 - 1 / ANSWERS_REMEMBERED) ** judging,
        "new_share": answers.errors / judging if judging else 0.0,
        "horizon": wanted.horizon,
        "slack": wanted.slack,
        "permits_last": wanted.permits_last,
        **_returned(wanted.returned),
    }


def _returned(returned: Returned | None) -> dict[str, float]:
    if returned is None:
        return {"unused_from": 0.0, "reserved_until": 0.0}
    return {"unused_from": returned.unused_from, "reserved_until": returned.reserved_until}


async def block_domain(connection: Connection, domain_id: int, seconds: float) -> None:
    """Block requests to this domain for this long."""
    await connection.execute(
        """
        UPDATE domains
           SET blocked_until = greatest(
                   blocked_until, clock_timestamp() + %(seconds)s * interval '1 second'
               )
         WHERE id = %(id)s
        """,
        {"id": domain_id, "seconds": seconds},
    )


async def slow_domain(connection: Connection, domain_id: int, terms: Terms, *, seen: float) -> None:
    """Double the extra delay after a 429, unless that was done since a request left under `seen`.

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
               slowed_at = clock_timestamp()
         WHERE id = %(id)s AND slow_delay <= %(seen)s
        """,
        {
            "id": domain_id,
            "delay": terms.delay,
            "robots_delay": terms.robots_delay,
            "seen": seen,
        },
    )


async def return_slots(connection: Connection, domain_id: int, returned: Returned) -> None:
    """Give reserved slots back; no other runner has reserved any behind them yet."""
    await connection.execute(
        f"UPDATE domains d SET next_slot_at = {FREE_AT} WHERE d.id = %(domain_id)s",
        {"domain_id": domain_id, **_returned(returned)},
    )


async def delete_permits(
    connection: Connection, holder: UUID, domain_id: int | None = None
) -> None:
    """Give back the connections that a runner may use of one domain, or of all."""
    await connection.execute(
        """
        DELETE FROM domain_permits
         WHERE holder = %(holder)s
           AND domain_id = coalesce(%(domain_id)s, domain_id)
        """,
        {"holder": holder, "domain_id": domain_id},
    )
