"""The queue's SQL: one statement per function, no decisions. `queue.py` decides."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import class_row, scalar_row
from psycopg.types.json import Jsonb

from forager.db.database import Connection
from forager.jobs.job import Held, Job, JobEvent, NewJob, Recovered, StateCount
from forager.jobs.lifecycle import Move, Status

CHANNEL = "forager_jobs"

COLUMNS: LiteralString = """
    id, kind, payload, priority, status, worker_id, lease, progress_percentage, created_at,
    run_after, started_at, completed_at, last_heartbeat, retry_count, max_retries, error_message,
    stop_reason, source_id, user_id
"""

# The one predicate for retries, for a worker's own errors and for the watchdog alike.
MAY_RETRY: LiteralString = "(j.retry_count < j.max_retries AND NOT %(permanent)s)"

# Exponential, at most the limit, and between half and all of it, so that jobs that fell
# together do not come back together. The exponent is bounded: 2 ^ 1000 is an error.
BACKOFF: LiteralString = """
    least(%(delay_max)s, %(delay)s * 2 ^ least(j.retry_count, 30))
        * (0.5 + random() / 2) * interval '1 second'
"""

# What becomes of a job whose run ended without success. A pausing job simply is paused then.
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


def _jobs(connection: Connection) -> AsyncCursor[Job]:
    return connection.cursor(row_factory=class_row(Job))


# --- putting jobs in -----------------------------------------------------------------------


async def insert_jobs(
    connection: Connection, jobs: Sequence[tuple[UUID, NewJob]], *, actor: str
) -> list[Job]:
    """Insert jobs and wake the workers; a source that has an active job is passed over."""
    cursor = _jobs(connection)
    await cursor.execute(
        f"""
        WITH inserted AS (
            INSERT INTO crawl_jobs
                (id, kind, payload, priority, max_retries, source_id, user_id, run_after)
            SELECT n.id, n.kind, n.payload, n.priority, n.max_retries, n.source_id, n.user_id,
                   now() + n.delay * interval '1 second'
              FROM unnest(%(ids)s::uuid[], %(kinds)s::text[], %(payloads)s::jsonb[],
                          %(priorities)s::int[], %(max_retries)s::int[], %(sources)s::text[],
                          %(users)s::uuid[], %(delays)s::float8[])
                   AS n (id, kind, payload, priority, max_retries, source_id, user_id, delay)
            ON CONFLICT (source_id)
                WHERE source_id IS NOT NULL AND status IN ('pending', 'processing', 'paused')
                DO NOTHING
            RETURNING *
        ), logged AS (
            INSERT INTO job_events (job_id, move, from_status, to_status, actor, lease)
            SELECT id, 'enqueue', NULL, status, %(actor)s, lease FROM inserted
        ), woken AS (
            SELECT pg_notify('{CHANNEL}', '') FROM inserted LIMIT 1
        )
        SELECT {COLUMNS} FROM inserted LEFT JOIN woken ON true
        """,
        {
            "ids": [job_id for job_id, _ in jobs],
            "kinds": [job.kind for _, job in jobs],
            "payloads": [Jsonb(job.payload) for _, job in jobs],
            "priorities": [job.priority for _, job in jobs],
            "max_retries": [job.max_retries for _, job in jobs],
            "sources": [job.source_id for _, job in jobs],
            "users": [job.user_id for _, job in jobs],
            "delays": [job.delay for _, job in jobs],
            "actor": actor,
        },
    )
    return await cursor.fetchall()


# --- reading -------------------------------------------------------------------------------


async def select_job(connection: Connection, job_id: UUID) -> Job | None:
    cursor = _jobs(connection)
    await cursor.execute(f"SELECT {COLUMNS} FROM crawl_jobs WHERE id = %s", (job_id,))
    return await cursor.fetchone()


async def select_active_job_of_source(connection: Connection, source_id: str) -> Job | None:
    cursor = _jobs(connection)
    await cursor.execute(
        f"""
        SELECT {COLUMNS} FROM crawl_jobs
         WHERE source_id = %s AND status IN ('pending', 'processing', 'paused')
        """,
        (source_id,),
    )
    return await cursor.fetchone()


async def select_jobs_by_prefix(connection: Connection, low: UUID, high: UUID) -> list[UUID]:
    """Up to two ids in a range: enough to know that a shortened id is not unique."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        "SELECT id FROM crawl_jobs WHERE id BETWEEN %s AND %s ORDER BY id LIMIT 2", (low, high)
    )
    return await cursor.fetchall()


