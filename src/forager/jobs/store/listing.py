"""Statements that list and summarize jobs by filters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples
from forager.jobs.job import Job, JobFilters
from forager.jobs.store.reads import COLUMNS, SEEN_LATELY

# a running crawl that waits for nothing commits more often
STALLED_AFTER = 180.0

# of a pending or processing job j, with its state s if it has one. A crawl that was just claimed
# has an old report and an old commit, but a new event.
_ACTIVITY: LiteralString = f"""
    CASE
        WHEN j.status = 'pending' AND j.run_after <= now() THEN 'waiting-for-worker'
        WHEN j.status = 'pending' AND s.waits_for IS NOT NULL THEN 'waiting-for-host'
        WHEN j.status = 'pending' THEN 'scheduled'
        WHEN j.last_heartbeat < now() - interval '{SEEN_LATELY} seconds' THEN 'stalled'
        WHEN s.waits_for IS NOT NULL AND s.reported_at > now() - interval '{SEEN_LATELY} seconds'
            THEN CASE WHEN s.waits_for LIKE '%%/robots.txt' THEN 'waiting-for-robots'
                      WHEN s.waits_for LIKE 'learning %%' THEN 'running'
                      ELSE 'waiting-for-host' END
        WHEN s.discovered IS NOT NULL
             AND s.updated_at < now() - interval '{STALLED_AFTER} seconds'
             AND NOT EXISTS (SELECT FROM job_events e
                              WHERE e.job_id = j.id
                                AND e.at > now() - interval '{STALLED_AFTER} seconds')
            THEN 'stalled'
        ELSE 'running'
    END
"""


_CONDITIONS: dict[str, LiteralString] = {
    "statuses": "status = ANY(%(statuses)s::job_status[])",
    "kind": "kind = %(kind)s",
    "source_id": "source_id = %(source_id)s",
    "source_ids": "source_id = ANY(%(source_ids)s)",
    "host": "host = %(host)s",
    "activity": f"""
        id IN (SELECT j.id
                 FROM crawl_jobs j
                 LEFT JOIN crawl_states s ON s.job_id = j.id
                WHERE j.status IN ('pending', 'processing') AND {_ACTIVITY} = %(activity)s)
    """,
    "user_id": "user_id = %(user_id)s",
    "before": "(created_at, id) < (%(before_time)s, %(before_id)s)",
}


def _where(given: dict[str, Any]) -> LiteralString:
    """Only given conditions are sent, so that each can use an index."""
    used = [text for name, text in _CONDITIONS.items() if given.get(name) is not None]
    return " AND ".join(used) if used else "true"


async def select_jobs(
    connection: Connection, filters: JobFilters, *, before: tuple[datetime, UUID] | None, limit: int
) -> list[Job]:
    """Jobs, newest first."""
    given = {**_values(filters), "before": before, "limit": limit}
    if before is not None:
        given["before_time"], given["before_id"] = before
    return await Rows(connection, Job).all(
        f"""
        SELECT {COLUMNS} FROM crawl_jobs WHERE {_where(given)}
         ORDER BY created_at DESC, id DESC LIMIT %(limit)s
        """,
        given,
    )


_HAS_TEXT: LiteralString = """
    (strpos(lower(source_id), lower(%(text)s)) > 0
     OR strpos(id::text, lower(%(text)s)) > 0
     OR strpos(lower(payload -> 'urls' ->> 0), lower(%(text)s)) > 0)
"""


async def count_jobs_with(
    connection: Connection, text: str, filters: JobFilters, *, among: int
) -> dict[str, int]:
    """The newest jobs with a text in their id, source or first URL, by state."""
    given = {**_values(filters), "text": text, "among": among}
    of_user: LiteralString = "WHERE user_id = %(user_id)s" if filters.get("user_id") else ""
    return await Tuples(connection).as_dict(
        f"""
        SELECT status::text, count(*)
          FROM (
            SELECT * FROM crawl_jobs {of_user} ORDER BY created_at DESC, id DESC LIMIT %(among)s
          ) AS newest
         WHERE {_HAS_TEXT} AND {_where(given)}
         GROUP BY 1
        """,
        given,
    )


async def select_jobs_with(
    connection: Connection, text: str, filters: JobFilters, *, among: int, limit: int
) -> list[Job]:
    """The newest jobs with a text in their id, source or first URL, newest first."""
    given = {**_values(filters), "text": text, "among": among, "limit": limit}
    of_user: LiteralString = "WHERE user_id = %(user_id)s" if filters.get("user_id") else ""
    return await Rows(connection, Job).all(
        f"""
        SELECT {COLUMNS}
          FROM (
            SELECT * FROM crawl_jobs {of_user} ORDER BY created_at DESC, id DESC LIMIT %(among)s
          ) AS newest
         WHERE {_HAS_TEXT} AND {_where(given)}
         ORDER BY created_at DESC, id DESC
         LIMIT %(limit)s
        """,
        given,
    )


def _values(filters: JobFilters) -> dict[str, Any]:
    statuses = filters.get("statuses")
    return {**filters, "statuses": list(statuses) if statuses else None}


class ActivityRow(NamedTuple):
    """The jobs with one activity: their pace, known URLs left, and seconds of the slowest."""

    activity: str
    jobs: int
    pace: float
    pending: int
    slowest: float


def _limit(name: LiteralString) -> LiteralString:
    """A number of the payload, which may hold anything."""
    return f"""
        CASE WHEN jsonb_typeof(j.payload -> '{name}') = 'number'
             THEN (j.payload ->> '{name}')::numeric END
    """


async def summarize(
    connection: Connection, *, user_id: UUID | None, job_ids: Sequence[UUID] | None
) -> list[ActivityRow]:
    """Active jobs by activity. A crawl with a limit of pages has at most that many left."""
    of_user: LiteralString = "AND j.user_id = %(user_id)s" if user_id else ""
    of_jobs: LiteralString = "AND j.id = ANY(%(job_ids)s)" if job_ids is not None else ""
    return await Rows(connection, ActivityRow).all(
        f"""
        SELECT activity, count(*) AS jobs, sum(pace) AS pace, sum(pending)::bigint AS pending,
               coalesce(max(pending / nullif(pace, 0)), 0) AS slowest
          FROM (
            SELECT {_ACTIVITY} AS activity,
                   CASE WHEN j.status = 'processing'
                             AND s.reported_at > now() - interval '{SEEN_LATELY} seconds'
                        THEN s.pace ELSE 0 END AS pace,
                   greatest(0, least(
                       coalesce(s.total_pending, 0),
                       {_limit("max_pages")} - s.fetched - s.unchanged,
                       {_limit("granted_pages")} - s.fetched - s.unchanged
                   ))::bigint AS pending
              FROM crawl_jobs j
              LEFT JOIN crawl_states s ON s.job_id = j.id
             WHERE j.status IN ('pending', 'processing') {of_user} {of_jobs}
          ) AS active
         GROUP BY activity
        """,
        {"user_id": user_id, "job_ids": None if job_ids is None else list(job_ids)},
    )
