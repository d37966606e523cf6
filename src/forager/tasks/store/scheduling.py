"""SQL of the scheduler. What it reads grows with what is due and queued, not with what waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples, Values
from forager.fetch.budgets.domain_state import BLOCKED_UNTIL, SLOT_IS_STRAY, SLOW_NOW
from forager.tasks.allowance import DomainLoad
from forager.tasks.lifecycle import COME_DUE, QUEUE, WITHDRAW
from forager.tasks.store.claims import WANTS_BROWSER, exists_renderer

# one number for all schedulers of a database
_LEADER = 0x666F_7261_7461_736B


async def lead(connection: Connection) -> bool:
    """Whether this transaction is the only one that queues; the lock ends with it."""
    return await Values(connection, bool).one("SELECT pg_try_advisory_xact_lock(%s)", (_LEADER,))


async def walk_indexes(connection: Connection) -> None:
    """Make this transaction read rows in the order of an index, and no further than needed.

    After a large import, old statistics would lead to plans that read the whole table.
    """
    await connection.execute(
        """
        SELECT set_config('enable_seqscan', 'off', true),
               set_config('enable_bitmapscan', 'off', true)
        """
    )


async def has_work(connection: Connection) -> bool:
    """Whether a task is due, pending or queued; each of them is the first of an index."""
    return await Values(connection, bool).one(
        """
        SELECT coalesce((SELECT next_crawl_at <= now() FROM crawl_tasks
                          WHERE status = 'completed' ORDER BY next_crawl_at LIMIT 1), false)
            OR EXISTS (SELECT FROM crawl_tasks WHERE status = 'pending' AND hold IS NULL
                        ORDER BY domain_id, priority LIMIT 1)
            OR EXISTS (SELECT FROM crawl_tasks WHERE status = 'queued'
                        ORDER BY priority, domain_id LIMIT 1)
        """
    )


async def wake_due(connection: Connection, limit: int) -> int:
    """Make completed tasks pending whose next visit is due."""
    return await Tuples(connection).affected(
        f"""
        WITH due AS (
            SELECT id
              FROM crawl_tasks t
             WHERE {COME_DUE.allowed} AND next_crawl_at <= now()
             ORDER BY next_crawl_at
             LIMIT %s
               FOR NO KEY UPDATE SKIP LOCKED
        )
        UPDATE crawl_tasks t
           SET {COME_DUE.changes}, scheduled_at = t.next_crawl_at
         WHERE t.id = ANY(ARRAY(SELECT id FROM due))
        """,
        (limit,),
    )


async def withdraw_queued(connection: Connection, window: float) -> int:
    """Make queued tasks pending again that may not be crawled any more."""
    return await Tuples(connection).affected(
        f"""
        WITH unwanted AS (
            -- the subqueries refer to no row, so that each runs once and not for every task
            SELECT t.id
              FROM crawl_tasks t
             WHERE t.status = 'queued'
               AND (t.hold IS NOT NULL
                    OR EXISTS (SELECT FROM task_control WHERE hold IS NOT NULL)
                    OR t.domain_id IN (
                        SELECT id
                          FROM domains d
                         WHERE task_hold IS NOT NULL OR NOT is_active
                            OR {BLOCKED_UNTIL} > now() + %s * interval '1 second'
                    ))
               FOR NO KEY UPDATE OF t SKIP LOCKED
        )
        UPDATE crawl_tasks t
           SET {WITHDRAW.changes}
         WHERE t.id = ANY(ARRAY(SELECT id FROM unwanted))
        """,
        (window,),
    )


_SECONDS_TO: LiteralString = "greatest(0, coalesce(extract(epoch FROM {} - now()), 0))::float8"

# reads the index from one (domain, priority) to the next, without the rows in between
_SELECT_LOADS: LiteralString = f"""
WITH RECURSIVE waiting AS (
    (
        SELECT domain_id, priority
          FROM crawl_tasks
         WHERE status = 'pending' AND hold IS NULL
         ORDER BY domain_id, priority
         LIMIT 1
    )
    UNION ALL
    SELECT following.domain_id, following.priority
      FROM waiting
     CROSS JOIN LATERAL (
        SELECT domain_id, priority
          FROM crawl_tasks
         WHERE status = 'pending' AND hold IS NULL
           AND (domain_id, priority) > (waiting.domain_id, waiting.priority)
         ORDER BY domain_id, priority
         LIMIT 1
     ) AS following
), listed AS (
    SELECT domain_id, array_agg(10 - priority ORDER BY priority) AS priorities
      FROM waiting
     GROUP BY domain_id
), busy AS (
    SELECT domain_id,
           count(*) FILTER (WHERE status = 'queued')::int AS queued,
           count(*) FILTER (WHERE status = 'crawling')::int AS crawling
      FROM (
        SELECT domain_id, status FROM crawl_tasks WHERE status = 'queued'
        UNION ALL
        SELECT domain_id, status FROM crawl_tasks
         WHERE worker_id IS NOT NULL AND status = 'crawling'
      ) AS with_workers
     GROUP BY domain_id
)
SELECT d.id,
       d.domain_name AS name,
       greatest(d.crawl_delay_seconds::float8, d.traffic_delay) AS delay,
       d.max_concurrent_requests AS concurrency,
       {SLOW_NOW} AS slow_delay,
       d.per_proxy_only,
       d.use_proxies,
       d.region,
       d.is_active,
       d.task_hold IS NOT NULL OR c.hold IS NOT NULL AS is_on_hold,
       {_SECONDS_TO.format(BLOCKED_UNTIL)} AS blocked_for,
       CASE WHEN {SLOT_IS_STRAY} THEN 0 ELSE {_SECONDS_TO.format("d.next_slot_at")} END AS slot_in,
       coalesce(busy.queued, 0) AS queued,
       coalesce(busy.crawling, 0) AS crawling,
       listed.priorities
  FROM listed
  JOIN domains d ON d.id = listed.domain_id
  LEFT JOIN busy ON busy.domain_id = d.id
 CROSS JOIN task_control c
