"""Statements about proxies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from forager.db.database import Connection
from forager.db.rows import Rows, Values
from forager.fetch.proxies.record import ProxyRecord, SealedProxy, Tally

_SEALED: LiteralString = """
    p.id, p.proxy_protocol AS scheme, p.proxy_url AS host, p.proxy_port AS port,
    p.proxy_username AS username, p.proxy_password AS password, p.allow_private
"""

_RECORD: LiteralString = """
    id, proxy_protocol AS scheme, proxy_url AS host, proxy_port AS port,
    proxy_username AS username, proxy_password IS NOT NULL AS has_password, allow_private,
    is_active, disabled_reason, success_count, failure_count, consecutive_failures,
    avg_response_time_ms, last_used_at, last_success_at, last_failure_at, last_failure_reason,
    next_probe_at, region, cost_amount, cost_unit, cost_currency, created_at
"""

# What a change may name, and the column it goes to.
_SETTABLE: dict[str, LiteralString] = {
    "region": "region",
    "cost_amount": "cost_amount",
    "cost_unit": "cost_unit",
    "cost_currency": "cost_currency",
}

# A proxy whose slots for this domain are free comes before one that must wait; then the one
# that rested longest. The looks of `seen` are compared again once the row is locked: a proxy
# that another process picked between the two is not picked twice.
_SEEN: LiteralString = """
    WITH applied AS (
        SELECT id FROM domains
         WHERE domain_name = ANY(%(names)s) ORDER BY length(domain_name) DESC LIMIT 1
    ), seen AS MATERIALIZED (
        SELECT p.id, p.last_used_at, greatest(s.next_slot_at, now()) AS free_at
          FROM proxies p
          LEFT JOIN proxy_slots s
            ON s.proxy_id = p.id AND s.domain_id = (SELECT id FROM applied)
         WHERE p.is_active AND p.id <> ALL(%(exclude)s)
           AND (%(private)s OR NOT p.allow_private)
           AND (p.region IS NULL OR p.region = %(region)s)
    )
"""
# a slow proxy has to rest for as long as its answers take, so that it gets fewer requests
_TURN: LiteralString = (
    "seen.last_used_at + coalesce(p.avg_response_time_ms, 0) * interval '1 millisecond'"
)
_UNPICKED: LiteralString = f"""
    chosen AS (
        SELECT p.id
          FROM seen JOIN proxies p ON p.id = seen.id
         WHERE p.is_active AND p.last_used_at IS NOT DISTINCT FROM seen.last_used_at
         ORDER BY seen.free_at, {_TURN} NULLS FIRST, p.id
         LIMIT 1
           FOR NO KEY UPDATE OF p SKIP LOCKED
    )
"""
# Without a lock: a transaction that finds its row changed would continue with the next, hold both
# and then wait for another that locks them in the order of their ids.
_ANY: LiteralString = f"""
    chosen AS (
        SELECT p.id
          FROM seen JOIN proxies p ON p.id = seen.id
         WHERE p.is_active
         ORDER BY seen.free_at, {_TURN} NULLS FIRST, p.id
         LIMIT 1
    )
"""
_USE: LiteralString = f"""
    UPDATE proxies p SET last_used_at = clock_timestamp()
      FROM chosen WHERE p.id = chosen.id
    RETURNING {_SEALED}
"""

_PROBE_DELAY: LiteralString = """
    make_interval(secs => least(%(first)s * power(2, least(p.probe_attempts, 30)), %(longest)s))
"""


async def upsert_proxy(
    connection: Connection,
    *,
    scheme: str,
    host: str,
    port: int,
    username: str | None,
    password: bytes | None,
    allow_private: bool,
) -> tuple[int, bool]:
    """The proxy's id, and whether it is new; a known one gets the new password, and a probe."""
    cursor = await connection.execute(
        """
        INSERT INTO proxies AS p (proxy_protocol, proxy_url, proxy_port, proxy_username,
                                  proxy_password, allow_private)
        VALUES (%s, %s, %s, %s, %s, %s)
        ON CONFLICT (proxy_protocol, proxy_url, proxy_port, coalesce(proxy_username, ''))
        DO UPDATE SET proxy_username = excluded.proxy_username,
                      proxy_password = excluded.proxy_password,
                      allow_private = excluded.allow_private,
                      next_probe_at = CASE WHEN p.next_probe_at IS NOT NULL THEN now() END,
                      updated_at = now()
        RETURNING id, xmax = 0
        """,
        (scheme, host, port, username, password, allow_private),
    )
    row = await cursor.fetchone()
    assert row is not None
    return row[0], row[1]


