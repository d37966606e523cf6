"""SQL of proxies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from forager.backoff import backoff_sql
from forager.db.database import Connection
from forager.db.rows import RowArrays, Rows, Tuples, Values
from forager.fetch.proxies.proxy import EncryptedProxy, ProxyRecord, ProxyTally

_SEALED: LiteralString = """
    p.id, p.proxy_protocol AS scheme, p.proxy_url AS host, p.proxy_port AS port,
    p.proxy_username AS username, p.proxy_password AS password, p.allow_private
"""

_RECORD: LiteralString = """
    id, proxy_protocol AS scheme, proxy_url AS host, proxy_port AS port,
    proxy_username AS username, proxy_password IS NOT NULL AS has_password, allow_private,
    is_active, disabled_reason, success_count, failure_count, total_failures,
    avg_response_time_ms, last_used_at, last_success_at, last_failure_at, last_failure_reason,
    next_probe_at, region, cost_amount, cost_unit, cost_currency, created_at
"""

# A proxy with a free slot for this domain comes before one that must wait; then the least recently
# used one. `last_used_at` is compared again once the row is locked, so that a proxy that another
# process has picked meanwhile is not picked twice.
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
# a slow proxy pauses for its response time, so that it gets fewer requests
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
# locks, and could deadlock with another that locks rows by id.
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

# seconds before the first probe, and at most
_PROBE_DELAY = backoff_sql("p.probe_attempts", "30", "3600")
_TALLIES = RowArrays(
    "t", id="bigint", successes="int", failures="int", run="int", response_ms="float8",
    reason="text",
)  # fmt: skip


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
    """The id, and whether the proxy is new; a known one gets the new password and a probe."""
    return await Tuples(connection, tuple[int, bool]).one(
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


async def pick(
    connection: Connection,
    *,
    names: Sequence[str],
    exclude: Sequence[int],
    private: bool,
    region: str | None,
    shared: bool,
) -> EncryptedProxy | None:
    """The least recently used proxy; unless `shared`, one that no other process has picked."""
    return await Rows(connection, EncryptedProxy).first(
        f"{_SEEN}, {_ANY if shared else _UNPICKED} {_USE}",
        {"names": list(names), "exclude": list(exclude), "private": private, "region": region},
    )


# also in `consecutive_failures`, which workers of the previous version use: it keeps the number
# right while both versions run
_FAILURES_IN_A_ROW: LiteralString = (
    "CASE WHEN t.successes > 0 THEN 0 ELSE p.consecutive_failures END + t.run"
)


async def add_outcomes(
    connection: Connection, tallies: Mapping[int, ProxyTally], *, weight: int
) -> None:
    """Add to the counters; the average covers about the last `weight` successes."""
    await connection.execute(
        f"""
        WITH counted AS (
            SELECT * FROM {_TALLIES}
        ), held AS (
            -- in one order, so that two writers cannot wait for each other
            SELECT p.id FROM proxies p JOIN counted USING (id) ORDER BY p.id
               FOR NO KEY UPDATE OF p
        )
        UPDATE proxies p
           SET success_count = p.success_count + t.successes,
               total_failures = p.total_failures + t.failures,
               failure_count = {_FAILURES_IN_A_ROW},
               consecutive_failures = {_FAILURES_IN_A_ROW},
               probe_attempts = CASE WHEN t.successes > 0 THEN 0 ELSE p.probe_attempts END,
               avg_response_time_ms = CASE WHEN t.successes > 0
                   THEN (coalesce(p.avg_response_time_ms, 0) * least(p.success_count, %(weight)s)
                         + t.response_ms) / (least(p.success_count, %(weight)s) + t.successes)
                   ELSE p.avg_response_time_ms END,
               last_success_at = CASE WHEN t.successes > 0 THEN now() ELSE p.last_success_at END,
               last_failure_at = CASE WHEN t.failures > 0 THEN now() ELSE p.last_failure_at END,
               last_failure_reason = coalesce(t.reason, p.last_failure_reason)
          FROM counted t JOIN held ON held.id = t.id
         WHERE p.id = t.id
        """,
        {**_TALLIES.values(tallies.values(), id=list(tallies)), "weight": weight},
    )


async def disable_failing(
    connection: Connection, ids: Sequence[int], *, allowed: int, quiet: float
) -> list[ProxyRecord]:
    """Disable those with more failures in a row than allowed and no success for `quiet` seconds.

    A probe enables them again.
    """
    return await Rows(connection, ProxyRecord).all(
        f"""
        UPDATE proxies p
           SET is_active = false,
               disabled_reason = p.failure_count || ' failures in a row, the last: '
                                 || coalesce(p.last_failure_reason, 'unknown'),
               next_probe_at = now() + {_PROBE_DELAY},
               updated_at = now()
         WHERE p.id = ANY(%(ids)s) AND p.is_active AND p.failure_count > %(allowed)s
           -- many requests that fail at the same moment are one failure of the proxy
           AND coalesce(p.last_success_at, '-infinity') <= now() - %(quiet)s * interval '1 second'
        RETURNING {_RECORD}
        """,
        {"ids": list(ids), "allowed": allowed, "quiet": quiet},
    )


async def claim_probes(
    connection: Connection, *, limit: int, region: str | None
) -> list[EncryptedProxy]:
    """Failing proxies whose probe is due; the next one is scheduled with backoff."""
    return await Rows(connection, EncryptedProxy).all(
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
        {"limit": limit, "region": region},
    )


async def recover_proxy(connection: Connection, proxy_id: int) -> bool:
    """Enable a failing proxy again, unless it was disabled by hand meanwhile."""
    return await Tuples(connection).changed(
        """
        UPDATE proxies
           SET is_active = true, disabled_reason = NULL, failure_count = 0,
               consecutive_failures = 0, next_probe_at = NULL, updated_at = now()
         WHERE id = %s AND NOT is_active AND next_probe_at IS NOT NULL
        """,
        (proxy_id,),
    )


async def note_failed_probe(connection: Connection, proxy_id: int, reason: str) -> None:
    """Store why the test of a proxy failed."""
    await connection.execute(
        "UPDATE proxies SET last_failure_reason = %s, last_failure_at = now() WHERE id = %s",
        (reason, proxy_id),
    )


async def enable_proxy(connection: Connection, proxy_id: int) -> ProxyRecord | None:
    """Enable a proxy, and reset its failures."""
    return await Rows(connection, ProxyRecord).first(
        f"""
        UPDATE proxies
           SET is_active = true, disabled_reason = NULL, failure_count = 0,
               consecutive_failures = 0, probe_attempts = 0, next_probe_at = NULL,
               updated_at = now()
         WHERE id = %s
        RETURNING {_RECORD}
        """,
        (proxy_id,),
    )


async def disable_proxy(connection: Connection, proxy_id: int, reason: str) -> ProxyRecord | None:
    """Disable a proxy by hand: no probe enables it."""
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
    connection: Connection, proxy_id: int, columns: Mapping[str, Any]
) -> ProxyRecord | None:
    """Set columns of a proxy, and return it; None for an unknown one."""
    assignments = ", ".join([*(f"{name} = %({name})s" for name in columns), "updated_at = now()"])
    return await Rows(connection, ProxyRecord).first(
        f"UPDATE proxies SET {assignments} WHERE id = %(id)s RETURNING {_RECORD}",
        {**columns, "id": proxy_id},
    )


async def delete_proxy(connection: Connection, proxy_id: int) -> ProxyRecord | None:
    """Delete a proxy, and return it as it was; None for an unknown one."""
    return await Rows(connection, ProxyRecord).first(
        f"DELETE FROM proxies WHERE id = %s RETURNING {_RECORD}", (proxy_id,)
    )


async def select_records(connection: Connection, *, after: int, limit: int) -> list[ProxyRecord]:
    """Proxies by ID, after one."""
    return await Rows(connection, ProxyRecord).all(
        f"SELECT {_RECORD} FROM proxies WHERE id > %s ORDER BY id LIMIT %s", (after, limit)
    )


async def select_encrypted(connection: Connection, proxy_id: int) -> EncryptedProxy | None:
    """A proxy with its encrypted password."""
    return await Rows(connection, EncryptedProxy).first(
        f"SELECT {_SEALED} FROM proxies p WHERE p.id = %s", (proxy_id,)
    )


async def select_ids(connection: Connection) -> list[int]:
    """The IDs of all proxies."""
    return await Values(connection).all("SELECT id FROM proxies ORDER BY id")


async def any_private(connection: Connection) -> bool:
    """Whether any proxy may have a private address."""
    return await Values(connection, bool).one(
        "SELECT EXISTS (SELECT FROM proxies WHERE allow_private)"
    )