async def select_jobs(
    connection: Connection,
    *,
    statuses: Sequence[Status] | None,
    kind: str | None,
    source_id: str | None,
    user_id: UUID | None,
    before: tuple[datetime, UUID] | None,
    limit: int,
) -> list[Job]:
    """Jobs, newest first. Only conditions that are asked for are sent: each can use an index."""
    conditions: dict[LiteralString, Any] = {
        "status = ANY(%s::job_status[])": list(statuses) if statuses else None,
        "kind = %s": kind,
        "source_id = %s": source_id,
        "user_id = %s": user_id,
    }
    used = {text: value for text, value in conditions.items() if value is not None}
    where: list[LiteralString] = list(used)
    values = list(used.values())
    if before is not None:
        where.append("(created_at, id) < (%s, %s)")
        values += before
    cursor = _jobs(connection)
    filters: LiteralString = "WHERE " + " AND ".join(where) if where else ""
    await cursor.execute(
        f"SELECT {COLUMNS} FROM crawl_jobs {filters} ORDER BY created_at DESC, id DESC LIMIT %s",
        (*values, limit),
    )
    return await cursor.fetchall()


async def select_events(
    connection: Connection, job_id: UUID, *, after: int, limit: int
) -> list[JobEvent]:
    cursor = connection.cursor(row_factory=class_row(JobEvent))
    await cursor.execute(
        """
        SELECT id, job_id, at, move, from_status, to_status, actor, reason, lease
          FROM job_events
         WHERE job_id = %s AND id > %s
         ORDER BY id
         LIMIT %s
        """,
        (job_id, after, limit),
    )
    return await cursor.fetchall()


async def count_jobs(connection: Connection) -> list[tuple[Status, int]]:
    cursor = await connection.execute("SELECT status, count(*) FROM crawl_jobs GROUP BY status")
    return [(Status(status), count) for status, count in await cursor.fetchall()]


async def sum_pending_work(connection: Connection) -> list[StateCount]:
    """Jobs that are not finished, and the work their last commits left to do."""
    cursor = await connection.execute(
        """
        SELECT j.status, count(*), coalesce(sum(s.total_pending), 0)::bigint, min(j.created_at)
          FROM crawl_jobs j
          LEFT JOIN crawl_states s ON s.job_id = j.id
         WHERE j.status IN ('pending', 'processing', 'paused')
         GROUP BY j.status
         ORDER BY j.status
        """
    )
    return [StateCount(Status(row[0]), *row[1:]) for row in await cursor.fetchall()]


# --- moves ---------------------------------------------------------------------------------


async def claim_jobs(
    connection: Connection,
    *,
    worker_id: UUID,
    kinds: Sequence[str],
    limit: int,
    schema: str,
    only: UUID | None = None,
) -> list[Job]:
    """Take the next due jobs. A worker of another schema version gets none.

    The subquery is a CTE because PostgreSQL may run a joined LIMIT twice and take too many.
    """
    this_one: LiteralString = "AND id = %(only)s" if only else ""
    cursor = _jobs(connection)
    await cursor.execute(
        f"""
        WITH next AS MATERIALIZED (
            SELECT id
              FROM crawl_jobs
             WHERE status = 'pending'
               AND run_after <= now()
               AND kind = ANY(%(kinds)s)
               AND (SELECT version_num FROM alembic_version) = %(schema)s
               {this_one}
             ORDER BY priority DESC, created_at, id
             LIMIT %(limit)s
               FOR NO KEY UPDATE SKIP LOCKED
        ), moved AS (
            UPDATE crawl_jobs j
               SET status = 'processing',
                   worker_id = %(worker_id)s,
                   lease = lease + 1,
                   started_at = coalesce(started_at, now()),
                   last_heartbeat = now()
              FROM next
             WHERE j.id = next.id
            RETURNING j.*
        ), logged AS (
            INSERT INTO job_events (job_id, move, from_status, to_status, actor, lease)
            SELECT id, 'claim', 'pending', status, %(actor)s, lease FROM moved
        )
        SELECT {COLUMNS} FROM moved ORDER BY priority DESC, created_at, id
        """,
        {
            "kinds": list(kinds),
            "schema": schema,
            "limit": limit,
            "only": only,
            "worker_id": worker_id,
            "actor": f"worker {worker_id}",
        },
    )
    return await cursor.fetchall()


