"""SQL of metrics: values that all processes add to, and gauges read from the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Rows as RowsOf
from forager.metrics.meters import Key
from forager.settings import Settings


async def add_values(
    connection: Connection, writer: UUID, addition: int, values: Mapping[Key, float]
) -> None:
    """Add to the stored values; the same addition of the same writer counts once.

    All writers use the same order, so that no two of them deadlock.
    """
    rows = sorted(values.items())
    await connection.execute(
        """
        WITH new AS (
            INSERT INTO metric_writers AS w (id, addition) VALUES (%(writer)s, %(addition)s)
            ON CONFLICT (id) DO UPDATE
               SET addition = excluded.addition, written_at = now()
             WHERE w.addition < excluded.addition
            RETURNING id
        )
        INSERT INTO metric_values AS m (name, labels, part, value)
        SELECT v.name, v.labels::text[], v.part, v.value
          FROM new,
               unnest(%(names)s::text[], %(labels)s::text[], %(parts)s::text[],
                      %(values)s::float8[])
               WITH ORDINALITY AS v (name, labels, part, value, place)
         ORDER BY v.place
        ON CONFLICT (name, labels, part) DO UPDATE SET value = m.value + excluded.value
        """,
        {
            "writer": writer,
            "addition": addition,
            "names": [name for (name, _, _), _ in rows],
            "labels": [_array(labels) for (_, labels, _), _ in rows],
            "parts": [part for (_, _, part), _ in rows],
            "values": [float(value) for _, value in rows],
        },
    )


async def select_values(connection: Connection) -> dict[Key, float]:
    """The values of all metrics that several processes add to."""
    cursor = await connection.execute("SELECT name, labels, part, value FROM metric_values")
    return {(name, tuple(labels), part): value async for name, labels, part, value in cursor}


async def delete_writer(connection: Connection, writer: UUID) -> None:
    """Forget a process that wrote metrics."""
    await connection.execute("DELETE FROM metric_writers WHERE id = %s", (writer,))


async def delete_silent_writers(connection: Connection, *, older_than: float) -> None:
    """Delete processes that ended without deleting their row."""
    await connection.execute(
        "DELETE FROM metric_writers WHERE written_at < now() - %s * interval '1 second'",
        (older_than,),
    )


def _array(labels: tuple[str, ...]) -> str:
    """Label values as the text of an array: arrays of unequal lengths make no array."""
    quoted = (label.replace("\\", "\\\\").replace('"', '\\"') for label in labels)
    return "{" + ",".join(f'"{label}"' for label in quoted) + "}"


# --- the backlog over time -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BacklogSample:
    """Unfinished jobs and waiting tasks at one time."""

    at: datetime
    jobs: int
    tasks: int


async def insert_backlog(connection: Connection, *, most: int) -> None:
    """Store the backlog of this minute unless it is stored; at most `most` tasks of each state."""
    await connection.execute(
        """
        INSERT INTO backlog_samples (at, queue, owner, waiting)
        SELECT date_trunc('minute', now()), queue, owner, waiting
          FROM (
            SELECT 'jobs' AS queue, coalesce(user_id::text, '') AS owner, count(*) AS waiting
              FROM crawl_jobs
             WHERE status IN ('pending', 'processing', 'paused')
             GROUP BY 2
            UNION ALL
            SELECT 'tasks', '', count(*)
              FROM (
                (SELECT FROM crawl_tasks
                  WHERE status = 'pending' AND hold IS NULL AND scheduled_at < now()
                  LIMIT %(most)s)
                UNION ALL
                (SELECT FROM crawl_tasks WHERE status = 'queued' LIMIT %(most)s)
                UNION ALL
                (SELECT FROM crawl_tasks WHERE status = 'downloaded' LIMIT %(most)s)
              ) AS waiting_tasks
          ) AS counted
         WHERE NOT EXISTS (SELECT FROM backlog_samples WHERE at = date_trunc('minute', now()))
        ON CONFLICT DO NOTHING
        """,
        {"most": most},
    )


async def delete_backlog(connection: Connection, *, days: int) -> None:
    """Delete samples of the backlog that are older than this number of days."""
    await connection.execute(
        "DELETE FROM backlog_samples WHERE at < now() - %s * interval '1 day'", (days,)
    )


async def select_backlog(
    connection: Connection, *, minutes: int, user_id: UUID | None
) -> list[BacklogSample]:
    """Samples of the last minutes; jobs of all owners unless one is given."""
    return await RowsOf(connection, BacklogSample).all(
        """
        SELECT at,
               coalesce(sum(waiting) FILTER (WHERE queue = 'jobs'), 0)::int AS jobs,
               coalesce(sum(waiting) FILTER (WHERE queue = 'tasks'), 0)::int AS tasks
          FROM backlog_samples
         WHERE at > now() - %(minutes)s * interval '1 minute'
           AND (queue = 'tasks' OR %(owner)s::text IS NULL OR owner = %(owner)s)
         GROUP BY at
         ORDER BY at
        """,
        {"minutes": minutes, "owner": None if user_id is None else str(user_id)},
    )


# --- gauges: rows of label values, the number last -----------------------------------------------

Rows = list[tuple[Any, ...]]


async def select_gauge(
    connection: Connection, statement: LiteralString, settings: Settings
) -> Rows:
    """The rows of a statement that measures a gauge."""
    values = {
        "stale_after": settings.stale_after,
        "parser_alert_interval": settings.parser_alert_interval,
    }
    return await (await connection.execute(statement, values)).fetchall()


JOBS: LiteralString = "SELECT status, count(*) FROM crawl_jobs GROUP BY status"
TASKS: LiteralString = "SELECT status, count(*) FROM crawl_tasks GROUP BY status"
# seconds for which the oldest job, task or message has been due
OLDEST_WAITING: LiteralString = """
    SELECT 'jobs', extract(epoch FROM now() - min(run_after))::float8
      FROM crawl_jobs WHERE status = 'pending' AND run_after <= now()
    UNION ALL
    SELECT 'tasks', extract(epoch FROM now() - least(
               (SELECT min(scheduled_at) FROM crawl_tasks
                 WHERE status = 'pending' AND hold IS NULL AND scheduled_at <= now()),
               (SELECT min(scheduled_at) FROM crawl_tasks WHERE status = 'queued')))::float8
    UNION ALL
    SELECT CASE WHEN topic IN ('crawl', 'parse') THEN 'dispatch'
                WHEN topic IN ('webhooks', 'source changes', 'failed jobs') THEN 'webhooks'
                ELSE 'index' END,
           extract(epoch FROM now() - min(created_at))::float8
      FROM outbox
     WHERE sent_at IS NULL AND given_up_at IS NULL AND (attempts = 0 OR topic = 'webhooks')
     GROUP BY 1
