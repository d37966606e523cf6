"""The SQL of claiming: which waiting tasks a worker may take, and taking them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import LiteralString
from uuid import UUID

from psycopg.types.json import Jsonb

from forager.db.database import Connection
from forager.db.rows import Rows, Values
from forager.fetch.budgets.domain_state import BLOCKED_UNTIL, LEAD, SLOT_IS_STRAY
from forager.fetch.domains.store import HAS_PROXY, IN_REGION
from forager.jobs.store.reads import renderer_is_there
from forager.tasks.lifecycle import CLAIM_DOWNLOAD, CLAIM_PARSE
from forager.tasks.stages.attempt import LeasedTask

# as stored: 1 is claimed first
_STORED_PRIORITIES = range(1, 11)
_LAST_ID = 2**63 - 1
# A parser version counts while its product is stored: a product that was archived or deleted is
# restored only by a complete response, not by a 304.
READ_BY: LiteralString = """
    CASE WHEN t.parser_version IS NOT NULL
          AND EXISTS (SELECT FROM products p WHERE p.crawl_task_id = t.id)
         THEN t.parser_version
    END AS parser_version
"""

# A permanent redirect is followed once, and remembered while it leads to the page of the product.
MOVED_TO: LiteralString = """
    CASE WHEN t.moved_to IS NOT NULL
          AND EXISTS (SELECT FROM product_aliases a JOIN products p ON p.id = a.product_id
                       WHERE a.url_hash = t.url_hash AND p.url = t.moved_to)
         THEN t.moved_to
    END AS moved_to
"""

COLUMNS: LiteralString = f"""
    t.id, t.lease, t.domain_id, t.url, t.url_hash, t.retry_count, t.max_retries, t.etag,
    t.last_modified, {READ_BY}, t.segment, t.segment_offset, t.segment_length,
    d.domain_name, d.use_proxies, d.allow_private,
    coalesce(t.render, d.render) AS render, d.render_urls, t.needs_browser,
    t.needs_browser AND t.browser_until <= now() IS TRUE AS browser_expired,
    10 - t.priority AS priority, {MOVED_TO}
"""

# Whether only workers with a browser may download a task: by the setting of the task or its domain,
# otherwise by the result of a visit, until that decision expires.
WANTS_BROWSER: LiteralString = """
    CASE coalesce(t.render, d.render)
        WHEN 'always' THEN true WHEN 'never' THEN false
        ELSE t.needs_browser AND t.browser_until <= now() IS NOT TRUE
    END
"""
RENDERER_IS_THERE = renderer_is_there("tasks")

NOTHING_IS_ON_HOLD: LiteralString = """
    NOT EXISTS (SELECT FROM task_control WHERE hold IS NOT NULL)
"""

# a worker that others consider dead has no row, and must not start anything new
IS_REGISTERED: LiteralString = "EXISTS (SELECT FROM workers WHERE id = %(worker_id)s)"


# a task that waits for its host inside a worker would keep others from being downloaded
SLOT_IS_NEAR: LiteralString = f"""
    (d.per_proxy_only OR d.next_slot_at <= now() + {LEAD} * interval '1 second' OR {SLOT_IS_STRAY})
    AND coalesce({BLOCKED_UNTIL} <= now() + {LEAD} * interval '1 second', true)
"""


# Written so that the plan does not depend on it: planning takes longer than the claim itself, and a
# prepared statement is planned each time if a plan for the given number seems to be cheaper.
_LIMIT: LiteralString = "(SELECT %(limit)s::bigint)"

# the number of tasks that a domain can take now
ROOM: LiteralString = """
    least(
        coalesce(d.max_concurrent_requests, %(concurrency)s)
        - coalesce((%(busy)s::jsonb ->> d.id::text)::int, 0),
        coalesce((%(rooms)s::jsonb ->> d.id::text)::int, %(other_room)s),
        %(limit)s
    )
"""

MAY_START: LiteralString = f"""
    d.is_active AND d.task_hold IS NULL AND d.id <> ALL(%(throttled)s)
    AND {SLOT_IS_NEAR} AND {IN_REGION} AND {HAS_PROXY} AND {ROOM} > 0