async def pick(
    connection: Connection,
    *,
    names: Sequence[str],
    exclude: Sequence[int],
    private: bool,
    region: str | None,
    shared: bool,
) -> SealedProxy | None:
    """The least recently used proxy; unless `shared`, one that no other process picks now."""
    return await Rows(connection, SealedProxy).first(
        f"{_SEEN}, {_ANY if shared else _UNPICKED} {_USE}",
        {
            "names": list(names),
            "exclude": list(exclude),
            "private": private,
            "region": region,
        },
    )


async def add_outcomes(
    connection: Connection, tallies: Mapping[int, Tally], *, weight: int
) -> None:
    """Add what happened to the counters; the average leans on the last `weight` successes."""
    told = sorted(tallies.items())
    await connection.execute(
        """
        WITH told AS (
            SELECT *
              FROM unnest(%(ids)s::bigint[], %(successes)s::int[], %(failures)s::int[],
                          %(runs)s::int[], %(ms)s::float8[], %(reasons)s::text[])
                AS t (id, successes, failures, run, ms, reason)
        ), held AS (
            -- in one order, so that two writers cannot wait for each other
            SELECT p.id FROM proxies p JOIN told USING (id) ORDER BY p.id
               FOR NO KEY UPDATE OF p
        )
        UPDATE proxies p
           SET success_count = p.success_count + t.successes,
               failure_count = p.failure_count + t.failures,
               consecutive_failures =
                   CASE WHEN t.successes > 0 THEN 0 ELSE p.consecutive_failures END + t.run,
               probe_attempts = CASE WHEN t.successes > 0 THEN 0 ELSE p.probe_attempts END,
               avg_response_time_ms = CASE WHEN t.successes > 0
                   THEN (coalesce(p.avg_response_time_ms, 0) * least(p.success_count, %(weight)s)
                         + t.ms) / (least(p.success_count, %(weight)s) + t.successes)
                   ELSE p.avg_response_time_ms END,
               last_success_at = CASE WHEN t.successes > 0 THEN now() ELSE p.last_success_at END,
               last_failure_at = CASE WHEN t.failures > 0 THEN now() ELSE p.last_failure_at END,
               last_failure_reason = coalesce(t.reason, p.last_failure_reason)
          FROM told t JOIN held ON held.id = t.id
         WHERE p.id = t.id
        """,
        {
            "ids": [proxy_id for proxy_id, _ in told],
            "successes": [tally.successes for _, tally in told],
            "failures": [tally.failures for _, tally in told],
            "runs": [tally.run for _, tally in told],
            "ms": [tally.response_ms for _, tally in told],
            "reasons": [tally.reason for _, tally in told],
            "weight": weight,
        },
    )


async def disable_failing(
    connection: Connection,
    ids: Sequence[int],
    *,
    allowed: int,
    quiet: float,
    first: float,
    longest: float,
) -> list[ProxyRecord]:
    """Turn off those with more failures in a row than allowed and no success for `quiet` seconds.

    A probe turns them on again.
    """
    return await Rows(connection, ProxyRecord).all(
        f"""
        UPDATE proxies p
           SET is_active = false,
               disabled_reason = p.consecutive_failures || ' failures in a row, the last: '
                                 || coalesce(p.last_failure_reason, 'unknown'),
               next_probe_at = now() + {_PROBE_DELAY},
               updated_at = now()
         WHERE p.id = ANY(%(ids)s) AND p.is_active AND p.consecutive_failures > %(allowed)s
           -- many requests that fail at the same moment are one failure of the proxy
           AND coalesce(p.last_success_at, '-infinity') <= now() - %(quiet)s * interval '1 second'
        RETURNING {_RECORD}
        """,
        {
            "ids": list(ids),
            "allowed": allowed,
            "quiet": quiet,
            "first": first,
            "longest": longest,
        },
    )


