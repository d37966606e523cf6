"""SQL of tracking: the domains of hosts, and rows for URLs that are new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from forager.db.database import Connection
from forager.db.rows import RowArrays, Tuples
from forager.tasks.tracking_request import RequestedTerms


@dataclass(frozen=True, slots=True)
class NewTask:
    """A URL to track, and the terms that were given for it."""

    domain_id: int
    url: str
    url_hash: bytes
    # None: the default, and no change where the URL is tracked already
    terms: RequestedTerms


_TERMS = {
    "priority": "smallint", "every": "interval", "popularity": "float8", "at": "timestamptz",
    "max_retries": "int", "render": "text",
}  # fmt: skip
_PATHS = {name: f"terms.{name}" for name in _TERMS}
_NEW = RowArrays("n", domain_id="bigint", url="text", url_hash="bytea", **_TERMS)
_NAMED = RowArrays("w", url_hash="bytea", **_TERMS)


async def insert_tasks(
    connection: Connection,
    tasks: Sequence[NewTask],
    *,
    due: datetime | None,
    default_priority: int,
    max_retries: int,
    found_by: str,
) -> int:
    """Insert tasks for URLs that have none, in an order that avoids deadlocks; returns how many."""
    return await Tuples(connection).affected(
        f"""
        INSERT INTO crawl_tasks (domain_id, url, url_hash, priority, crawl_frequency, popularity,
                                 scheduled_at, max_retries, render, found_by)
        SELECT domain_id, url, url_hash, 10 - coalesce(priority, %(default_priority)s), every,
               coalesce(popularity, 0), coalesce(at, %(due)s, now()),
               coalesce(max_retries, %(default_retries)s), render, %(found_by)s
          FROM {_NEW}
         ORDER BY url_hash
        ON CONFLICT (url_hash) DO NOTHING
        """,
        {
            **_NEW.values(tasks, **_PATHS),
            "due": due,
            "default_priority": default_priority,
            "default_retries": max_retries,
            "found_by": found_by,
        },
    )


async def update_terms(connection: Connection, tasks: Sequence[NewTask]) -> int:
    """Change the terms of known URLs; returns how many had others.

    A new interval counts from the last visit, and resets the adapted one.
    """
    return await Tuples(connection).affected(
        f"""
        WITH wanted AS (
            SELECT t.id, w.priority, w.every, w.popularity, w.at, w.max_retries, w.render
              FROM {_NAMED}
              JOIN crawl_tasks t ON t.url_hash = w.url_hash
             WHERE 10 - w.priority <> t.priority
                OR w.popularity <> t.popularity
                OR w.max_retries <> t.max_retries
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
               max_retries = coalesce(w.max_retries, t.max_retries),
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
        _NAMED.values(tasks, **_PATHS),
    )