async def apply_move(
    connection: Connection,
    job_id: UUID,
    move: Move,
    *,
    actor: str,
    lease: int | None = None,
    reason: str | None = None,
    stop_reason: str | None = None,
    delay: float = 0.0,
) -> Job | None:
    """Make one move if the job's state, lease and worker allow it; None if they do not."""
    cursor = _jobs(connection)
    await cursor.execute(
        f"""
        WITH before AS (
            SELECT id, status
              FROM crawl_jobs
             WHERE id = %(id)s
               AND status = ANY(%(sources)s::job_status[])
               AND (%(lease)s::bigint IS NULL OR lease = %(lease)s)
               AND (%(needs_worker)s::bool IS NULL
                    OR (worker_id IS NOT NULL) = %(needs_worker)s)
               FOR NO KEY UPDATE
        ), moved AS (
            UPDATE crawl_jobs j
               SET status = %(target)s::job_status,
                   worker_id = CASE WHEN %(keeps_worker)s THEN j.worker_id END,
                   lease = j.lease + %(revokes)s::bool::int,
                   run_after = CASE
                       WHEN %(target)s::job_status = 'pending'
                           THEN now() + %(delay)s * interval '1 second'
                       ELSE j.run_after
                   END,
                   completed_at = CASE WHEN %(finishes)s THEN now() END,
                   retry_count = CASE WHEN %(resets_retries)s THEN 0 ELSE j.retry_count END,
                   progress_percentage = CASE
                       WHEN %(target)s::job_status = 'completed' THEN 100 ELSE j.progress_percentage
                   END,
                   error_message = CASE
                       WHEN %(target)s::job_status = 'completed' OR %(resets_retries)s THEN NULL
                       ELSE j.error_message
                   END,
                   stop_reason = %(stop_reason)s
              FROM before
             WHERE j.id = before.id
            RETURNING j.*, before.status AS from_status
        ), logged AS (
            INSERT INTO job_events (job_id, move, from_status, to_status, actor, reason, lease)
            SELECT id, %(move)s, from_status, status, %(actor)s, %(reason)s, lease FROM moved
        ), woken AS (
            SELECT pg_notify('{CHANNEL}', id::text) FROM moved
        )
        SELECT {COLUMNS} FROM moved LEFT JOIN woken ON true
        """,
        {
            "id": job_id,
            "sources": list(move.sources),
            "lease": lease,
            "needs_worker": move.needs_worker,
            "target": move.target,
            "keeps_worker": move.keeps_worker,
            "revokes": move.revokes,
            "finishes": move.finishes,
            "resets_retries": move.resets_retries,
            "delay": delay,
            "stop_reason": stop_reason,
            "move": move.name,
            "actor": actor,
            "reason": reason,
        },
    )
    return await cursor.fetchone()


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
    cursor = _jobs(connection)
    await cursor.execute(
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
    return await cursor.fetchone()


# --- heartbeats and the watchdog -----------------------------------------------------------


async def beat(
    connection: Connection, *, worker_id: UUID, ids: Sequence[UUID], leases: Sequence[int]
) -> list[UUID]:
    """Renew leases; a row that its runner holds locked just now is skipped, not waited for."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        """
        WITH mine AS (
            SELECT j.id
              FROM crawl_jobs j
              JOIN unnest(%(ids)s::uuid[], %(leases)s::bigint[]) AS held (id, lease)
                ON j.id = held.id AND j.lease = held.lease
             WHERE j.worker_id = %(worker_id)s AND j.status IN ('processing', 'paused')
               FOR NO KEY UPDATE OF j SKIP LOCKED
        )
        UPDATE crawl_jobs j
           SET last_heartbeat = now()
          FROM mine
         WHERE j.id = mine.id
        RETURNING j.id
        """,
        {"ids": list(ids), "leases": list(leases), "worker_id": worker_id},
    )
    return await cursor.fetchall()


async def select_held(connection: Connection, ids: Sequence[UUID]) -> list[Held]:
    cursor = await connection.execute(
        "SELECT id, status, lease FROM crawl_jobs WHERE id = ANY(%s)", (list(ids),)
    )
    return [Held(row[0], Status(row[1]), row[2]) for row in await cursor.fetchall()]


async def select_stale(
    connection: Connection, *, stale_after: float
) -> list[tuple[UUID, datetime]]:
    """Jobs whose worker has not been heard of for so long, with the heartbeat that was seen."""
    cursor = await connection.execute(
        """
        SELECT id, last_heartbeat
          FROM crawl_jobs
         WHERE worker_id IS NOT NULL
           AND last_heartbeat < now() - %s * interval '1 second'
        """,
        (stale_after,),
    )
    return await cursor.fetchall()


async def recover_stale(
    connection: Connection,
    *,
    ids: Sequence[UUID],
    heartbeats: Sequence[datetime],
    stale_after: float,
    error: str,
    delay: float,
    delay_max: float,
) -> list[Recovered]:
    """Take jobs from dead workers. Staleness is tested again here, on the locked row."""
    cursor = await connection.execute(
        f"""
        WITH stale AS (
            SELECT j.id, j.status
              FROM crawl_jobs j
              JOIN unnest(%(ids)s::uuid[], %(heartbeats)s::timestamptz[]) AS seen (id, heartbeat)
                ON j.id = seen.id AND j.last_heartbeat = seen.heartbeat
             WHERE j.worker_id IS NOT NULL
               AND j.status IN ('processing', 'paused')
               AND j.last_heartbeat < now() - %(stale_after)s * interval '1 second'
               FOR NO KEY UPDATE OF j SKIP LOCKED
        ), moved AS (
            UPDATE crawl_jobs j {END_RUN}
              FROM stale
             WHERE j.id = stale.id
            RETURNING j.*, stale.status AS from_status
        ), logged AS ({LOG_END_OF_RUN}), woken AS (
            SELECT pg_notify('{CHANNEL}', '') FROM moved LIMIT 1
        )
        SELECT id, status, retry_count, max_retries FROM moved LEFT JOIN woken ON true
        """,
        {
            "ids": list(ids),
            "heartbeats": list(heartbeats),
            "stale_after": stale_after,
            "error": error,
            "permanent": False,
            "actor": "watchdog",
            "delay": delay,
            "delay_max": delay_max,
        },
    )
    return [Recovered(row[0], Status(row[1]), *row[2:]) for row in await cursor.fetchall()]


# --- checkpoints of a runner ---------------------------------------------------------------


async def save_progress(
    connection: Connection,
    job_id: UUID,
    *,
    processed: int,
    pending: int,
    percentage: int,
    checkpoint: dict[str, Any],
) -> None:
    """Write a job's counters and checkpoint; progress never goes back."""
    await connection.execute(
        """
        INSERT INTO crawl_states (job_id, total_processed, total_pending, checkpoint)
        VALUES (%(id)s, %(processed)s, %(pending)s, %(checkpoint)s)
        ON CONFLICT (job_id) DO UPDATE
           SET total_processed = excluded.total_processed,
               total_pending = excluded.total_pending,
               checkpoint = excluded.checkpoint,
               updated_at = now()
        """,
        {
            "id": job_id,
            "processed": processed,
            "pending": pending,
            "checkpoint": Jsonb(checkpoint),
        },
    )
    await connection.execute(
        """
        UPDATE crawl_jobs
           SET progress_percentage = greatest(progress_percentage, %s)
         WHERE id = %s
        """,
        (percentage, job_id),
    )


async def select_checkpoint(
    connection: Connection, job_id: UUID
) -> tuple[int, int, dict[str, Any]] | None:
    cursor = await connection.execute(
        "SELECT total_processed, total_pending, checkpoint FROM crawl_states WHERE job_id = %s",
        (job_id,),
    )
    row = await cursor.fetchone()
    return None if row is None else (row[0], row[1], row[2])


# --- upkeep --------------------------------------------------------------------------------


async def delete_finished(connection: Connection, *, older_than: float, limit: int) -> int:
    """Delete finished jobs of an age in seconds; everything below a job goes with it."""
    cursor = await connection.execute(
        """
        DELETE FROM crawl_jobs
         WHERE id IN (
            SELECT id
              FROM crawl_jobs
             WHERE status IN ('completed', 'failed', 'cancelled')
               AND completed_at < now() - %s * interval '1 second'
             ORDER BY completed_at
             LIMIT %s
               FOR UPDATE SKIP LOCKED
         )
        """,
        (older_than, limit),
    )
    return cursor.rowcount
