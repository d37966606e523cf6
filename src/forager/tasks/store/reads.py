"""SQL that reads tasks for adapters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, LiteralString

from psycopg.rows import kwargs_row

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples, Values
from forager.fetch.budgets.domain_state import BLOCKED_UNTIL, SLOW_NOW
from forager.tasks.lifecycle import TaskStatus
from forager.tasks.selection import Selection
from forager.tasks.store.claims import RENDERER_IS_THERE, WANTS_BROWSER
from forager.tasks.task import Hold, Task

_TASKS: LiteralString = """
    SELECT t.id, t.domain_id, d.domain_name AS domain, t.url, t.status, 10 - t.priority AS priority,
    t.popularity,
    t.scheduled_at, t.started_at, t.completed_at, t.next_crawl_at, t.retry_count, t.max_retries,
    t.failed_visits,
    t.error_kind, t.error_message, t.crawl_frequency, t.adapted_frequency, t.hold, t.worker_id,
    t.parser_version, t.render, t.needs_browser, t.browser_since, t.browser_until, t.moved_to,
    t.found_by, t.created_at, t.updated_at,
    d.task_hold AS domain_hold,
    (SELECT c.hold FROM task_control c) AS all_hold,
    (SELECT h.alarm FROM domain_health h WHERE h.domain_id = d.id) AS domain_alarm
      FROM crawl_tasks t
      JOIN domains d ON d.id = t.domain_id
