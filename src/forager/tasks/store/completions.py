"""SQL of tasks that are done: what decides their next visit, and the row's last update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from psycopg.rows import class_row

from forager.db.database import Connection
from forager.tasks.lifecycle import COMPLETE


@dataclass(frozen=True, slots=True)
class Intervals:
    """All that has a say in when a task comes again."""

    id: int
    crawl_frequency: timedelta | None
    adapted_frequency: timedelta | None
    domain_frequency: timedelta | None
    adaptive: bool | None
    min_frequency: timedelta | None
    max_frequency: timedelta | None


async def select_intervals(connection: Connection, ids: Sequence[int]) -> list[Intervals]:
    cursor = connection.cursor(row_factory=class_row(Intervals))
    await cursor.execute(
        """
        SELECT t.id, t.crawl_frequency, t.adapted_frequency,
               d.crawl_frequency AS domain_frequency,
               d.adaptive, d.min_frequency, d.max_frequency
          FROM crawl_tasks t
          JOIN domains d ON d.id = t.domain_id
         WHERE t.id = ANY(%s)
        """,
        (list(ids),),
    )
    return await cursor.fetchall()


async def complete(
    connection: Connection,
    ids: Sequence[int],
    intervals: Sequence[tuple[timedelta, timedelta | None]],
) -> None:
    """Each task with the time until its next visit, and what it has adapted to."""
    await connection.execute(
        f"""
        UPDATE crawl_tasks t
           SET {COMPLETE.changes},
               next_crawl_at = now() + done.every,
               adapted_frequency = done.adapted
          FROM unnest(%(ids)s::bigint[], %(every)s::interval[], %(adapted)s::interval[])
               AS done (id, every, adapted)
         WHERE t.id = done.id AND {COMPLETE.allowed}
        """,
        {
            "ids": list(ids),
            "every": [every for every, _ in intervals],
            "adapted": [adapted for _, adapted in intervals],
        },
    )