"""


async def select_loads(connection: Connection) -> list[DomainLoad]:
    """Domains with pending tasks, due or not, and the state of their budgets."""
    return await Rows(connection, DomainLoad).all(_SELECT_LOADS)


# The index has the tasks of each domain and priority in due order. The priorities of a domain are
# read in order, and no more rows than the domain is allowed.
_QUEUE_DUE = f"""
WITH candidates AS (
    SELECT t.*
      FROM unnest(%(domains)s::bigint[], %(allowances)s::int[], %(priorities)s::text[])
           AS budget (domain_id, allowance, priorities)
      JOIN domains d ON d.id = budget.domain_id
     CROSS JOIN LATERAL (
        SELECT due.*
          FROM unnest(budget.priorities::smallint[]) AS wanted (priority)
         CROSS JOIN LATERAL (
            SELECT id, priority, scheduled_at, popularity
              FROM crawl_tasks t
             WHERE status = 'pending' AND hold IS NULL
               AND domain_id = budget.domain_id AND priority = 10 - wanted.priority
               AND scheduled_at <= now()
               -- with no worker that renders, they would take the place of others
               AND (%(has_renderer)s OR NOT {WANTS_BROWSER})
             ORDER BY scheduled_at, popularity DESC, id
             LIMIT budget.allowance
         ) AS due
         LIMIT budget.allowance
     ) AS t
), chosen AS MATERIALIZED (
    SELECT id
      FROM candidates
     ORDER BY priority, scheduled_at, popularity DESC, id
     LIMIT %(limit)s
), locked AS MATERIALIZED (
    SELECT locked.id
      FROM chosen
     CROSS JOIN LATERAL (
        -- spelled so that no index of pending tasks seems to be of use here
        SELECT t.id
          FROM crawl_tasks t
         WHERE t.id = chosen.id AND {QUEUE.allowed} AND coalesce(t.hold, '') = ''
           FOR NO KEY UPDATE SKIP LOCKED
     ) AS locked
)
UPDATE crawl_tasks t
   SET {QUEUE.changes}
 WHERE id = ANY(ARRAY(SELECT id FROM locked))
RETURNING id
"""


async def queue_due(
    connection: Connection,
    allowances: Sequence[tuple[DomainLoad, int]],
    limit: int,
    *,
    stale_after: float,
) -> list[int]:
    """Queue due tasks: up to a number per domain, and up to `limit` in total."""
    return await Values(connection).all(
        _QUEUE_DUE,
        {
            "domains": [load.id for load, _ in allowances],
            "allowances": [number for _, number in allowances],
            # an array of arrays would have to be rectangular
            "priorities": [f"{{{','.join(map(str, load.priorities))}}}" for load, _ in allowances],
            "limit": limit,
            "has_renderer": await exists_renderer(connection, stale_after=stale_after),
        },
    )


async def note_tick(connection: Connection) -> None:
    """Note that the scheduler ran now."""
    await connection.execute("UPDATE task_control SET ticked_at = now()")


async def count_proxies(connection: Connection, *, stale_after: float) -> dict[str | None, int]:
    """Active proxies by region, without those that no worker can use."""
    return await Tuples(connection).as_dict(
        """
        SELECT p.region, count(*)::int
          FROM proxies p
         WHERE p.is_active
           AND (p.region IS NULL OR EXISTS (
                SELECT
                  FROM workers w
                 WHERE w.role = 'tasks' AND w.region = p.region
                   AND w.last_seen > now() - %s * interval '1 second'
           ))
         GROUP BY p.region
        """,
        (stale_after,),
    )


async def select_delaying_robots(
    connection: Connection, within: float | None
) -> list[tuple[str, bytes]]:
    """Origins whose robots.txt was fetched within this many seconds, and those files.

    Files without a delay are returned empty.
    """
    return await Tuples(connection).all(
        """
        SELECT origin,
               CASE
                   WHEN status BETWEEN 200 AND 299 AND encode(body, 'escape') ~* 'crawl-delay'
                   THEN body
                   ELSE ''
               END
          FROM robots_files
         WHERE %(within)s::float8 IS NULL
            OR fetched_at > now() - %(within)s::float8 * interval '1 second'
        """,
        {"within": within},
    )
