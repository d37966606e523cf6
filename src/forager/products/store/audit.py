"""SQL of the audit: each statement finds rows that are inconsistent or stale."""

from __future__ import annotations

from typing import Any, LiteralString

from forager.db.database import Connection
from forager.db.rows import Tuples

# paused and disabled tasks may be late
_RUNNING: LiteralString = """
    t.hold IS NULL AND d.task_hold IS NULL AND d.is_active
    AND NOT EXISTS (SELECT FROM task_control c WHERE c.hold IS NOT NULL)
"""

# Each statement selects one column of the rows that are wrong.
STATEMENTS: dict[str, LiteralString] = {
    "products_without_task": """
        SELECT id FROM products
         WHERE crawl_task_id IS NULL AND availability IS DISTINCT FROM 'discontinued'
    """,
    "tasks_without_domain": """
        SELECT t.id FROM crawl_tasks t
         WHERE NOT EXISTS (SELECT FROM domains d WHERE d.id = t.domain_id)
    """,
    "completed_without_next_crawl": """
        SELECT id FROM crawl_tasks WHERE status = 'completed' AND next_crawl_at IS NULL
    """,
    "dead_letters_of_living_tasks": """
        SELECT l.id FROM dead_letters l
          LEFT JOIN crawl_tasks t ON t.id = l.task_id
         WHERE l.resolved_at IS NULL AND t.status IS DISTINCT FROM 'failed'
    """,
    "failed_without_dead_letter": """
        SELECT t.id FROM crawl_tasks t
         WHERE t.status = 'failed'
           AND NOT EXISTS (
            SELECT FROM dead_letters l WHERE l.task_id = t.id AND l.resolved_at IS NULL
           )
           AND NOT EXISTS (
            SELECT FROM dead_letters l WHERE l.task_id = t.id AND l.resolution = 'dropped'
           )
    """,
    "archive_segments_gone": """
        SELECT r.segment
          FROM (
            SELECT DISTINCT segment FROM crawl_tasks WHERE segment IS NOT NULL
            UNION SELECT DISTINCT segment FROM extractions WHERE segment IS NOT NULL
            UNION SELECT DISTINCT segment FROM task_attempts WHERE segment IS NOT NULL
          ) AS r
         WHERE NOT EXISTS (SELECT FROM archive_segments s WHERE s.name = r.segment)
    """,
    "images_without_file": """
        SELECT i.id FROM images i
         WHERE i.status = 'stored'
           AND NOT EXISTS (
            SELECT FROM image_files f
             WHERE f.content_hash = i.content_hash AND f.path = i.image_path AND f.going_at IS NULL
           )
    """,
    "products_not_seen": f"""
        SELECT p.id FROM products p
          JOIN crawl_tasks t ON t.id = p.crawl_task_id
          JOIN domains d ON d.id = t.domain_id
         WHERE {_RUNNING}
           AND p.last_seen_at < now() - 3 * coalesce(
                t.adapted_frequency, t.crawl_frequency, d.crawl_frequency,
                make_interval(secs => %(every)s))
    """,
    "tasks_overdue": f"""
        SELECT t.id FROM crawl_tasks t
          JOIN domains d ON d.id = t.domain_id
         WHERE {_RUNNING}
           AND CASE WHEN t.status IN ('pending', 'queued', 'downloaded') THEN t.scheduled_at
                    WHEN t.status = 'completed' THEN t.next_crawl_at
               END < now() - make_interval(secs => %(late)s)
    """,
    "domains_that_fail": """
        SELECT d.domain_name FROM domains d
         WHERE d.is_active
           AND EXISTS (SELECT FROM crawl_tasks t WHERE t.domain_id = d.id AND t.status = 'failed')
           AND NOT EXISTS (
            SELECT FROM crawl_tasks t WHERE t.domain_id = d.id AND t.status <> 'failed'
           )
    """,
}


async def find(
    connection: Connection, /, check: str, *, examples: int, **parameters: Any
) -> tuple[int, list[Any]]:
    """The number of rows that one of the statements finds, and some of them."""
    return await Tuples(connection, tuple[int, list[Any]]).one(
        f"""
        WITH found (what) AS MATERIALIZED ({STATEMENTS[check]})
        SELECT (SELECT count(*) FROM found),
               ARRAY(SELECT what FROM found ORDER BY what LIMIT %(examples)s)
        """,
        {"examples": examples, **parameters},
    )


async def check_prices(
    connection: Connection, *, after: int, limit: int
) -> tuple[list[int], int | None]:
    """Those of the next products whose last recorded price differs, and the last ID."""
    return await Tuples(connection, tuple[list[int], int | None]).one(
        """
        WITH piece AS MATERIALIZED (
            SELECT id, price, currency FROM products WHERE id > %s ORDER BY id LIMIT %s
        )
        SELECT ARRAY(
            SELECT p.id
              FROM piece p
              LEFT JOIN LATERAL (
                SELECT h.price, h.currency FROM price_history h
                 WHERE h.product_id = p.id
                 ORDER BY h.recorded_at DESC, h.id DESC
                 LIMIT 1
              ) AS last ON true
             WHERE p.price IS DISTINCT FROM last.price
                OR (p.price IS NOT NULL AND p.currency IS DISTINCT FROM last.currency)
        ), (SELECT max(id) FROM piece)
        """,
        (after, limit),
    )


async def sample_images(connection: Connection, limit: int) -> list[tuple[int, str, int]]:
    """A random sample of stored images: id, path and size."""
    return await Tuples(connection).all(
        """
        SELECT id, image_path, file_size FROM images
         WHERE status = 'stored'
           AND id > (SELECT coalesce(floor(random() * max(id)), 0) - %(limit)s FROM images)
         ORDER BY id
         LIMIT %(limit)s
        """,
        {"limit": limit},
    )


async def is_stored(connection: Connection, image_id: int, path: str) -> bool:
    """Whether an image still refers to this file."""
    return await Tuples(connection).exists(
        "SELECT FROM images WHERE id = %s AND image_path = %s AND status = 'stored'",
        (image_id, path),
    )


async def was_audited(connection: Connection, *, seconds: float) -> bool:
    """Whether an audit ended within this number of seconds."""
    return await Tuples(connection).exists(
        """
        SELECT FROM catalog_events
         WHERE kind = 'catalog.audit' AND occurred_at > now() - make_interval(secs => %s)
         LIMIT 1
        """,
        (seconds,),
    )
