"""SQL of dispatch: taking what is to be told, and finding what has waited too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString

from psycopg.rows import class_row, scalar_row

from forager.db.database import Connection
from forager.dispatch.topology import Route
from forager.tasks.store.hints import HIGH, NORMAL


@dataclass(frozen=True, slots=True)
class Hint:
    """Tasks of one domain that wait; none if all have been taken by now."""

    id: int
    stage: str
    band: int
    region: str | None
    task_ids: list[int]


# Where a download goes. Of a domain without a region that is where a proxy is, if all of them are
# tied to regions: elsewhere nobody may claim it. A region with a worker comes first. The questions
# are of no row, and PostgreSQL asks them once.
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


# What goes to a queue that takes nothing for the moment.
RESTS: LiteralString = """
    EXISTS (
        SELECT FROM unnest(%(stages)s::text[], %(bands)s::int[], %(regions)s::text[])
                    AS resting (stage, band, region)
         WHERE resting.stage = o.stage AND resting.band = o.band
           AND resting.region IS NOT DISTINCT FROM (
               SELECT CASE o.stage WHEN 'crawl' THEN {CRAWL_REGION} ELSE d.region END
                 FROM domains d WHERE d.id = o.domain_id
           )
    )
"""


async def lock_hints(
    connection: Connection,
    *,
    limit: int,
    left_alone: float,
    task_proxies: bool,
    resting: Sequence[Route] = (),
) -> list[Hint]:
    """The next rows that nobody else has, but those of `resting` queues.

    Whoever has downloaded a page reads it himself within `left_alone` seconds, or somebody must be
    told: by then, only what was not read is. `task_proxies`: of domains that do not say.
    """
    rests: LiteralString = RESTS.format(CRAWL_REGION=CRAWL_REGION) if resting else "false"
    cursor = connection.cursor(row_factory=class_row(Hint))
    await cursor.execute(
        f"""
        WITH picked AS MATERIALIZED (
            SELECT *
              FROM dispatch_outbox o
             WHERE (stage = 'crawl' OR created_at <= now() - %(left_alone)s * interval '1 second')
               AND NOT {rests}
             ORDER BY band, id
             LIMIT %(limit)s
               FOR UPDATE SKIP LOCKED
        )
        SELECT o.id, o.stage, o.band,
               CASE o.stage WHEN 'crawl' THEN {CRAWL_REGION} ELSE d.region END AS region,
               CASE o.stage
                   WHEN 'crawl' THEN o.task_ids
                   ELSE ARRAY(SELECT t.id FROM crawl_tasks t
                               WHERE t.id = ANY(o.task_ids) AND t.status = 'downloaded')
               END AS task_ids
          FROM picked o LEFT JOIN domains d ON d.id = o.domain_id
         ORDER BY o.band, o.id
        """,
        {"limit": limit, "left_alone": left_alone, "task_proxies": task_proxies, **_named(resting)},
    )
    return await cursor.fetchall()


async def select_regions(connection: Connection) -> list[str]:
    """All that tasks may be told in."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        """
        SELECT region FROM domains WHERE region IS NOT NULL
        UNION
        SELECT region FROM proxies WHERE region IS NOT NULL AND is_active
        """
    )
    return await cursor.fetchall()


async def lock_forgotten(
    connection: Connection,
    *,
    waited: float,
    lost: float,
    told: Sequence[Route],
    limit: int,
    task_proxies: bool,
) -> list[int]:
    """Tasks that wait for a worker too long without a hint on its way; they are locked.

    `told`: routes on which messages still wait, that may be of those who wait less than `lost`
    seconds: a queue that is never empty says nothing of one task. Held tasks wait for a person, not
    for a worker. The OR is no IN: only so are the indexes read that hold the tasks of one status.
    """
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
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
                   SELECT FROM unnest(%(stages)s::text[], %(bands)s::int[], %(regions)s::text[])
                               AS told (stage, band, region)
                    WHERE told.stage = CASE t.status WHEN 'queued' THEN 'crawl' ELSE 'parse' END
                      AND told.band = CASE WHEN t.priority <= %(high)s THEN 1
                                           WHEN t.priority <= %(normal)s THEN 2 ELSE 3 END
                      AND told.region IS NOT DISTINCT FROM
                          CASE t.status WHEN 'queued' THEN {CRAWL_REGION} ELSE d.region END
               ))
               AND t.id NOT IN (SELECT unnest(task_ids) FROM dispatch_outbox)
             ORDER BY t.priority, t.scheduled_at, t.id
             LIMIT %(limit)s
               FOR NO KEY UPDATE OF t SKIP LOCKED
        """,
        {
            "waited": waited,
            "lost": lost,
            **_named(told),
            "high": HIGH,
            "normal": NORMAL,
            "limit": limit,
            "task_proxies": task_proxies,
        },
    )
    return await cursor.fetchall()


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is to be told to the broker: how many messages, and for how long the oldest waits."""

    messages: int
    seconds: float


async def select_backlog(connection: Connection) -> Backlog:
    cursor = connection.cursor(row_factory=class_row(Backlog))
    await cursor.execute(
        """
        SELECT count(*)::int AS messages,
               coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS seconds
          FROM dispatch_outbox
        """
    )
    found = await cursor.fetchone()
    assert found is not None
    return found


def _named(routes: Sequence[Route]) -> dict[str, object]:
    return {
        "stages": [route.stage for route in routes],
        "bands": [route.band.value for route in routes],
        "regions": [route.region for route in routes],
    }