async def claim_probes(
    connection: Connection, *, limit: int, first: float, longest: float, region: str | None
) -> list[SealedProxy]:
    """Failing proxies whose probe is due; the next one is set at once, later each time."""
    return await Rows(connection, SealedProxy).all(
        f"""
        WITH due AS (
            SELECT id FROM proxies
             WHERE NOT is_active AND next_probe_at <= now()
               AND (region IS NULL OR region = %(region)s)
             ORDER BY next_probe_at LIMIT %(limit)s
               FOR NO KEY UPDATE SKIP LOCKED
        )
        UPDATE proxies p
           SET probe_attempts = p.probe_attempts + 1, next_probe_at = now() + {_PROBE_DELAY}
          FROM due
         WHERE p.id = due.id
        RETURNING {_SEALED}
        """,
        {"limit": limit, "first": first, "longest": longest, "region": region},
    )


async def recover_proxy(connection: Connection, proxy_id: int) -> bool:
    """Turn a failing proxy on again; not one that a person has disabled meanwhile."""
    cursor = await connection.execute(
        """
        UPDATE proxies
           SET is_active = true, disabled_reason = NULL, consecutive_failures = 0,
               next_probe_at = NULL, updated_at = now()
         WHERE id = %s AND NOT is_active AND next_probe_at IS NOT NULL
        """,
        (proxy_id,),
    )
    return cursor.rowcount == 1


async def note_failed_probe(connection: Connection, proxy_id: int, reason: str) -> None:
    await connection.execute(
        "UPDATE proxies SET last_failure_reason = %s, last_failure_at = now() WHERE id = %s",
        (reason, proxy_id),
    )


async def enable_proxy(connection: Connection, proxy_id: int) -> ProxyRecord | None:
    """Turn on, with no failure remembered against it."""
    return await Rows(connection, ProxyRecord).first(
        f"""
        UPDATE proxies
           SET is_active = true, disabled_reason = NULL, consecutive_failures = 0,
               probe_attempts = 0, next_probe_at = NULL, updated_at = now()
         WHERE id = %s
        RETURNING {_RECORD}
        """,
        (proxy_id,),
    )


async def disable_proxy(connection: Connection, proxy_id: int, reason: str) -> ProxyRecord | None:
    """Turn off until a person turns it on: no probe brings it back."""
    return await Rows(connection, ProxyRecord).first(
        f"""
        UPDATE proxies
           SET is_active = false, disabled_reason = %s, next_probe_at = NULL, updated_at = now()
         WHERE id = %s
        RETURNING {_RECORD}
        """,
        (reason, proxy_id),
    )


async def update_proxy(
    connection: Connection, proxy_id: int, changes: Mapping[str, Any]
) -> ProxyRecord | None:
    """Set what is named in `changes`."""
    assignments: LiteralString = ", ".join(
        [*(f"{_SETTABLE[name]} = %({name})s" for name in changes), "updated_at = now()"]
    )
    return await Rows(connection, ProxyRecord).first(
        f"UPDATE proxies SET {assignments} WHERE id = %(id)s RETURNING {_RECORD}",
        {**changes, "id": proxy_id},
    )


async def delete_proxy(connection: Connection, proxy_id: int) -> ProxyRecord | None:
    return await Rows(connection, ProxyRecord).first(
        f"DELETE FROM proxies WHERE id = %s RETURNING {_RECORD}", (proxy_id,)
    )


async def select_records(connection: Connection, *, after: int, limit: int) -> list[ProxyRecord]:
    return await Rows(connection, ProxyRecord).all(
        f"SELECT {_RECORD} FROM proxies WHERE id > %s ORDER BY id LIMIT %s", (after, limit)
    )


async def select_sealed(connection: Connection, ids: Sequence[int]) -> list[SealedProxy]:
    return await Rows(connection, SealedProxy).all(
        f"SELECT {_SEALED} FROM proxies p WHERE p.id = ANY(%s) ORDER BY p.id", (list(ids),)
    )


async def select_ids(connection: Connection) -> list[int]:
    return await Values(connection).all("SELECT id FROM proxies ORDER BY id")


async def any_private(connection: Connection) -> bool:
    value: bool = await Values(connection).one(
        "SELECT EXISTS (SELECT FROM proxies WHERE allow_private)"
    )
    return value
