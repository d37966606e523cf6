"""SQL of hints: messages to a broker about tasks that wait for a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from forager.db.database import Connection
from forager.db.rows import Values
from forager.fetch.domains.store import HAS_PROXY, IN_REGION
from forager.outbox.store import enqueue
from forager.tasks.store.claims import WANTS_BROWSER

# ids per message: few enough to spread over workers, many enough for throughput
HINT_SIZE = 20
# seconds in which the process that downloaded a page can parse it itself
PARSE_DELAY = 1.0


# the topic by which messages are routed
TOPIC: LiteralString = f"""
    CASE WHEN t.status <> 'queued' THEN 'parse' WHEN {WANTS_BROWSER} THEN 'render' ELSE 'crawl' END
"""
# the band of priorities
BAND: LiteralString = "CASE WHEN t.priority <= 3 THEN 1 WHEN t.priority <= 7 THEN 2 ELSE 3 END"


async def write_hints(connection: Connection, task_ids: Sequence[int]) -> None:
    """Enqueue one message for every few waiting tasks of one stage, domain and band.

    The process that downloaded a page usually parses it too, so that parse hints are delayed.
    """
    messages: LiteralString = f"""
        SELECT stage, band, domain_id, array_agg(id ORDER BY nth),
               now() + CASE stage WHEN 'parse' THEN %(parse_delay)s ELSE 0 END
                     * interval '1 second'
          FROM (
            SELECT *, row_number() OVER (
                       PARTITION BY stage, domain_id, band
                           ORDER BY priority, scheduled_at, popularity DESC, id
                   ) AS nth
              FROM (
                SELECT t.id, domain_id, priority, scheduled_at, popularity, {TOPIC} AS stage,
                       {BAND} AS band
                  FROM crawl_tasks t JOIN domains d ON d.id = t.domain_id
                 WHERE t.id = ANY(%(ids)s) AND status IN ('queued', 'downloaded')
              ) AS waiting
          ) AS numbered
         GROUP BY stage, domain_id, band, (nth - 1) / %(size)s
    """
    await connection.execute(
        enqueue(messages, "topic, lane, ref_id, payload, due_at"),
        {"ids": list(task_ids), "size": HINT_SIZE, "parse_delay": PARSE_DELAY},
    )


async def select_queued(
    connection: Connection,
    task_ids: Sequence[int],
    *,
    region: str | None,
    task_proxies: bool,
    renders: bool = False,
) -> set[int]:
    """Tasks that still wait to be downloaded, and that such a worker may download."""
    return await Values(connection).as_set(
        f"""
        SELECT t.id
          FROM crawl_tasks t JOIN domains d ON d.id = t.domain_id
         WHERE t.id = ANY(%(ids)s) AND t.status = 'queued' AND t.hold IS NULL
           AND d.is_active AND d.task_hold IS NULL AND {IN_REGION} AND {HAS_PROXY}
           AND (%(renders)s OR NOT {WANTS_BROWSER})
        """,
        {"ids": list(task_ids), "region": region, "task_proxies": task_proxies, "renders": renders},
    )


async def touch(connection: Connection, task_ids: Sequence[int]) -> None:
    """Restart the waiting time of tasks, which the caller has locked."""
    await connection.execute(
        "UPDATE crawl_tasks SET updated_at = now() WHERE id = ANY(%s)", (list(task_ids),)
    )