"""
# only running crawls: a paused one waits for a user, a pending one for its turn
PENDING_URLS: LiteralString = """
    SELECT coalesce(sum(s.total_pending), 0)::float8
      FROM crawl_jobs j JOIN crawl_states s ON s.job_id = j.id
     WHERE j.status = 'processing'
"""
WORKERS: LiteralString = """
    SELECT role, CASE WHEN last_seen < now() - %(stale_after)s * interval '1 second'
                      THEN 'unreachable' ELSE 'alive' END AS state, count(*)
      FROM workers GROUP BY 1, 2
"""
BRAKED_WORKERS: LiteralString = """
    SELECT count(*)::float8 FROM workers
     WHERE brake IS NOT NULL AND last_seen >= now() - %(stale_after)s * interval '1 second'
"""
DEAD_LETTERS: LiteralString = (
    "SELECT error_kind, count(*) FROM dead_letters WHERE resolved_at IS NULL GROUP BY 1"
)
UNSENT_MESSAGES: LiteralString = """
    SELECT topic, count(*) FROM outbox
     WHERE sent_at IS NULL AND given_up_at IS NULL GROUP BY topic
"""
WEBHOOKS: LiteralString = """
    SELECT CASE WHEN NOT is_active THEN 'disabled'
                WHEN failures > 0 THEN 'failing' ELSE 'active' END, count(*)
      FROM webhooks GROUP BY 1
"""
PROXIES: LiteralString = """
    SELECT CASE WHEN is_active THEN 'active'
                WHEN next_probe_at IS NOT NULL THEN 'failing' ELSE 'disabled' END, count(*)
      FROM proxies GROUP BY 1
"""
# a domain whose pages are still parsed badly raises its alert once per interval
DEGRADED_DOMAINS: LiteralString = """
    SELECT count(DISTINCT domain_id) FROM catalog_events
     WHERE kind = 'parser.degraded'
       AND occurred_at > now() - 2 * %(parser_alert_interval)s * interval '1 second'
"""
BYPASSED_PARSERS: LiteralString = (
    "SELECT count(*) FROM parser_rollouts WHERE bypassed_until > now()"
)
DATABASE_SIZE: LiteralString = "SELECT pg_database_size(current_database())"
# connections of the whole server, like its limit
CONNECTIONS: LiteralString = """
    SELECT 'used', count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'
    UNION ALL SELECT 'limit', current_setting('max_connections')::bigint
"""
ARCHIVE_SIZE: LiteralString = "SELECT coalesce(sum(bytes), 0)::float8 FROM archive_segments"
_SERVICES: LiteralString = """
    service_processes p
    CROSS JOIN LATERAL (
        SELECT s ->> 'name' AS name,
               s ->> 'state' AS state,
               (s ->> 'failures')::int AS failures,
               jsonb_array_length(s -> 'skipped') AS skipped
          FROM jsonb_array_elements(p.services) AS s
    ) AS service
    WHERE p.last_seen > now() - %(stale_after)s * interval '1 second'
"""
SERVICES: LiteralString = f"SELECT name, state, count(*) FROM {_SERVICES} GROUP BY 1, 2"
SERVICE_FAILURES: LiteralString = f"SELECT name, max(failures) FROM {_SERVICES} GROUP BY 1"
SERVICE_SKIPPED: LiteralString = f"SELECT name, max(skipped) FROM {_SERVICES} GROUP BY 1"
