"""SQL of leases: renew, read, and hold them during a write."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from forager.db.database import Connection
from forager.db.rows import Made, Rows, Tuples, Values
from forager.jobs.job import Checkpoint, Lease


async def beat(
    connection: Connection, *, worker_id: UUID, ids: Sequence[UUID], leases: Sequence[int]
) -> list[UUID]:
    """Renew leases; a row that its runner holds locked just now is skipped, not waited for."""
    return await Values(connection).all(
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


async def select_leases(connection: Connection, ids: Sequence[UUID]) -> list[tuple[UUID, str, int]]:
    """Id, status and lease of each of these jobs."""
    return await Tuples(connection).all(
        "SELECT id, status, lease FROM crawl_jobs WHERE id = ANY(%s)", (list(ids),)
    )


async def select_leased_by(connection: Connection, worker_id: UUID) -> list[Lease]:
    """The leases that a worker holds by the table, whether it knows of them or not."""
    return await Made(connection, partial(Lease, worker_id=worker_id)).all(
        "SELECT id, lease FROM crawl_jobs WHERE worker_id = %s", (worker_id,)
    )


async def hold_lease(connection: Connection, lease: Lease) -> AsyncCursor[TupleRow]:
    """Lock the job until the end of the transaction, or be refused.

    The answer is the job's status; in a pipeline it can be read only after the round trip.
    """
    return await connection.execute("SELECT hold_lease(%s, %s)", (lease.job_id, lease.number))


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
        {"id": job_id, "processed": processed, "pending": pending, "checkpoint": Jsonb(checkpoint)},
    )
    await update_progress(connection, job_id, percentage)


async def update_progress(connection: Connection, job_id: UUID, percentage: int) -> None:
    """Progress never decreases."""
    await connection.execute(
        """
        UPDATE crawl_jobs
           SET progress_percentage = %(percentage)s
         WHERE id = %(job_id)s AND progress_percentage < %(percentage)s
        """,
        {"job_id": job_id, "percentage": percentage},
    )


async def select_checkpoint(connection: Connection, job_id: UUID) -> Checkpoint | None:
    """The progress of a job at its last commit; None before the first."""
    return await Rows(connection, Checkpoint).first(
        """
        SELECT total_processed AS processed, total_pending AS pending, checkpoint AS data
          FROM crawl_states
         WHERE job_id = %s
        """,
        (job_id,),
    )
