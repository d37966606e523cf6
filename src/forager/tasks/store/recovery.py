"""The SQL of recovery: tasks of workers that died go back to where they were claimed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import LiteralString
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import RowArrays, Rows, Values
from forager.tasks.lifecycle import RECOVER, RECOVER_FAILED, RECOVER_MISSED, TaskMove
from forager.tasks.task import CHANNEL, RecoveredTask


@dataclass(frozen=True, slots=True)
class Holder:
    """A worker for tasks, or one that holds tasks. No `last_seen`: it has no row."""

    id: UUID
    last_seen: datetime | None
    process: str | None
    is_stale: bool


def _move_orphans(move: TaskMove, condition: str) -> str:
    failed_visit = """,
               failed_visits = t.failed_visits + 1,
               failing_since = coalesce(t.failing_since, now())"""
    return f"""
        UPDATE crawl_tasks t
           SET {move.changes}, error_kind = 'internal', error_message = %(reason)s
               {"" if move is RECOVER else failed_visit}
          FROM orphans
         WHERE t.id = orphans.id AND {move.allowed} AND {condition}
        RETURNING t.id, t.domain_id, t.url, t.status, t.started_at, t.retry_count, t.max_retries,
                  orphans.lease, orphans.worker_id, orphans.attempt,
                  CASE orphans.status WHEN 'parsing' THEN 'parse' ELSE 'download' END AS stage
    """


_HAS_RETRIES: LiteralString = "t.retry_count < t.max_retries"
# as for other failures: a task fails after this many failed visits over this time
_IS_LAST_VISIT: LiteralString = """
    t.failed_visits + 1 >= %(visits)s
    AND coalesce(extract(epoch FROM now() - t.failing_since), 0) >= %(after)s
"""

# moves the locked tasks of `orphans`
_RECOVER = f"""
    recovered AS ({_move_orphans(RECOVER, _HAS_RETRIES)}),
    missed AS (
        {_move_orphans(RECOVER_MISSED, f"NOT {_HAS_RETRIES} AND NOT ({_IS_LAST_VISIT})")}
    ),
    failed AS ({_move_orphans(RECOVER_FAILED, f"NOT {_HAS_RETRIES} AND {_IS_LAST_VISIT}")}),
    moved AS (
        SELECT * FROM recovered UNION ALL SELECT * FROM missed UNION ALL SELECT * FROM failed
    ), logged AS (
        INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome, error_kind,
                                   error_message, worker_id, started_at)
        SELECT id, domain_id, stage, lease, least(attempt, 32767), 'lost', 'internal', %(reason)s,
               worker_id, started_at
          FROM moved
    ), reported AS (
        INSERT INTO error_logs (crawl_task_id, domain_id, stage, error_type, error_kind,
                                error_message, message_key, url)
        SELECT id, domain_id, stage, 'other', 'internal', %(reason)s, %(key)s, url
          FROM moved
    ), died AS (
        INSERT INTO dead_letters (task_id, domain_id, url, stage, error_type, error_kind,
                                  error_message, message_key, attempts)
        SELECT id, domain_id, url, stage, 'other', 'internal', %(reason)s, %(key)s, attempt
          FROM moved
         WHERE status = 'failed'
        ON CONFLICT (task_id) WHERE resolved_at IS NULL DO UPDATE
           SET stage = excluded.stage, error_type = excluded.error_type,
               error_kind = excluded.error_kind, error_message = excluded.error_message,
               message_key = excluded.message_key, attempts = excluded.attempts, died_at = now()
    ), woken AS (
        SELECT pg_notify('{CHANNEL}', '') FROM moved LIMIT 1
    )
    SELECT m.id, m.status, m.retry_count, m.max_retries FROM moved m LEFT JOIN woken ON true
"""


_WORKERS = RowArrays("s", id="uuid", last_seen="timestamptz")


async def select_holders(connection: Connection, *, stale_after: float) -> list[Holder]:
    return await Rows(connection, Holder).all(
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


async def recover(
    connection: Connection,
    workers: Sequence[Holder],
    *,
    stale_after: float | None,
    reason: str,
    key: str,
    visits: int,
    after: float,
    limit: int,
) -> list[RecoveredTask]:
    """Take tasks from dead workers; `stale_after`: only if their heartbeats are still stale."""
    return await Rows(connection, RecoveredTask).all(
        f"""
        WITH orphans AS (
            SELECT t.id, t.status, t.lease, t.worker_id, t.retry_count + 1 AS attempt
              FROM crawl_tasks t
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
        ), {_RECOVER}
        """,
        {
            **_WORKERS.values(workers),
            "stale_after": stale_after,
            "reason": reason,
            "key": key,
            "visits": visits,
            "after": after,
            "limit": limit,
        },
    )


async def schedule_next_visits(connection: Connection, every: Mapping[int, timedelta]) -> None:
    """Schedule the tasks of missed visits."""
    await connection.execute(
        """
        UPDATE crawl_tasks t
           SET scheduled_at = now() + m.every
          FROM unnest(%s::bigint[], %s::interval[]) AS m (id, every)
         WHERE t.id = m.id AND t.status = 'pending'
        """,
        (list(every), list(every.values())),
    )


async def select_holding(connection: Connection, worker_ids: Sequence[UUID]) -> set[UUID]:
    """The workers that hold tasks."""
    found = await Values(connection).all(
        """
        SELECT id FROM unnest(%s::uuid[]) AS w (id)
         WHERE EXISTS (SELECT FROM crawl_tasks t WHERE t.worker_id = w.id)
        """,
        (list(worker_ids),),
    )
    return set(found)


@dataclass(frozen=True, slots=True)
class Ageing:
    """A table, and the column with the age of a row; rows without a time are kept."""

    table: LiteralString
    time: LiteralString


AGEING = (
    Ageing("task_attempts", "finished_at"),
    Ageing("error_logs", "occurred_at"),
    Ageing("extractions", "created_at"),
    # open letters are kept until they are resolved
    Ageing("dead_letters", "resolved_at"),
)


async def delete_old(connection: Connection, *, ageing: Ageing, days: float, limit: int) -> int:
    """Delete the oldest rows past an age; returns how many."""
    table, time = ageing.table, ageing.time
    cursor = await connection.execute(
        f"""
        DELETE FROM {table}
         WHERE id IN (
            SELECT id
              FROM {table}
             WHERE {time} < now() - make_interval(secs => %s * 86400)
             ORDER BY {time}
             LIMIT %s
         )
        """,
        (days, limit),
    )
    return cursor.rowcount
