"""The SQL of recovery: workers that hold tasks, their tasks, and old rows to delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from forager.db.database import Connection
from forager.db.retention import OldRows
from forager.db.rows import RowArrays, Rows, Values
from forager.tasks.stages.attempt import LeasedTask
from forager.tasks.store.claims import COLUMNS


@dataclass(frozen=True, slots=True)
class TaskHolder:
    """A worker for tasks, or one that holds tasks. No `last_seen`: it has no row."""

    id: UUID
    last_seen: datetime | None
    process: str | None
    is_stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanedTask(LeasedTask):
    """A task of a dead worker."""

    worker_id: UUID
    status: str


_WORKERS = RowArrays("s", id="uuid", last_seen="timestamptz")


async def select_holders(connection: Connection, *, stale_after: float) -> list[TaskHolder]:
    """Workers that hold tasks, and whether they are alive."""
    return await Rows(connection, TaskHolder).all(
        """
        WITH RECURSIVE holders AS (
            -- from one to the next: there may be many tasks to a worker
            (SELECT worker_id FROM crawl_tasks WHERE worker_id IS NOT NULL
              ORDER BY worker_id LIMIT 1)
            UNION ALL
            SELECT (SELECT t.worker_id FROM crawl_tasks t WHERE t.worker_id > h.worker_id
                     ORDER BY t.worker_id LIMIT 1)
              FROM holders h
             WHERE h.worker_id IS NOT NULL
        ), known AS (
            SELECT worker_id AS id FROM holders WHERE worker_id IS NOT NULL
             UNION
            SELECT id FROM workers WHERE role = 'tasks'
        )
        SELECT e.id, w.last_seen, w.process,
               w.id IS NULL OR w.last_seen < now() - %s * interval '1 second' AS is_stale
          FROM known e
          LEFT JOIN workers w ON w.id = e.id
        """,
        (stale_after,),
    )


async def lock_orphans(
    connection: Connection, workers: Sequence[TaskHolder], *, stale_after: float | None, limit: int
) -> list[OrphanedTask]:
    """Tasks of dead workers; `stale_after`: only if their heartbeats are still stale."""
    return await Rows(connection, OrphanedTask).all(
        f"""
        SELECT {COLUMNS}, t.worker_id, t.status
          FROM crawl_tasks t
          JOIN domains d ON d.id = t.domain_id
          JOIN {_WORKERS}
            ON t.worker_id = s.id
          LEFT JOIN workers w ON w.id = s.id
         WHERE %(stale_after)s::float8 IS NULL
            OR w.last_seen IS NOT DISTINCT FROM s.last_seen
               AND (w.id IS NULL
                    OR w.last_seen < now() - %(stale_after)s * interval '1 second')
         ORDER BY t.id
         LIMIT %(limit)s
           FOR NO KEY UPDATE OF t SKIP LOCKED
        """,
        {**_WORKERS.values(workers), "stale_after": stale_after, "limit": limit},
    )


async def select_holding(connection: Connection, worker_ids: Sequence[UUID]) -> set[UUID]:
    """The workers that hold tasks."""
    return await Values(connection).as_set(
        """
        SELECT id FROM unnest(%s::uuid[]) AS w (id)
         WHERE EXISTS (SELECT FROM crawl_tasks t WHERE t.worker_id = w.id)
        """,
        (list(worker_ids),),
    )


OLD_ROWS = (
    OldRows.by_time("task_attempts", "finished_at"),
    OldRows.by_time("extractions", "created_at"),
    # open letters are kept until they are resolved
    OldRows.by_time("dead_letters", "resolved_at"),
)
