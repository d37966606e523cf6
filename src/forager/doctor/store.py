"""What the doctor asks the database. SQL only."""

from __future__ import annotations

from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Tuples, Values
from forager.fetch.budgets.store import SLOW_NOW
from forager.jobs.store.reads import NEEDS_BROWSER, renderer_is_there
from forager.products.store.audit import STATEMENTS
from forager.tasks.store.claims import RENDERER_IS_THERE, WANTS_BROWSER


async def select_connections(connection: Connection) -> tuple[int, int]:
    """Connections in use, and their limit."""
    cursor = await connection.execute(
        """
        SELECT (SELECT count(*)::int FROM pg_stat_activity
                 WHERE backend_type = 'client backend') AS used,
               (current_setting('max_connections')::int
                - current_setting('superuser_reserved_connections')::int) AS limit
        """
    )
    row = await cursor.fetchone()
    assert row is not None
    return row


async def select_autovacuum(connection: Connection) -> bool:
    return await Values(connection, bool).one(
        """
        SELECT current_setting('autovacuum')::boolean
           AND current_setting('track_counts')::boolean
        """
    )


async def select_bloated_tables(
    connection: Connection, *, dead: int, share: float
) -> list[tuple[str, int, int]]:
    """Tables with many dead rows, the worst first: name, live rows, dead rows."""
    return await Tuples(connection).all(
        """
        SELECT relname AS name, n_live_tup AS live, n_dead_tup AS dead
          FROM pg_stat_user_tables
         WHERE n_dead_tup > %s AND n_dead_tup > %s * n_live_tup
         ORDER BY n_dead_tup DESC
        """,
        (dead, share),
    )


async def select_open_transaction(connection: Connection) -> tuple[str, float] | None:
    """The session with the oldest other transaction in this database, and its seconds."""
    cursor = await connection.execute(
        """
        SELECT coalesce(nullif(application_name, ''), 'unknown') || ', pid ' || pid AS who,
               extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds
          FROM pg_stat_activity
         WHERE datname = current_database() AND xact_start IS NOT NULL
           AND backend_type = 'client backend' AND pid <> pg_backend_pid()
         ORDER BY xact_start LIMIT 1
        """
    )
    return await cursor.fetchone()


async def select_still_jobs(
    connection: Connection, *, still_for: float
) -> list[tuple[UUID, float]]:
    """Jobs whose lease is renewed while they commit nothing, and for how many seconds."""
    return await Tuples(connection).all(
        """
        SELECT j.id,
               extract(epoch FROM now()
                       - greatest(s.updated_at, claimed.at, j.started_at))::float8 AS seconds
          FROM crawl_jobs j
          LEFT JOIN crawl_states s ON s.job_id = j.id
          LEFT JOIN LATERAL (
               SELECT e.at FROM job_events e WHERE e.job_id = j.id ORDER BY e.id DESC LIMIT 1
          ) AS claimed ON true
         WHERE j.worker_id IS NOT NULL AND j.status = 'processing'
           AND greatest(s.updated_at, claimed.at, j.started_at)
               < now() - %s * interval '1 second'
         ORDER BY seconds DESC
         LIMIT 100
        """,
        (still_for,),
    )


async def select_oldest_due(connection: Connection) -> float | None:
    """Seconds for which the oldest pending job could have been running."""
    return await Values(connection).first(
        """
        SELECT extract(epoch FROM now() - min(run_after))::float8
          FROM crawl_jobs WHERE status = 'pending' AND run_after <= now()
        """
    )


