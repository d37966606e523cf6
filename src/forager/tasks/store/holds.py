"""SQL of holds: on all tasks, on a domain's, on single ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import LiteralString

from forager.db.database import Connection
from forager.tasks.lifecycle import WITHDRAW
from forager.tasks.task import CHANNEL


async def hold_all(connection: Connection, hold: str | None) -> bool:
    """Whether that changed anything. From here on the scheduler queues nothing."""
    cursor = await connection.execute(
        "UPDATE task_control SET hold = %(hold)s WHERE hold IS DISTINCT FROM %(hold)s",
        {"hold": hold},
    )
    return cursor.rowcount > 0


async def hold_tasks(connection: Connection, ids: Sequence[int], hold: str | None) -> int:
    cursor = await connection.execute(
        """
        WITH wanted AS MATERIALIZED (
            SELECT id
              FROM crawl_tasks
             WHERE id = ANY(%(ids)s) AND hold IS DISTINCT FROM %(hold)s
             ORDER BY id
               FOR NO KEY UPDATE
        )
        UPDATE crawl_tasks t
           SET hold = %(hold)s, updated_at = now()
          FROM wanted
         WHERE t.id = wanted.id
        """,
        {"ids": list(ids), "hold": hold},
    )
    return cursor.rowcount


_OF_ALL: LiteralString = """
    SELECT id FROM crawl_tasks WHERE status = 'queued'
    UNION ALL
    SELECT id FROM crawl_tasks WHERE worker_id IS NOT NULL AND %(running)s
"""
_OF_DOMAIN: LiteralString = """
    SELECT id FROM crawl_tasks WHERE status = 'queued' AND domain_id = %(domain_id)s
    UNION ALL
    SELECT id FROM crawl_tasks
     WHERE worker_id IS NOT NULL AND domain_id = %(domain_id)s AND %(running)s
"""
_OF_IDS: LiteralString = "SELECT unnest(%(ids)s::bigint[])"

_WITHDRAW = f"""
WITH wanted AS MATERIALIZED (
    SELECT t.*
      FROM crawl_tasks t
     WHERE t.id IN ({{tasks}}) AND {WITHDRAW.allowed} AND (t.status = 'queued' OR %(running)s)
     ORDER BY t.id
       FOR NO KEY UPDATE
), moved AS (
    UPDATE crawl_tasks t
       SET {WITHDRAW.changes}
      FROM wanted
     WHERE t.id = wanted.id
    RETURNING t.id
), noted AS (
    INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome, worker_id,
                               started_at)
    SELECT id, domain_id, CASE status WHEN 'parsing' THEN 'parse' ELSE 'download' END, lease,
           least(retry_count, 32766) + 1, 'withdrawn', worker_id, started_at
      FROM wanted
     WHERE status <> 'queued'
)
SELECT count(*)::int FROM moved
"""


async def withdraw_all(connection: Connection, *, running: bool) -> int:
    """Take back what is queued, and what is running as well if asked; how many."""
    return await _withdraw(connection, _OF_ALL, {"running": running})


async def withdraw_domain(connection: Connection, domain_id: int, *, running: bool) -> int:
    values = {"domain_id": domain_id, "running": running}
    return await _withdraw(connection, _OF_DOMAIN, values)


async def withdraw_tasks(connection: Connection, ids: Sequence[int], *, running: bool) -> int:
    return await _withdraw(connection, _OF_IDS, {"ids": list(ids), "running": running})


async def _withdraw(
    connection: Connection, tasks: LiteralString, values: Mapping[str, object]
) -> int:
    cursor = await connection.execute(_WITHDRAW.format(tasks=tasks), values)
    row = await cursor.fetchone()
    return 0 if row is None else row[0]


async def tell_workers(connection: Connection) -> None:
    await connection.execute("SELECT pg_notify(%s, '')", (CHANNEL,))
