"""SQL of how many tasks there are, and what they wait for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Rows, Values


@dataclass(frozen=True, slots=True)
class DomainBacklog:
    """A domain's tasks that are due or with the workers."""

    domain: str
    due: int
    under_way: int
    oldest_due: datetime | None


async def count_by_status(connection: Connection) -> dict[str, int]:
    cursor = await connection.execute("SELECT status, count(*) FROM crawl_tasks GROUP BY status")
    return {row[0]: row[1] for row in await cursor.fetchall()}


async def count_held(connection: Connection) -> tuple[str | None, int, int]:
    """The hold on all, held domains, and tasks that are held themselves."""
    cursor = await connection.execute(
        """
        SELECT (SELECT hold FROM task_control),
               (SELECT count(*)::int FROM domains WHERE task_hold IS NOT NULL),
               (SELECT count(*)::int FROM crawl_tasks WHERE hold IS NOT NULL)
        """
    )
    row = await cursor.fetchone()
    assert row is not None
    return row[0], row[1], row[2]


async def select_backlog(connection: Connection, limit: int) -> list[DomainBacklog]:
    """The domains with the most tasks that are due or under way."""
    return await Rows(connection, DomainBacklog).all(
        """
        SELECT d.domain_name AS domain,
               (count(*) FILTER (WHERE t.status = 'pending'))::int AS due,
               (count(*) FILTER (WHERE t.status <> 'pending'))::int AS under_way,
               min(t.scheduled_at) FILTER (WHERE t.status = 'pending') AS oldest_due
          FROM crawl_tasks t
          JOIN domains d ON d.id = t.domain_id
         WHERE (t.status = 'pending' AND t.scheduled_at <= now())
            OR t.status IN ('queued', 'crawling', 'downloaded', 'parsing')
         GROUP BY d.domain_name
         ORDER BY count(*) DESC, d.domain_name
         LIMIT %s
        """,
        (limit,),
    )


async def select_ticked_at(connection: Connection) -> datetime | None:
    return await Values(connection).first("SELECT ticked_at FROM task_control")


async def count_by_worker(connection: Connection) -> dict[UUID, int]:
    """Tasks in progress by worker."""
    cursor = await connection.execute(
        "SELECT worker_id, count(*) FROM crawl_tasks WHERE worker_id IS NOT NULL GROUP BY 1"
    )
    return dict(await cursor.fetchall())
