"""Statements on quotas, and on what is counted against them."""

from __future__ import annotations

from uuid import UUID

from psycopg.rows import class_row

from forager.access.quota import Quota, Spending, Usage
from forager.db.database import Connection


async def upsert_quota(connection: Connection, user_id: UUID, quota: Quota) -> None:
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
        (
            user_id,
            quota.active_jobs,
            quota.pages_per_job,
            quota.pages_per_day,
            quota.requests_per_minute,
        ),
    )


async def select_quota(connection: Connection, user_id: UUID) -> Quota | None:
    cursor = connection.cursor(row_factory=class_row(Quota))
    await cursor.execute(
        """
        SELECT active_jobs, pages_per_job, pages_per_day, requests_per_minute
          FROM owner_quotas
         WHERE user_id = %s
        """,
        (user_id,),
    )
    return await cursor.fetchone()


async def lock_owner(connection: Connection, user_id: UUID) -> None:
    """Until the end of the transaction nobody else counts for this owner."""
    await connection.execute(
        "SELECT FROM owner_quotas WHERE user_id = %s FOR NO KEY UPDATE", (user_id,)
    )


async def select_usage(
    connection: Connection, user_id: UUID, *, apart_from: UUID | None = None
) -> Usage:
    """Active jobs, and the pages of jobs that were begun, retried or resumed today.

    A job that goes on counts with all it may still fetch, one that has ended with what it did.
    """
    cursor = connection.cursor(row_factory=class_row(Usage))
    await cursor.execute(
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
    usage = await cursor.fetchone()
    assert usage is not None
    return usage


async def select_spending(connection: Connection, job_id: UUID) -> Spending:
    """What a job has fetched; of one that was begun or granted pages today, what counts today."""
    cursor = connection.cursor(row_factory=class_row(Spending))
    await cursor.execute(
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
    spending = await cursor.fetchone()
    assert spending is not None
    return spending


async def select_source_owner(connection: Connection, source_id: str) -> tuple[UUID | None] | None:
    """The owner of a source, also of one that is being deleted; None if there is no such source."""
    cursor = await connection.execute("SELECT user_id FROM sources WHERE id = %s", (source_id,))
    row = await cursor.fetchone()
    return None if row is None else (row[0],)
