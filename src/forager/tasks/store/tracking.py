"""SQL of tracking: the domains of hosts, and rows for URLs that are new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from forager.db.database import Connection
from forager.db.rows import Values


@dataclass(frozen=True, slots=True)
class NewTask:
    """A row to insert; None: the default, and no change where the URL is tracked already."""

    domain_id: int
    url: str
    url_hash: bytes
    priority: int | None
    every: timedelta | None
    popularity: float | None
    at: datetime | None = None
    max_retries: int | None = None
    render: str | None = None


async def select_now(connection: Connection) -> datetime:
    now = await Values(connection).first("SELECT now()")
    assert isinstance(now, datetime)
    return now


async def insert_tasks(
    connection: Connection,
    tasks: Sequence[NewTask],
    *,
    due: datetime | None,
    default_priority: int,
    max_retries: int,
    found_by: str,
) -> int:
    """Rows for the URLs that have none, due then or now; how many. The order avoids deadlocks."""
    cursor = await connection.execute(
        """
        INSERT INTO crawl_tasks (domain_id, url, url_hash, priority, crawl_frequency, popularity,
                                 scheduled_at, max_retries, render, found_by)
        SELECT domain_id, url, url_hash, 10 - coalesce(priority, %(default_priority)s), every,
               coalesce(popularity, 0), coalesce(at, %(due)s, now()),
               coalesce(retries, %(max_retries)s), render, %(found_by)s
          FROM unnest(%(domains)s::bigint[], %(urls)s::text[], %(hashes)s::bytea[],
                      %(priorities)s::smallint[], %(every)s::interval[],
                      %(popularity)s::float8[], %(at)s::timestamptz[], %(retries)s::int[],
                      %(render)s::text[])
               AS t (domain_id, url, url_hash, priority, every, popularity, at, retries, render)
         ORDER BY url_hash
        ON CONFLICT (url_hash) DO NOTHING
        """,
        {
            **_columns(tasks),
            "domains": [task.domain_id for task in tasks],
            "urls": [task.url for task in tasks],
            "due": due,
            "default_priority": default_priority,
            "max_retries": max_retries,
            "found_by": found_by,
        },
    )
    return cursor.rowcount


async def update_terms(connection: Connection, tasks: Sequence[NewTask]) -> int:
    """Give known URLs the terms that were named; how many had others.

    A new interval counts from the last visit, and forgets what was adapted.
    """
    cursor = await connection.execute(
        """
        WITH wanted AS (
            SELECT t.id, w.priority, w.every, w.popularity, w.at, w.retries, w.render
              FROM unnest(%(hashes)s::bytea[], %(priorities)s::smallint[], %(every)s::interval[],
                          %(popularity)s::float8[], %(at)s::timestamptz[], %(retries)s::int[],
                          %(render)s::text[])
                   AS w (url_hash, priority, every, popularity, at, retries, render)
              JOIN crawl_tasks t ON t.url_hash = w.url_hash
             WHERE 10 - w.priority <> t.priority
                OR w.popularity <> t.popularity
                OR w.retries <> t.max_retries
                OR (w.render IS NOT NULL AND w.render IS DISTINCT FROM t.render)
                OR w.at <> CASE t.status WHEN 'completed' THEN t.next_crawl_at
                                         WHEN 'pending' THEN t.scheduled_at END
                OR (w.every IS NOT NULL AND w.every IS DISTINCT FROM t.crawl_frequency)
             ORDER BY t.id
               FOR NO KEY UPDATE OF t
        )
        UPDATE crawl_tasks t
           SET priority = coalesce(10 - w.priority, t.priority),
               popularity = coalesce(w.popularity, t.popularity),
               max_retries = coalesce(w.retries, t.max_retries),
               render = coalesce(w.render, t.render),
               scheduled_at = CASE WHEN t.status = 'pending'
                   THEN coalesce(w.at, t.scheduled_at) ELSE t.scheduled_at END,
               crawl_frequency = coalesce(w.every, t.crawl_frequency),
               adapted_frequency = CASE WHEN w.every IS NULL THEN t.adapted_frequency END,
               next_crawl_at = CASE
                   WHEN t.status = 'completed' THEN
                       coalesce(w.at, t.completed_at + w.every, t.next_crawl_at)
                   ELSE t.next_crawl_at
               END,
               updated_at = now()
          FROM wanted w
         WHERE t.id = w.id
        """,
        _columns(tasks),
    )
    return cursor.rowcount


def _columns(tasks: Sequence[NewTask]) -> dict[str, object]:
    return {
        "hashes": [task.url_hash for task in tasks],
        "priorities": [task.priority for task in tasks],
        "every": [task.every for task in tasks],
        "popularity": [task.popularity for task in tasks],
        "at": [task.at for task in tasks],
        "retries": [task.max_retries for task in tasks],
        "render": [task.render for task in tasks],
    }