"""

# only the conditions that are set are part of the statement, so that each has its own plan
_CONDITIONS: dict[str, LiteralString] = {
    "ids": "t.id = ANY(%(ids)s)",
    "statuses": "t.status = ANY(%(statuses)s)",
    # the index of one domain has its tasks in the order of their ids
    "domain_id": "t.domain_id = %(domain_id)s",
    "domain_ids": "t.domain_id = ANY(%(domain_ids)s)",
    "url": "t.url = %(url)s",
    "url_like": "t.url ILIKE %(url_like)s",
    "due": "t.status = 'pending' AND t.scheduled_at <= now()",
    "on_hold": """(t.hold IS NOT NULL
                OR t.domain_id IN (SELECT id FROM domains WHERE task_hold IS NOT NULL)
                OR EXISTS (SELECT FROM task_control WHERE hold IS NOT NULL)) = %(on_hold)s""",
    "failing": "(t.failing_since IS NOT NULL OR t.status = 'failed')",
}


@dataclass(frozen=True, slots=True)
class TaskConditions:
    """Conditions that can keep a task from running, besides the task itself."""

    now: datetime
    ticked_at: datetime | None
    is_active: bool
    blocked_until: datetime | None
    crawl_delay: float | None
    slow_delay: float
    domain_frequency: timedelta | None
    # the region of its domain, and whether a worker of it has a current heartbeat
    region: str | None
    has_worker: bool
    # whether it needs a browser, and whether a worker with one has a current heartbeat
    wants_browser: bool
    has_renderer: bool
    # the regions of all proxies, if the task needs one and no such worker runs
    proxy_regions: list[str | None] | None
    ahead: int


def _task(*, status: str, **values: Any) -> Task:
    for name in ("hold", "domain_hold", "all_hold"):
        values[name] = None if values[name] is None else Hold(values[name])
    return Task(status=TaskStatus(status), **values)


def _where(
    selection: Selection, domain_ids: Sequence[int] | None
) -> tuple[LiteralString, dict[str, Any]]:
    ids = None if domain_ids is None else list(domain_ids)
    like = selection.like()
    values: dict[str, Any] = {
        "ids": list(selection.ids) or None,
        "statuses": list(selection.statuses) or None,
        "domain_id": ids[0] if ids is not None and len(ids) == 1 else None,
        "domain_ids": ids if ids is not None and len(ids) != 1 else None,
        "url": selection.url if like is None else None,
        "url_like": like,
        "due": selection.due or None,
        "on_hold": selection.on_hold,
        "failing": selection.failing or None,
    }
    named = {name: value for name, value in values.items() if value is not None}
    conditions: LiteralString = " AND ".join(_CONDITIONS[name] for name in named)
    return conditions or "true", named


async def select_tasks(
    connection: Connection,
    selection: Selection,
    *,
    domain_ids: Sequence[int] | None,
    before: int | None,
    limit: int,
) -> list[Task]:
    """Newest first."""
    where, values = _where(selection, domain_ids)
    cursor = connection.cursor(row_factory=kwargs_row(_task))
    await cursor.execute(
        f"""
        {_TASKS}
         WHERE {where} AND t.id < %(before)s
         ORDER BY t.id DESC
         LIMIT %(limit)s
        """,
        {**values, "before": 2**63 - 1 if before is None else before, "limit": limit},
    )
    return await cursor.fetchall()


async def count_by_status(
    connection: Connection, selection: Selection, *, domain_ids: Sequence[int] | None
) -> dict[str, int]:
    """The tasks of a selection by state."""
    where, values = _where(selection, domain_ids)
    return await Tuples(connection).as_dict(
        f"SELECT t.status, count(*) FROM crawl_tasks t WHERE {where} GROUP BY 1", values
    )


async def select_ids(
    connection: Connection,
    selection: Selection,
    *,
    domain_ids: Sequence[int] | None,
    after: int,
    limit: int,
) -> list[int]:
    """The ids of a selection in order, so that all transactions lock in the same order."""
    where, values = _where(selection, domain_ids)
    return await Values(connection).all(
        f"""
        SELECT t.id
          FROM crawl_tasks t
         WHERE {where} AND t.id > %(after)s
         ORDER BY t.id
         LIMIT %(limit)s
        """,
        {**values, "after": after, "limit": limit},
    )


async def select_task(
    connection: Connection, *, task_id: int | None = None, url_hash: bytes | None = None
) -> Task | None:
    """By ID or URL."""
    cursor = connection.cursor(row_factory=kwargs_row(_task))
    await cursor.execute(f"{_TASKS} WHERE t.id = %s OR t.url_hash = %s", (task_id, url_hash))
    return await cursor.fetchone()


async def select_known_ids(connection: Connection, ids: Sequence[int]) -> set[int]:
    """Those of the tasks that exist."""
    return await Values(connection).as_set(
        "SELECT id FROM crawl_tasks WHERE id = ANY(%s)", (list(ids),)
    )


async def select_ids_by_hash(connection: Connection, hashes: Sequence[bytes]) -> dict[bytes, int]:
    """Tasks by the hashes of their URLs."""
    return await Tuples(connection).as_dict(
        "SELECT url_hash, id FROM crawl_tasks WHERE url_hash = ANY(%s)", (list(hashes),)
    )


async def select_surroundings(
    connection: Connection, task: Task, most: int, *, stale_after: float, task_proxies: bool
) -> TaskConditions:
    """`ahead`: due tasks of its domain that come first, counted up to `most`."""
    return await Rows(connection, TaskConditions).one(
        f"""
        SELECT now() AS now,
               c.ticked_at,
               d.is_active,
               CASE WHEN {BLOCKED_UNTIL} > now() THEN d.blocked_until END AS blocked_until,
               greatest(d.crawl_delay_seconds::float8, d.traffic_delay) AS crawl_delay,
               {SLOW_NOW} AS slow_delay,
               d.crawl_frequency AS domain_frequency,
               d.region,
               EXISTS (
                   SELECT
                     FROM workers w
                    WHERE w.role = 'tasks' AND (d.region IS NULL OR w.region = d.region)
                      AND w.last_seen > now() - %(stale_after)s * interval '1 second'
               ) AS has_worker,
               (SELECT {WANTS_BROWSER} FROM crawl_tasks t WHERE t.id = %(task_id)s)
                   AS wants_browser,
               {RENDERER_IS_THERE} AS has_renderer,
               (
                   SELECT array_agg(DISTINCT p.region)
                     FROM proxies p
                    WHERE p.is_active AND coalesce(d.use_proxies, %(task_proxies)s)
                   HAVING NOT bool_or(EXISTS (
                       SELECT
                         FROM workers w
                        WHERE w.role = 'tasks' AND (d.region IS NULL OR w.region = d.region)
                          AND (p.region IS NULL OR w.region = p.region)
                          AND w.last_seen > now() - %(stale_after)s * interval '1 second'
                   ))
               ) AS proxy_regions,
               (
                   SELECT count(*)::int
                     FROM (
                       SELECT
                         FROM crawl_tasks t
                        WHERE t.status = 'pending' AND t.hold IS NULL AND t.domain_id = d.id
                          AND t.priority <= 10 - %(priority)s
                          AND (t.priority, t.scheduled_at) < (10 - %(priority)s, %(scheduled_at)s)
                          AND t.scheduled_at <= now()
                        LIMIT %(most)s
                     ) AS first
               ) AS ahead
          FROM domains d
         CROSS JOIN task_control c
         WHERE d.id = %(domain_id)s
        """,
        {
            "priority": task.priority,
            "scheduled_at": task.scheduled_at,
            "task_id": task.id,
            "domain_id": task.domain_id,
            "most": most,
            "stale_after": stale_after,
            "task_proxies": task_proxies,
        },
    )