"""

_IS_FREE: LiteralString = f"""
    t.status = 'queued' AND t.hold IS NULL AND (%(render_room)s > 0 OR NOT {WANTS_BROWSER})
"""

# The index is read from one (priority, domain) to the next, and no further than needed: from the
# domain after the last one that was claimed to the last, then from the first one.
# OFFSET 0 keeps the planner from reading all domains instead.
_IN_TURN: LiteralString = f"""
    SELECT lap.nth AS lap, lap.priority, next.domain_id, d.room, d.render
      FROM unnest(%(priorities)s::smallint[], %(first)s::bigint[], %(last)s::bigint[])
           WITH ORDINALITY AS lap (priority, first, last, nth)
     CROSS JOIN LATERAL (
        WITH RECURSIVE walk AS (
            (
                SELECT domain_id
                  FROM crawl_tasks
                 WHERE status = 'queued' AND priority = lap.priority
                   AND domain_id BETWEEN lap.first AND lap.last
                 ORDER BY domain_id
                 LIMIT 1
            )
            UNION ALL
            SELECT following.domain_id
              FROM walk
             CROSS JOIN LATERAL (
                SELECT domain_id
                  FROM crawl_tasks
                 WHERE status = 'queued' AND priority = lap.priority
                   AND domain_id > walk.domain_id AND domain_id <= lap.last
                 ORDER BY domain_id
                 LIMIT 1
             ) AS following
        )
        SELECT domain_id FROM walk
     ) AS next
     CROSS JOIN LATERAL (
        SELECT {ROOM} AS room, d.render
          FROM domains d
         WHERE d.id = next.domain_id AND {MAY_START}
           AND EXISTS (
                SELECT FROM crawl_tasks t
                 WHERE t.domain_id = next.domain_id AND t.priority = lap.priority AND {_IS_FREE}
           )
        OFFSET 0
     ) AS d
     WHERE {NOTHING_IS_ON_HOLD} AND {IS_REGISTERED}
     LIMIT {_LIMIT}
"""

_OF_HOSTS_IN_TURN: LiteralString = f"""
    SELECT t.*, d.lap, d.room
      FROM ({_IN_TURN}) AS d
     CROSS JOIN LATERAL (
        SELECT t.id, t.domain_id, t.priority, t.scheduled_at, t.popularity,
               {WANTS_BROWSER} AS wants_browser
          FROM crawl_tasks t
         WHERE t.domain_id = d.domain_id AND t.priority = d.priority AND {_IS_FREE}
         ORDER BY t.scheduled_at, t.popularity DESC, t.id
         LIMIT d.room
     ) AS t
"""

_NAMED: LiteralString = f"""
    SELECT t.id, t.domain_id, t.priority, t.scheduled_at, t.popularity,
           {WANTS_BROWSER} AS wants_browser, 1 AS lap, {ROOM} AS room
      FROM crawl_tasks t
      JOIN domains d ON d.id = t.domain_id
     WHERE t.id = ANY(%(among)s) AND {_IS_FREE} AND {MAY_START}
       AND {NOTHING_IS_ON_HOLD} AND {IS_REGISTERED}
