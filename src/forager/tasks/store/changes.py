"""SQL of changes to tasks by people: recrawl, terms, removal and holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import LiteralString

from forager.db.database import Connection
from forager.db.rows import Tuples, Values
from forager.tasks.lifecycle import RECRAWL, WITHDRAW
from forager.tasks.store.stages import withdrawal
from forager.tasks.task import Hold


async def recrawl(connection: Connection, ids: Sequence[int]) -> tuple[int, int]:
    """Make waiting and finished tasks due; returns how many, and how many of them are on hold.

    They are due before all other tasks of the same domain and priority.
    """
    return await Tuples(connection, tuple[int, int]).one(
        f"""
        WITH wanted AS MATERIALIZED (
            SELECT id, domain_id, priority
              FROM crawl_tasks t
             WHERE id = ANY(%(ids)s) AND {RECRAWL.allowed}
             ORDER BY id
               FOR NO KEY UPDATE
        ), lines AS MATERIALIZED (
            SELECT DISTINCT domain_id, priority FROM wanted
        ), heads AS MATERIALIZED (
            SELECT lines.*, least(now(), head.scheduled_at - interval '1 millisecond') AS at
              FROM lines
              LEFT JOIN LATERAL (
                SELECT scheduled_at
                  FROM crawl_tasks t
                 WHERE t.status = 'pending' AND t.hold IS NULL
                   AND t.domain_id = lines.domain_id AND t.priority = lines.priority
                 ORDER BY scheduled_at
                 LIMIT 1
              ) AS head ON true
        ), moved AS (
            UPDATE crawl_tasks t
               SET {RECRAWL.changes}, scheduled_at = heads.at
              FROM wanted
              JOIN heads USING (domain_id, priority)
             WHERE t.id = wanted.id
            RETURNING t.id, t.domain_id, t.hold
        ), revived AS (
            UPDATE dead_letters
               SET resolved_at = now(), resolution = 'retried'
             WHERE task_id IN (SELECT id FROM moved) AND resolved_at IS NULL
        )
        SELECT count(*)::int,
               (count(*) FILTER (
                   WHERE moved.hold IS NOT NULL OR d.task_hold IS NOT NULL OR c.hold IS NOT NULL
               ))::int
          FROM moved
          JOIN domains d ON d.id = moved.domain_id
         CROSS JOIN task_control c
        """,
        {"ids": list(ids)},
    )


async def set_terms(
    connection: Connection,
    ids: Sequence[int],
    *,
    priority: int | None,
    every: timedelta | None,
    default_every: timedelta | None,
    popularity: float | None,
    max_retries: int | None,
    render: str | None,
    default_render: bool,
) -> int:
    """Set the given terms. `default_every`: the interval of the domain, or otherwise this one.

    `default_render`: the setting of the domain.
    """
    return await Tuples(connection).affected(
        """
        WITH wanted AS MATERIALIZED (
            SELECT t.id,
                   coalesce(
                       %(every)s::interval,
                       CASE WHEN %(default)s::interval IS NOT NULL
                            THEN coalesce(d.crawl_frequency, %(default)s::interval) END
                   ) AS following
              FROM crawl_tasks t
              JOIN domains d ON d.id = t.domain_id
             WHERE t.id = ANY(%(ids)s)
             ORDER BY t.id
               FOR NO KEY UPDATE OF t
        )
        UPDATE crawl_tasks t
           SET priority = coalesce(10 - %(priority)s, t.priority),
               popularity = coalesce(%(popularity)s, t.popularity),
               max_retries = coalesce(%(max_retries)s, t.max_retries),
               render = CASE WHEN NOT %(default_render)s THEN coalesce(%(render)s, t.render) END,
               crawl_frequency = CASE
                   WHEN %(default)s::interval IS NULL
                   THEN coalesce(%(every)s::interval, t.crawl_frequency)
               END,
               adapted_frequency = CASE WHEN following IS NULL THEN t.adapted_frequency END,
               next_crawl_at = CASE
                   WHEN t.status = 'completed'
                   THEN coalesce(t.completed_at + following, t.next_crawl_at)
                   ELSE t.next_crawl_at
               END,
               updated_at = now()
          FROM wanted
         WHERE t.id = wanted.id
        """,
        {
            "ids": list(ids),
            "priority": priority,
            "every": every,
            "default": default_every,
            "popularity": popularity,
            "max_retries": max_retries,
            "render": render,
            "default_render": default_render,
        },
    )


async def delete_tasks(connection: Connection, ids: Sequence[int]) -> int:
    """Delete tasks with their open dead letters; results of visits in progress are rejected."""
    return await Tuples(connection).affected(
        """
        WITH wanted AS MATERIALIZED (
            SELECT id FROM crawl_tasks WHERE id = ANY(%(ids)s) ORDER BY id FOR UPDATE
        ), dropped AS (
            UPDATE dead_letters
               SET resolved_at = now(), resolution = 'dropped'
             WHERE task_id = ANY(%(ids)s) AND resolved_at IS NULL
        )
        DELETE FROM crawl_tasks WHERE id IN (SELECT id FROM wanted)
        """,
        {"ids": list(ids)},
    )


async def hold_all(connection: Connection, hold: str | None) -> int:
    """Set the hold of all tasks, after which nothing is queued; returns 1 if it changed."""
    return await Tuples(connection).affected(
        "UPDATE task_control SET hold = %(hold)s WHERE hold IS DISTINCT FROM %(hold)s",
        {"hold": hold},
    )


async def hold_tasks(connection: Connection, ids: Sequence[int], hold: str | None) -> int:
    """Hold tasks, or end that with None; how many changed."""
    return await Tuples(connection).affected(
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


async def withdraw(
    connection: Connection,
    hold: str | None,
    *,
    ids: Sequence[int] | None = None,
    domain_id: int | None = None,
) -> int:
    """Withdraw queued tasks under a new hold: those with these ids, of a domain, or all.

    If they are stopped, also those in progress. Returns how many.
    """
    if hold is None:
        return 0
    of_domain = "" if domain_id is None else "AND domain_id = %(domain_id)s"
    # both parts have an index
    tasks: LiteralString = f"""
        SELECT id FROM crawl_tasks WHERE status = 'queued' {of_domain}
        UNION ALL
        SELECT id FROM crawl_tasks WHERE worker_id IS NOT NULL AND %(running)s {of_domain}
    """
    if ids is not None:
        tasks = "SELECT unnest(%(ids)s::bigint[])"
    selected: LiteralString = f"""
        SELECT t.*
          FROM crawl_tasks t
         WHERE t.id IN ({tasks}) AND {WITHDRAW.allowed} AND (t.status = 'queued' OR %(running)s)
    """
    return await Values(connection, int).one(
        f"{withdrawal(WITHDRAW, selected)} SELECT count(*)::int FROM moved",
        {"running": hold == Hold.STOPPED, "ids": ids, "domain_id": domain_id, "reason": None},
    )
