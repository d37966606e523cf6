"""SQL that counts tasks: now, and over time from a sample.

Each count over time reads a bounded number of rows. Call them in one transaction: minutes are
counted back from its start.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples, Values
from forager.tasks.task import TasksNow


@dataclass(frozen=True, slots=True)
class Attempts:
    """Attempts of a minute, counted or estimated from a sample."""

    ago: int
    ended: float
    failed: float
    is_estimated: bool


@dataclass(frozen=True, slots=True)
class WaitingCount:
    """How many tasks wait in a state, and since when."""

    state: str
    count: int
    oldest: datetime


# withdrawn and postponed visits are no attempts, and lost ones continue
_IS_ATTEMPT: LiteralString = "outcome NOT IN ('rested', 'withdrawn')"
_IS_FAILED: LiteralString = "outcome IN ('retry', 'missed', 'failed', 'lost')"
_MINUTES: LiteralString = """
    SELECT ago, now() - (ago + 1) * interval '1 minute' AS since,
           now() - ago * interval '1 minute' AS until
      FROM generate_series(0, %(minutes)s::int - 1) AS ago
"""


async def sample_attempts(connection: Connection, *, minutes: int, sample: int) -> list[Attempts]:
    """Attempts of the last minutes; of each minute at most `sample` are read.

    The count of a fuller minute is estimated from the ids of its first and last attempt.
    """
    return await Rows(connection, Attempts).all(
        f"""
        SELECT m.ago, s.ended * w.weight AS ended, s.failed * w.weight AS failed,
               w.weight > 1 AS is_estimated
          FROM ({_MINUTES}) AS m
         CROSS JOIN LATERAL (
            SELECT count(*) AS rows, min(id) AS first_id,
                   count(*) FILTER (WHERE {_IS_ATTEMPT}) AS ended,
                   count(*) FILTER (WHERE {_IS_FAILED}) AS failed
              FROM (
                SELECT id, outcome
                  FROM task_attempts
                 WHERE finished_at > m.since AND finished_at <= m.until
                 ORDER BY finished_at
                 LIMIT %(sample)s
              ) AS first
         ) AS s
         CROSS JOIN LATERAL (
            SELECT id
              FROM task_attempts
             WHERE finished_at > m.since AND finished_at <= m.until
             ORDER BY finished_at DESC
             LIMIT 1
         ) AS l
         CROSS JOIN LATERAL (
            SELECT CASE WHEN s.rows < %(sample)s THEN 1
                        ELSE greatest(1, (l.id - s.first_id + 1)::float8 / s.rows)
                   END AS weight
         ) AS w
        """,
        {"minutes": minutes, "sample": sample},
    )


_WAITING: LiteralString = " UNION ALL ".join(
    f"""
    (SELECT '{status}' AS status, scheduled_at
       FROM crawl_tasks WHERE status = '{status}' {also} LIMIT %(most)s)
    """
    for status, also in (("pending", "AND hold IS NULL"), ("queued", ""), ("downloaded", ""))
)


async def count_waiting(connection: Connection, *, most: int) -> list[WaitingCount]:
    """Waiting tasks by state, at most `most` of each status.

    Tasks that are not due yet are `later`, because they count toward the limit.
    """
    return await Rows(connection, WaitingCount).all(
        f"""
        SELECT CASE WHEN status <> 'pending' THEN status WHEN scheduled_at < now() THEN 'due'
                    ELSE 'later' END AS state,
               count(*)::int AS count,
               min(scheduled_at) AS oldest
          FROM ({_WAITING}) AS waiting
         GROUP BY 1
        """,
        {"most": most},
    )


async def count_error_kinds(
    connection: Connection, *, minutes: int, most: int
) -> list[tuple[str, int]]:
    """Errors of the newest `most` by kind, the most frequent first."""
    return await Tuples(connection).all(
        """
        SELECT error_kind, count(*)::int
          FROM (
            SELECT error_kind
              FROM error_logs
             WHERE occurred_at > now() - %(minutes)s * interval '1 minute'
               AND crawl_task_id IS NOT NULL
             ORDER BY occurred_at DESC
             LIMIT %(most)s
          ) AS newest
         GROUP BY 1
         ORDER BY 2 DESC, 1
        """,
        {"minutes": minutes, "most": most},
    )


async def select_now(connection: Connection) -> TasksNow:
    """Whether there are tasks, a hold on all, and when the scheduler last ran."""
    return await Rows(connection, TasksNow).one(
        """
        SELECT EXISTS (SELECT FROM crawl_tasks) AS any_tasks,
               (SELECT hold FROM task_control) AS hold,
               (SELECT ticked_at FROM task_control) AS ticked_at,
               now() AS now
        """
    )


@dataclass(frozen=True, slots=True)
class DomainBacklog:
    """The due and running tasks of a domain."""

    domain: str
    due: int
    under_way: int
    oldest_due: datetime | None


async def count_by_status(connection: Connection) -> dict[str, int]:
    """All tasks by state."""
    return await Tuples(connection).as_dict(
        "SELECT status, count(*) FROM crawl_tasks GROUP BY status"
    )


async def count_holds(connection: Connection) -> tuple[str | None, int, int]:
    """The hold of all tasks, and the numbers of held domains and tasks."""
    return await Tuples(connection, tuple[str | None, int, int]).one(
        """
        SELECT (SELECT hold FROM task_control),
               (SELECT count(*)::int FROM domains WHERE task_hold IS NOT NULL),
               (SELECT count(*)::int FROM crawl_tasks WHERE hold IS NOT NULL)
        """
    )


async def select_backlog(connection: Connection, limit: int) -> list[DomainBacklog]:
    """The domains with the most due and running tasks."""
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
    """When the scheduler last ran."""
    return await Values(connection).first("SELECT ticked_at FROM task_control")


async def count_by_worker(connection: Connection) -> dict[UUID, int]:
    """Claimed tasks by worker."""
    return await Tuples(connection).as_dict(
        "SELECT worker_id, count(*) FROM crawl_tasks WHERE worker_id IS NOT NULL GROUP BY 1"
    )