"""


async def claim_queued(
    connection: Connection,
    worker_id: UUID,
    *,
    limit: int,
    busy: Mapping[int, int],
    throttled: Sequence[int],
    concurrency: int,
    rooms: Mapping[int, int] | None = None,
    among: Sequence[int] | None = None,
    after: int = 0,
    region: str | None = None,
    task_proxies: bool = False,
    render_room: int = 0,
) -> list[LeasedTask]:
    """Claim queued tasks whose host has a slot soon, round-robin over the domains.

    A domain gets no more tasks than its concurrency allows beside the `busy` ones, and than it has
    slots for within a second: `rooms` has that number for domains in use, others get one task;
    without `rooms`, only the concurrency counts.
    `concurrency` and `task_proxies` are the defaults of domains; `throttled` domains are skipped.
    `among`: only these tasks; otherwise the claim starts with the domain `after` this one.
    `render_room`: the number of tasks that may need a browser.
    """
    candidates = _OF_HOSTS_IN_TURN if among is None else _NAMED
    return await Rows(connection, LeasedTask).all(
        f"""
        WITH numbered AS (
            SELECT c.*,
                   row_number() OVER (
                       PARTITION BY c.domain_id
                           ORDER BY c.priority, c.scheduled_at, c.popularity DESC, c.id
                   ) AS nth,
                   row_number() OVER (
                       PARTITION BY c.wants_browser
                           ORDER BY c.priority, c.scheduled_at, c.popularity DESC, c.id
                   ) AS nth_of_kind
              FROM ({candidates}) AS c
        ), wanted AS MATERIALIZED (
            SELECT id
              FROM numbered
             WHERE nth <= room AND (NOT wants_browser OR nth_of_kind <= %(render_room)s)
             ORDER BY priority, nth, lap, domain_id, id
             LIMIT {_LIMIT}
        ), locked AS MATERIALIZED (
            SELECT t.id
              FROM crawl_tasks t
             WHERE t.id IN (SELECT id FROM wanted) AND {CLAIM_DOWNLOAD.allowed} AND t.hold IS NULL
               FOR NO KEY UPDATE SKIP LOCKED
        )
        UPDATE crawl_tasks t
           SET {CLAIM_DOWNLOAD.changes}
          FROM locked, domains d
         WHERE t.id = locked.id AND d.id = t.domain_id
        RETURNING {COLUMNS}
        """,
        {
            "worker_id": worker_id,
            "limit": limit,
            "busy": Jsonb({str(domain_id): tasks for domain_id, tasks in busy.items()}),
            "rooms": Jsonb({str(domain_id): tasks for domain_id, tasks in (rooms or {}).items()}),
            "throttled": list(throttled),
            "other_room": concurrency if rooms is None else 1,
            "concurrency": concurrency,
            "priorities": [priority for priority in _STORED_PRIORITIES for _ in range(2)],
            "first": [after + 1, 0] * len(_STORED_PRIORITIES),
            "last": [_LAST_ID, after] * len(_STORED_PRIORITIES),
            "among": None if among is None else list(among),
            "region": region,
            "task_proxies": task_proxies,
            "render_room": render_room,
        },
    )


async def exists_renderer(connection: Connection, *, stale_after: float) -> bool:
    """Whether a worker that renders has a current heartbeat."""
    return await Values(connection, bool).one(
        f"SELECT {RENDERER_IS_THERE}", {"stale_after": stale_after}
    )


async def claim_downloaded(
    connection: Connection,
    worker_id: UUID,
    *,
    limit: int,
    among: Sequence[int] | None = None,
    waited: float = 0.0,
    besides: Sequence[int] = (),
    region: str | None = None,
) -> list[LeasedTask]:
    """Claim downloaded tasks: `among` these, or any that `waited` this many seconds.

    The latter not of the domains in `besides`.
    """
    chosen: LiteralString = (
        "t.updated_at <= now() - %(waited)s * interval '1 second'"
        " AND NOT t.domain_id = ANY(%(besides)s)"
        if among is None
        else "t.id = ANY(%(among)s)"
    )
    return await Rows(connection, LeasedTask).all(
        f"""
        WITH locked AS MATERIALIZED (
            SELECT t.id
              FROM crawl_tasks t
              JOIN domains d ON d.id = t.domain_id AND d.task_hold IS NULL
             WHERE t.status = 'downloaded' AND t.hold IS NULL AND {chosen} AND {IN_REGION}
               AND {NOTHING_IS_ON_HOLD} AND {IS_REGISTERED}
             ORDER BY t.priority, t.scheduled_at, t.id
             LIMIT %(limit)s
               FOR NO KEY UPDATE OF t SKIP LOCKED
        )
        UPDATE crawl_tasks t
           SET {CLAIM_PARSE.changes}
          FROM locked, domains d
         WHERE t.id = locked.id AND d.id = t.domain_id
        RETURNING {COLUMNS}
        """,
        {
            "worker_id": worker_id,
            "limit": limit,
            "among": None if among is None else list(among),
            "waited": waited,
            "besides": list(besides),
            "region": region,
        },
    )
