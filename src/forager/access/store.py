"""SQL of access: keys, quotas, requests per minute, and stored answers."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from forager.access.key import ApiKey, FoundKey
from forager.access.quota import PageSpending, Quota, QuotaUsage
from forager.db.database import Connection
from forager.db.retention import OldRows
from forager.db.rows import Rows, Tuples, Values

# --- keys ----------------------------------------------------------------------------------------

_COLUMNS: LiteralString = """
    id, name, user_id, (SELECT o.name FROM owners o WHERE o.user_id = api_keys.user_id) AS owner,
    scope, visibility, created_at, expires_at, revoked_at, last_used_at,
    CASE WHEN revoked_at IS NOT NULL THEN 'revoked'
         WHEN expires_at <= now() THEN 'expired'
         ELSE 'active' END AS state
"""


async def insert_key(
    connection: Connection,
    *,
    key_id: str,
    secret_hash: bytes,
    name: str,
    user_id: UUID,
    scope: str,
    visibility: str,
    expires_in: float | None,
) -> ApiKey:
    """Add a key, and return it as it is listed; `expires_in` is in seconds."""
    return await Rows(connection, ApiKey).one(
        f"""
        INSERT INTO api_keys (id, secret_hash, name, user_id, scope, visibility, expires_at)
        VALUES (%s, %s, %s, %s, %s, %s, now() + %s::float8 * interval '1 second')
        RETURNING {_COLUMNS}
        """,
        (key_id, secret_hash, name, user_id, scope, visibility, expires_in),
    )


async def select_owner(connection: Connection, name: str) -> UUID | None:
    """The owner with this name."""
    return await Values(connection).first("SELECT user_id FROM owners WHERE name = %s", (name,))


async def insert_owner(connection: Connection, user_id: UUID, name: str) -> UUID:
    """Add an owner with a name; returns the owner that has the name already."""
    owner: UUID = await Values(connection).one(
        """
        INSERT INTO owners AS o (user_id, name) VALUES (%s, %s)
        ON CONFLICT (name) DO UPDATE SET name = o.name
        RETURNING user_id
        """,
        (user_id, name),
    )
    return owner


async def find_key(connection: Connection, key_id: str) -> FoundKey | None:
    """A key with its hash and its owner's quota; records every few minutes that it was used."""
    cursor = await connection.execute(
        f"""
        WITH used AS (
            UPDATE api_keys
               SET last_used_at = now()
             WHERE id = %(id)s
               AND (last_used_at IS NULL OR last_used_at < now() - interval '5 minutes')
        )
        SELECT {_COLUMNS}, secret_hash, q.active_jobs, q.pages_per_job, q.pages_per_day,
               q.requests_per_minute
          FROM api_keys
          LEFT JOIN owner_quotas q USING (user_id)
         WHERE id = %(id)s
        """,
        {"id": key_id},
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    names = [column.name for column in cursor.description or ()]
    secret = names.index("secret_hash")
    key = ApiKey(**dict(zip(names[:secret], row, strict=False)))
    return FoundKey(key, row[secret], Quota(*row[secret + 1 :]))


async def select_key(connection: Connection, key_id: str) -> ApiKey | None:
    """A key by its ID, also if it is revoked or expired."""
    return await Rows(connection, ApiKey).first(
        f"SELECT {_COLUMNS} FROM api_keys WHERE id = %s", (key_id,)
    )


async def select_keys(
    connection: Connection, *, before: tuple[datetime, str] | None, limit: int
) -> list[ApiKey]:
    """Keys, newest first; `before` is the time and ID of the last one of the page before."""
    older: LiteralString = "WHERE (created_at, id) < (%(at)s, %(id)s)" if before else ""
    at, key_id = before or (None, None)
    return await Rows(connection, ApiKey).all(
        f"""
        SELECT {_COLUMNS} FROM api_keys {older}
         ORDER BY created_at DESC, id DESC LIMIT %(limit)s
        """,
        {"at": at, "id": key_id, "limit": limit},
    )


async def revoke_key(connection: Connection, key_id: str) -> ApiKey | None:
    """Revoke a key, and return it; the time of an earlier revocation stays."""
    return await Rows(connection, ApiKey).first(
        f"""
        UPDATE api_keys SET revoked_at = coalesce(revoked_at, now())
         WHERE id = %s RETURNING {_COLUMNS}
        """,
        (key_id,),
    )


async def any_key(connection: Connection) -> bool:
    """Whether any key was ever created: without one, the API needs none on this machine."""
    return bool(await Values(connection).one("SELECT EXISTS (SELECT FROM api_keys)"))


# --- quotas --------------------------------------------------------------------------------------


async def upsert_quota(connection: Connection, user_id: UUID, quota: Quota) -> None:
    """Set all limits of an owner."""
    await connection.execute(
        """
        INSERT INTO owner_quotas
            (user_id, active_jobs, pages_per_job, pages_per_day, requests_per_minute)
        VALUES (%s, %s, %s, %s, %s)
        ON CONFLICT (user_id) DO UPDATE
           SET active_jobs = excluded.active_jobs,
               pages_per_job = excluded.pages_per_job,
               pages_per_day = excluded.pages_per_day,
               requests_per_minute = excluded.requests_per_minute,
               updated_at = now()
        """,
        (user_id, *astuple(quota)),
    )


async def select_quota(connection: Connection, user_id: UUID) -> Quota | None:
    """The limits of an owner; None if there are none."""
    return await Rows(connection, Quota).first(
        """
        SELECT active_jobs, pages_per_job, pages_per_day, requests_per_minute
          FROM owner_quotas
         WHERE user_id = %s
        """,
        (user_id,),
    )


async def lock_owner(connection: Connection, user_id: UUID) -> None:
    """Until the transaction ends, no other one counts for this owner."""
    await connection.execute(
        "SELECT FROM owner_quotas WHERE user_id = %s FOR NO KEY UPDATE", (user_id,)
    )


async def select_usage(
    connection: Connection, user_id: UUID, *, apart_from: UUID | None = None
) -> QuotaUsage:
    """Active jobs, and the pages of jobs that were begun, retried or resumed today.

    A running job counts with all pages it may still fetch, a finished one with those it fetched.
    """
    return await Rows(connection, QuotaUsage).one(
        """
        WITH today AS (SELECT date_trunc('day', now(), 'UTC') AS began),
        counted AS (
            SELECT j.id, j.status, j.payload
              FROM crawl_jobs j, today
             WHERE j.user_id = %(user_id)s AND j.created_at >= today.began
            UNION ALL
            SELECT j.id, j.status, j.payload
              FROM crawl_jobs j, today
             WHERE j.user_id = %(user_id)s AND j.created_at < today.began
               AND (j.status IN ('pending', 'processing', 'paused')
                    OR j.completed_at >= today.began)
               AND j.payload ->> 'granted_on' = (today.began AT TIME ZONE 'UTC')::date::text
        )
        SELECT (SELECT count(*)::int
                  FROM crawl_jobs
                 WHERE user_id = %(user_id)s AND status IN ('pending', 'processing', 'paused')
                   AND id IS DISTINCT FROM %(apart_from)s
               ) AS active_jobs,
               (SELECT coalesce(sum(greatest(0,
                           CASE WHEN j.status IN ('pending', 'processing', 'paused')
                                THEN greatest(least((j.payload ->> 'max_pages')::bigint,
                                                    (j.payload ->> 'granted_pages')::bigint),
                                              coalesce(s.fetched + s.unchanged, 0))
                                ELSE coalesce(s.fetched + s.unchanged, 0) END
                           - coalesce((j.payload ->> 'spent_before')::bigint, 0))), 0)::bigint
                  FROM counted j
                  LEFT JOIN crawl_states s ON s.job_id = j.id
                 WHERE j.id IS DISTINCT FROM %(apart_from)s
               ) AS pages_today,
               extract(epoch FROM today.began + interval '1 day' - now())::float8
                   AS seconds_left_today
          FROM today
        """,
        {"user_id": user_id, "apart_from": apart_from},
    )


async def select_spending(connection: Connection, job_id: UUID) -> PageSpending:
    """What a job has fetched; of one that was begun or granted pages today, what counts today."""
    return await Rows(connection, PageSpending).one(
        """
        WITH today AS (SELECT date_trunc('day', now(), 'UTC') AS began)
        SELECT coalesce(s.fetched + s.unchanged, 0) AS pages,
               CASE WHEN j.payload ->> 'granted_on' = (today.began AT TIME ZONE 'UTC')::date::text
                      OR j.created_at >= today.began
                    THEN greatest(0, coalesce(s.fetched + s.unchanged, 0)
                                     - coalesce((j.payload ->> 'spent_before')::bigint, 0))
                    ELSE 0 END AS pages_today,
               (today.began AT TIME ZONE 'UTC')::date AS today
          FROM today
          JOIN crawl_jobs j ON j.id = %(job_id)s
          LEFT JOIN crawl_states s ON s.job_id = j.id
        """,
        {"job_id": job_id},
    )


async def select_source_owner(connection: Connection, source_id: str) -> tuple[UUID | None] | None:
    """The owner of a source, also of one that is being deleted; None if there is no such source."""
    cursor = await connection.execute("SELECT user_id FROM sources WHERE id = %s", (source_id,))
    return await cursor.fetchone()


# --- requests per minute -------------------------------------------------------------------------

# The state is one time: when every request that was taken is available again. It is stored beside
# the answers, under a key that no request can have (spaces are not allowed), and deleted with them.
PERMITS_KEY = "requests of a minute"


async def take_permits(connection: Connection, user_id: UUID, *, seconds: float) -> bool:
    """Take as many requests as become available in this time; False if fewer are left."""
    return await Tuples(connection).changed(
        """
        INSERT INTO idempotency_keys AS k (user_id, key, request_hash, created_at)
        VALUES (%(user_id)s, %(key)s, '', now() + %(seconds)s * interval '1 second')
        ON CONFLICT (user_id, key) DO UPDATE
           SET created_at = greatest(k.created_at, now()) + %(seconds)s * interval '1 second'
         WHERE greatest(k.created_at, now()) + %(seconds)s * interval '1 second'
               <= now() + interval '60.001 seconds'
        """,
        {"user_id": user_id, "key": PERMITS_KEY, "seconds": seconds},
    )


async def select_seconds_taken(connection: Connection, user_id: UUID) -> float:
    """Seconds until all requests are available again."""
    seconds = await Values(connection).first(
        """
        SELECT greatest(0, extract(epoch FROM created_at - now()))::float8
          FROM idempotency_keys
         WHERE user_id = %s AND key = %s
        """,
        (user_id, PERMITS_KEY),
    )
    return seconds or 0.0


# --- stored answers ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer to the first request with an idempotency key."""

    request_hash: bytes
    status: int
    answer: bytes
    sealed: bool


async def reserve_answer(
    connection: Connection, user_id: UUID, key: str, request_hash: bytes, *, kept_for: float
) -> bool:
    """Take a key for this transaction; False if it was answered already.

    While another transaction has it, this waits for that one to end.
    """
    return await Tuples(connection).changed(
        """
        INSERT INTO idempotency_keys AS k (user_id, key, request_hash)
        VALUES (%(user_id)s, %(key)s, %(request_hash)s)
        ON CONFLICT (user_id, key) DO UPDATE
           SET request_hash = excluded.request_hash, status = NULL, answer = NULL,
               sealed = false, created_at = now()
         WHERE k.created_at < now() - %(kept_for)s * interval '1 second'
        """,
        {"user_id": user_id, "key": key, "request_hash": request_hash, "kept_for": kept_for},
    )


async def insert_answer(
    connection: Connection, user_id: UUID, key: str, *, status: int, answer: bytes, sealed: bool
) -> None:
    """Store the answer of a request whose idempotency key is reserved."""
    await connection.execute(
        """
        UPDATE idempotency_keys SET status = %s, answer = %s, sealed = %s
         WHERE user_id = %s AND key = %s
        """,
        (status, answer, sealed, user_id, key),
    )


async def select_answer(connection: Connection, user_id: UUID, key: str) -> StoredAnswer | None:
    """What is known of an idempotency key."""
    return await Rows(connection, StoredAnswer).first(
        """
        SELECT request_hash, status, answer, sealed
          FROM idempotency_keys
         WHERE user_id = %s AND key = %s
        """,
        (user_id, key),
    )


EXPIRED_ANSWERS = OldRows(
    "idempotency_keys", "t.created_at < now() - %(older_than)s * interval '1 second'", key="ctid"
)