async def select_unserved_regions(
    connection: Connection, *, stale_after: float, task_proxies: bool
) -> list[tuple[str, int]]:
    """Regions with waiting work and no worker, and their number of domains; without held tasks.

    Domains without a region that use the pool wait for the region that has all of the proxies.
    """
    return await Tuples(connection).all(
        """
        WITH present AS (
            SELECT DISTINCT region, role
              FROM workers
             WHERE last_seen > now() - %(stale_after)s * interval '1 second'
        ), waiting AS (
            SELECT d.region, d.domain_name AS host
              FROM domains d
             WHERE d.region IS NOT NULL AND d.task_hold IS NULL
               AND NOT EXISTS (
                   SELECT FROM present p WHERE p.region = d.region AND p.role = 'tasks'
               )
               AND (
                   d.is_active AND EXISTS (
                       SELECT FROM crawl_tasks t
                        WHERE t.status = 'pending' AND t.hold IS NULL AND t.domain_id = d.id
                          AND t.scheduled_at <= now()
                   ) OR EXISTS (
                       SELECT FROM crawl_tasks t
                        WHERE t.status IN ('queued', 'downloaded') AND t.hold IS NULL
                          AND t.domain_id = d.id
                          -- what was downloaded is read also of a domain that is switched off
                          AND (d.is_active OR t.status = 'downloaded')
                   )
               )
            UNION
            SELECT (SELECT min(region) FROM proxies WHERE is_active), d.domain_name
              FROM domains d
             WHERE d.region IS NULL AND d.is_active AND d.task_hold IS NULL
               AND coalesce(d.use_proxies, %(task_proxies)s)
               AND EXISTS (SELECT FROM proxies WHERE is_active)
               AND NOT EXISTS (
                   SELECT FROM proxies x
                    WHERE x.is_active AND (x.region IS NULL OR EXISTS (
                        SELECT FROM present p WHERE p.region = x.region AND p.role = 'tasks'
                    ))
               )
               AND EXISTS (
                   SELECT FROM crawl_tasks t
                    WHERE t.status IN ('pending', 'queued') AND t.hold IS NULL
                      AND t.domain_id = d.id AND t.scheduled_at <= now()
               )
            UNION
            SELECT j.region, j.host
              FROM crawl_jobs j
             WHERE j.status = 'pending' AND j.run_after <= now() AND j.region IS NOT NULL
               AND NOT EXISTS (
                   SELECT FROM present p WHERE p.region = j.region AND p.role = 'jobs'
               )
        )
        SELECT region, count(*)::int AS domains
          FROM waiting GROUP BY region ORDER BY domains DESC, region
        """,
        {"stale_after": stale_after, "task_proxies": task_proxies},
    )


async def count_waiting_for_browser(connection: Connection, *, stale_after: float) -> int:
    """Due crawls and tasks that need a browser, if no worker has one; counted up to a thousand."""
    value = await Values(connection).first(
        f"""
        SELECT count(*)::int
          FROM (
            SELECT
              FROM crawl_tasks t
              JOIN domains d ON d.id = t.domain_id AND d.is_active AND d.task_hold IS NULL
             WHERE t.status IN ('pending', 'queued') AND t.hold IS NULL
               AND t.scheduled_at <= now() AND {WANTS_BROWSER}
               AND NOT {RENDERER_IS_THERE}
            UNION ALL
            SELECT
              FROM crawl_jobs
             WHERE status = 'pending' AND run_after <= now() AND {NEEDS_BROWSER}
               AND NOT {renderer_is_there("jobs", "crawl_jobs.region")}
             LIMIT 1000
          ) AS waiting
        """,
        {"stale_after": stale_after},
    )
    return int(value or 0)


async def select_segment_sample(connection: Connection, limit: int) -> list[str]:
    """Segments that hold something, of all ages."""
    return await Values(connection).all(
        """
        SELECT name FROM archive_segments
         WHERE records > 0 AND going_at IS NULL
         ORDER BY random() LIMIT %s
        """,
        (limit,),
    )


async def count_segments(connection: Connection) -> int:
    return await Values(connection, int).one(
        "SELECT count(*) FROM archive_segments WHERE records > 0 AND going_at IS NULL"
    )


async def select_late_causes(connection: Connection, *, late: float) -> dict[str, int]:
    """Late tasks by the state of their hosts; `free`: a slot was not used for 10 s."""
    return await Tuples(connection).as_dict(
        f"""
        SELECT CASE WHEN d.blocked_until > now() THEN 'blocked'
                    WHEN {SLOW_NOW} > 0 THEN 'slowed'
                    WHEN d.next_slot_at < now() - interval '10 seconds' THEN 'free'
                    ELSE 'paced'
               END AS cause, count(*)::int
          FROM ({STATEMENTS["tasks_overdue"]}) AS late
          JOIN crawl_tasks t ON t.id = late.id
          JOIN domains d ON d.id = t.domain_id
         GROUP BY cause
        """,
        {"late": late},
    )
