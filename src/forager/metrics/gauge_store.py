"""Statements of the gauges: how things stand now, read from the tables. SQL only.

Each answers with rows of label values, the number last.
"""

from __future__ import annotations

from typing import Any, LiteralString

from forager.db.database import Connection

Rows = list[tuple[Any, ...]]


async def count_jobs(connection: Connection) -> Rows:
    return await _rows(connection, "SELECT status, count(*) FROM crawl_jobs GROUP BY status")


async def count_tasks(connection: Connection) -> Rows:
    return await _rows(connection, "SELECT status, count(*) FROM crawl_tasks GROUP BY status")


async def oldest_waiting(connection: Connection) -> Rows:
    """How long the oldest job and the oldest task have been due without being begun."""
    return await _rows(
        connection,
        """
        SELECT 'jobs', extract(epoch FROM now() - min(run_after))::float8
          FROM crawl_jobs WHERE status = 'pending' AND run_after <= now()
        UNION ALL
        SELECT 'tasks', extract(epoch FROM now() - least(
                   (SELECT min(scheduled_at) FROM crawl_tasks
                     WHERE status = 'pending' AND hold IS NULL AND scheduled_at <= now()),
                   (SELECT min(scheduled_at) FROM crawl_tasks WHERE status = 'queued')))::float8
        UNION ALL
        SELECT CASE WHEN topic IN ('crawl', 'parse') THEN 'dispatch'
                    WHEN topic = 'webhooks' THEN 'webhooks' ELSE 'index' END,
               extract(epoch FROM now() - min(created_at))::float8
          FROM outbox
         WHERE sent_at IS NULL AND given_up_at IS NULL AND (attempts = 0 OR topic = 'webhooks')
         GROUP BY 1
        """,
    )


async def sum_pending_urls(connection: Connection) -> Rows:
    """Of crawls that run: a paused one waits for a person, a pending one for its turn."""
    return await _rows(
        connection,
        """
        SELECT coalesce(sum(s.total_pending), 0)::float8
          FROM crawl_jobs j JOIN crawl_states s ON s.job_id = j.id
         WHERE j.status = 'processing'
        """,
    )


async def count_workers(connection: Connection, stale_after: float) -> Rows:
    cursor = await connection.execute(
        """
        SELECT role, CASE WHEN last_seen < now() - %s * interval '1 second'
                          THEN 'silent' ELSE 'alive' END AS state, count(*)
          FROM workers GROUP BY 1, 2
        """,
        (stale_after,),
    )
    return await cursor.fetchall()


async def count_dead_letters(connection: Connection) -> Rows:
    return await _rows(
        connection,
        "SELECT error_kind, count(*) FROM dead_letters WHERE resolved_at IS NULL GROUP BY 1",
    )


async def count_unsent(connection: Connection) -> Rows:
    return await _rows(
        connection,
        """
        SELECT topic, count(*) FROM outbox
         WHERE sent_at IS NULL AND given_up_at IS NULL GROUP BY topic
        """,
    )


async def count_webhooks(connection: Connection) -> Rows:
    return await _rows(
        connection,
        """
        SELECT CASE WHEN NOT is_active THEN 'disabled'
                    WHEN failures > 0 THEN 'failing' ELSE 'active' END, count(*)
          FROM webhooks GROUP BY 1
        """,
    )


async def count_proxies(connection: Connection) -> Rows:
    return await _rows(
        connection,
        """
        SELECT CASE WHEN is_active THEN 'active'
                    WHEN next_probe_at IS NOT NULL THEN 'failing' ELSE 'disabled' END, count(*)
          FROM proxies GROUP BY 1
        """,
    )


async def database_size(connection: Connection) -> Rows:
    return await _rows(connection, "SELECT pg_database_size(current_database())")


async def count_connections(connection: Connection) -> Rows:
    """Of the whole server, as its limit is."""
    return await _rows(
        connection,
        """
        SELECT 'used', count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'
        UNION ALL SELECT 'limit', current_setting('max_connections')::bigint
        """,
    )


async def archive_size(connection: Connection) -> Rows:
    return await _rows(connection, "SELECT coalesce(sum(bytes), 0)::float8 FROM archive_segments")


async def _rows(connection: Connection, statement: Any) -> Rows:
    return await (await connection.execute(statement)).fetchall()


_SERVICES: LiteralString = """
    service_processes p
    CROSS JOIN LATERAL (
        SELECT s ->> 'name' AS name,
               s ->> 'state' AS state,
               (s ->> 'failures')::int AS failures,
               jsonb_array_length(s -> 'skipped') AS skipped
          FROM jsonb_array_elements(p.services) AS s
    ) AS service
    WHERE p.last_seen > now() - %s * interval '1 second'
"""


async def count_services(connection: Connection, stale_after: float) -> Rows:
    """Services of running processes by name and state."""
    cursor = await connection.execute(
        f"SELECT name, state, count(*) FROM {_SERVICES} GROUP BY 1, 2", (stale_after,)
    )
    return await cursor.fetchall()


async def max_service_failures(connection: Connection, stale_after: float) -> Rows:
    cursor = await connection.execute(
        f"SELECT name, max(failures) FROM {_SERVICES} GROUP BY 1", (stale_after,)
    )
    return await cursor.fetchall()


async def max_service_skipped(connection: Connection, stale_after: float) -> Rows:
    cursor = await connection.execute(
        f"SELECT name, max(skipped) FROM {_SERVICES} GROUP BY 1", (stale_after,)
    )
    return await cursor.fetchall()
