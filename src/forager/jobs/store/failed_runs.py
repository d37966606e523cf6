"""Statements for runs that ended without success: by a worker, or by the watchdog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Made, Rows, Tuples
from forager.jobs.job import Job, Recovered
from forager.jobs.lifecycle import Status
from forager.jobs.store.reads import CHANNEL, COLUMNS

# The one predicate for retries, for a worker's own errors and for the watchdog alike.
MAY_RETRY: LiteralString = "(j.retry_count < j.max_retries AND NOT %(permanent)s)"

# Exponential, at most the limit, and between half and all of it, so that jobs that fell
# together do not come back together. The exponent is bounded: 2 ^ 1000 is an error.
BACKOFF: LiteralString = """
    least(%(delay_max)s, %(delay)s * 2 ^ least(j.retry_count, 30))
        * (0.5 + random() / 2) * interval '1 second'
"""

# The end of a run without success. A pausing job becomes paused.
END_RUN: LiteralString = f"""
    SET status = CASE
            WHEN j.status = 'paused' THEN 'paused'::job_status
            WHEN {MAY_RETRY} THEN 'pending'
            ELSE 'failed'
        END,
        retry_count = j.retry_count + (j.status = 'processing' AND {MAY_RETRY})::int,
        run_after = CASE WHEN {MAY_RETRY} THEN now() + {BACKOFF} ELSE j.run_after END,
        completed_at = CASE
            WHEN j.status = 'processing' AND NOT {MAY_RETRY} THEN now()
        END,
        error_message = CASE
            WHEN j.status = 'paused' THEN j.error_message ELSE %(error)s
        END,
        worker_id = NULL,
        lease = j.lease + 1
"""

LOG_END_OF_RUN: LiteralString = """
    INSERT INTO job_events (job_id, move, from_status, to_status, actor, reason, lease)
    SELECT id,
           CASE status WHEN 'pending' THEN 'retry later' WHEN 'failed' THEN 'fail' ELSE 'park' END,
           from_status, status, %(actor)s, %(error)s, lease
      FROM moved
"""


# Recovery of the jobs that the watchdog has locked as `stale`.
RECOVER: LiteralString = f"""
    moved AS (
        UPDATE crawl_jobs j {END_RUN}
          FROM stale
         WHERE j.id = stale.id
        RETURNING j.*, stale.status AS from_status
    ), logged AS ({LOG_END_OF_RUN}), woken AS (
        SELECT pg_notify('{CHANNEL}', '') FROM moved LIMIT 1
    )
    SELECT id, status, retry_count, max_retries FROM moved LEFT JOIN woken ON true
"""


async def end_failed_run(
    connection: Connection,
    job_id: UUID,
    *,
    lease: int,
    error: str,
    permanent: bool,
    actor: str,
    delay: float,
    delay_max: float,
) -> Job | None:
    """A run failed: back to pending while retries are left, else failed. None if not ours."""
    return await Rows(connection, Job).first(
        f"""
        WITH before AS (
            SELECT id, status
              FROM crawl_jobs
             WHERE id = %(id)s AND lease = %(lease)s AND status IN ('processing', 'paused')
               AND worker_id IS NOT NULL
               FOR NO KEY UPDATE
        ), moved AS (
            UPDATE crawl_jobs j {END_RUN}
              FROM before
             WHERE j.id = before.id
            RETURNING j.*, before.status AS from_status
        ), logged AS ({LOG_END_OF_RUN})
        SELECT {COLUMNS} FROM moved
        """,
        {
            "id": job_id,
            "lease": lease,
            "error": error,
            "permanent": permanent,
            "actor": actor,
            "delay": delay,
            "delay_max": delay_max,
        },
    )


async def select_stale(
    connection: Connection, *, stale_after: float
) -> list[tuple[UUID, datetime]]:
    """Jobs whose heartbeat is older than this, with that heartbeat."""
    return await Tuples(connection).all(
        """
        SELECT id, last_heartbeat
          FROM crawl_jobs
         WHERE worker_id IS NOT NULL
           AND last_heartbeat < now() - %s * interval '1 second'
        """,
        (stale_after,),
    )


async def recover_stale(
    connection: Connection,
    *,
    ids: Sequence[UUID],
    heartbeats: Sequence[datetime],
    stale_after: float,
    **end: Any,
) -> list[Recovered]:
    """Take jobs from dead workers. Staleness is tested again here, on the locked row."""
    return await _recover(
        connection,
        """
        (j.id, j.last_heartbeat) IN (
            SELECT * FROM unnest(%(ids)s::uuid[], %(heartbeats)s::timestamptz[])
        )
        AND j.worker_id IS NOT NULL
        AND j.last_heartbeat < now() - %(stale_after)s * interval '1 second'
        """,
        {"ids": list(ids), "heartbeats": list(heartbeats), "stale_after": stale_after, **end},
    )


async def recover_orphaned(
    connection: Connection, *, worker_ids: Sequence[UUID], **end: Any
) -> list[Recovered]:
    """Take the jobs of workers that are known to be dead."""
    return await _recover(
        connection, "j.worker_id = ANY(%(worker_ids)s)", {"worker_ids": list(worker_ids), **end}
    )


async def _recover(
    connection: Connection, of_dead: LiteralString, values: Mapping[str, Any]
) -> list[Recovered]:
    """`values`: the error, and the first and the longest delay of retries."""
    return await Made(
        connection, lambda id_, status, *rest: Recovered(id_, Status(status), *rest)
    ).all(
        f"""
        WITH stale AS (
            SELECT j.id, j.status
              FROM crawl_jobs j
             WHERE {of_dead} AND j.status IN ('processing', 'paused')
               FOR NO KEY UPDATE OF j SKIP LOCKED
        ), {RECOVER}
        """,
        {**values, "permanent": False, "actor": "watchdog"},
    )
