"""SQL of dispatch: where messages go, and tasks that have waited too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from forager.db.database import Connection
from forager.db.rows import RowArrays, Values
from forager.dispatch.message import Route
from forager.outbox.store import UNSENT
from forager.tasks.store.hints import BAND, TOPIC

# The region of a download. For a domain without one it is that of a proxy, if all proxies have
# regions: workers elsewhere may not claim it. A region with a worker comes first. The
# subqueries depend on no row, so that PostgreSQL runs them once.
CRAWL_REGION: LiteralString = """
    coalesce(d.region, CASE
        WHEN coalesce(d.use_proxies, %(task_proxies)s)
         AND NOT EXISTS (SELECT FROM proxies WHERE is_active AND region IS NULL)
        THEN (SELECT p.region
                FROM proxies p
               WHERE p.is_active
               ORDER BY p.region IN (SELECT region FROM workers WHERE role = 'tasks') DESC, p.region
               LIMIT 1)
    END)
"""


_ROUTES = RowArrays("busy", stage="text", band="int", region="text")


async def select_places(
    connection: Connection, domain_ids: Sequence[int], *, task_proxies: bool
) -> dict[int, tuple[str | None, str | None]]:
    """The regions in which tasks of domains are downloaded and parsed; None: any."""
    cursor = await connection.execute(
        f"SELECT d.id, {CRAWL_REGION}, d.region FROM domains d WHERE d.id = ANY(%(ids)s)",
        {"ids": list(domain_ids), "task_proxies": task_proxies},
    )
    return {row[0]: (row[1], row[2]) for row in await cursor.fetchall()}


async def select_downloaded(connection: Connection, task_ids: Sequence[int]) -> set[int]:
    """Those of the tasks whose page waits to be parsed."""
    return await Values(connection).as_set(
        "SELECT id FROM crawl_tasks WHERE id = ANY(%s) AND status = 'downloaded'", (list(task_ids),)
    )


async def select_regions(connection: Connection) -> list[str]:
    """All regions that a domain or an active proxy names."""
    return await Values(connection).all(
        """
        SELECT region FROM domains WHERE region IS NOT NULL
        UNION
        SELECT region FROM proxies WHERE region IS NOT NULL AND is_active
        """
    )


async def lock_forgotten(
    connection: Connection,
    *,
    waited: float,
    lost: float,
    busy: Sequence[Route],
    limit: int,
    task_proxies: bool,
) -> list[int]:
    """Lock tasks that have waited too long for a worker, and have no message in the outbox.

    `busy`: routes with messages in the broker, which may be about tasks that have waited for less
    than `lost` seconds; a queue that is never empty says nothing about one task. Held tasks wait
    for a person, not for a worker. OR instead of IN lets PostgreSQL use the indexes of one status.
    """
    return await Values(connection).all(
        f"""
            SELECT t.id
              FROM crawl_tasks t
              JOIN domains d ON d.id = t.domain_id
             WHERE (t.status = 'queued' OR t.status = 'downloaded')
               AND t.updated_at < now() - %(waited)s * interval '1 second'
               AND t.hold IS NULL AND d.task_hold IS NULL
               AND (d.is_active OR t.status = 'downloaded')
               AND NOT EXISTS (SELECT FROM task_control WHERE hold IS NOT NULL)
               AND (t.updated_at < now() - %(lost)s * interval '1 second' OR NOT EXISTS (
                   SELECT FROM {_ROUTES}
                    WHERE busy.stage = {TOPIC} AND busy.band = {BAND}
                      AND busy.region IS NOT DISTINCT FROM
                          CASE t.status WHEN 'queued' THEN {CRAWL_REGION} ELSE d.region END
               ))
               AND t.id NOT IN (
                   SELECT unnest(payload) FROM outbox
                    WHERE topic IN ('crawl', 'parse', 'render') AND {UNSENT}
               )
             ORDER BY t.priority, t.scheduled_at, t.id
             LIMIT %(limit)s
               FOR NO KEY UPDATE OF t SKIP LOCKED
        """,
        {
            "waited": waited,
            "lost": lost,
            **_ROUTES.values(busy),
            "limit": limit,
            "task_proxies": task_proxies,
        },
    )
