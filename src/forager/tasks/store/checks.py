"""Work that waits for a worker, and why tasks are late. SQL only."""

from __future__ import annotations

from forager.db.database import Connection
from forager.db.rows import Tuples, Values
from forager.fetch.budgets.domain_state import BLOCKED_UNTIL, SLOW_NOW
from forager.jobs.store.reads import NEEDS_BROWSER, renderer_is_there
from forager.products.store.audit import STATEMENTS
from forager.tasks.store.claims import RENDERER_IS_THERE, WANTS_BROWSER


async def select_late_causes(connection: Connection, *, late: float) -> dict[str, int]:
    """Late tasks by the state of their hosts; `free`: a slot was not used for 10 s."""
    return await Tuples(connection).as_dict(
        f"""
        SELECT CASE WHEN {BLOCKED_UNTIL} > now() THEN 'blocked'
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
