"""Statements that read jobs and their history, and count jobs over time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import LiteralString
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Made, Rows, Tuples, Values
from forager.jobs.job import Job, JobEvent, StateCount, TimelineRow
from forager.jobs.lifecycle import Status


async def select_job(connection: Connection, job_id: UUID) -> Job | None:
    """A job by its ID."""
    return await Rows(connection, Job).first(
        f"SELECT {COLUMNS} FROM crawl_jobs WHERE id = %s", (job_id,)
    )


async def select_running(
    connection: Connection, *, user_id: UUID | None, limit: int
) -> list[tuple[UUID, Job]]:
    """Jobs that workers hold, each with its worker."""
    workers = await Tuples(connection).as_dict(
        """
        SELECT id, worker_id
          FROM crawl_jobs
         WHERE worker_id IS NOT NULL AND (%(user_id)s::uuid IS NULL OR user_id = %(user_id)s)
         ORDER BY id
         LIMIT %(limit)s
        """,
        {"user_id": user_id, "limit": limit},
    )
    jobs = await select_jobs_by_id(connection, list(workers))
    return [(workers[job.id], job) for job in jobs]


async def select_trace(connection: Connection, job_id: UUID) -> str | None:
    """The span in which a job was requested."""
    return await Values(connection).first("SELECT trace FROM crawl_jobs WHERE id = %s", (job_id,))


async def select_active_jobs_of(
    connection: Connection, source_ids: Sequence[str | None]
) -> list[Job]:
    """The active jobs of these sources, at most one each."""
    if not source_ids:
        return []
    return await Rows(connection, Job).all(
        f"""
        SELECT {COLUMNS} FROM crawl_jobs
         WHERE source_id = ANY(%s) AND status IN ('pending', 'processing', 'paused')
        """,
        (list(source_ids),),
    )


async def select_active_owners(connection: Connection, owners: Sequence[str]) -> set[str]:
    """Those of these sources, and of these ids of jobs without a source, that are active."""
    return await Values(connection, str).as_set(
        """
        SELECT coalesce(source_id, id::text)
          FROM crawl_jobs
         WHERE (source_id = ANY(%(owners)s) OR id = ANY(%(ids)s))
           AND (status IN ('pending', 'processing', 'paused') OR worker_id IS NOT NULL)
        """,
        {"owners": list(owners), "ids": [UUID(each) for each in owners if _is_id(each)]},
    )


def _is_id(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text) is not None


async def select_jobs_by_prefix(
    connection: Connection, low: UUID, high: UUID, user_id: UUID | None
) -> list[UUID]:
    """The first few ids in a range, of one owner or of all."""
    return await Values(connection).all(
        """
        SELECT id FROM crawl_jobs
         WHERE id BETWEEN %(low)s AND %(high)s
           AND (%(user_id)s::uuid IS NULL OR user_id = %(user_id)s)
         ORDER BY id LIMIT 5
        """,
        {"low": low, "high": high, "user_id": user_id},
    )


async def select_events(
    connection: Connection, job_id: UUID, *, after: int, limit: int
) -> list[JobEvent]:
    """The history of a job after an event, oldest first."""
    return await select_events_of_many(connection, {job_id: after}, limit=limit)


async def select_last_events(connection: Connection, job_id: UUID, limit: int) -> list[JobEvent]:
    """A job's latest history, oldest first."""
    found = await Rows(connection, JobEvent).all(
        """
        SELECT id, job_id, at, move, from_status, to_status, actor, reason, lease
          FROM job_events
         WHERE job_id = %s
         ORDER BY id DESC
         LIMIT %s
        """,
        (job_id, limit),
    )
    return found[::-1]


async def select_events_of_many(
    connection: Connection, after: Mapping[UUID, int], *, limit: int
) -> list[JobEvent]:
    """Events of several jobs, for each job those after a known one, up to a limit."""
    return await Rows(connection, JobEvent).all(
        """
        SELECT e.id, e.job_id, e.at, e.move, e.from_status, e.to_status, e.actor, e.reason,
               e.lease
          FROM unnest(%s::uuid[], %s::bigint[]) AS known (job_id, id)
         CROSS JOIN LATERAL (
            SELECT *
              FROM job_events
             WHERE job_events.job_id = known.job_id AND job_events.id > known.id
             ORDER BY job_events.id
             LIMIT %s
         ) AS e
         ORDER BY e.id
        """,
        (list(after), list(after.values()), limit),
    )


async def select_jobs_by_id(connection: Connection, job_ids: Sequence[UUID]) -> list[Job]:
    """Those of the jobs that exist."""
    return await Rows(connection, Job).all(
        f"SELECT {COLUMNS} FROM crawl_jobs WHERE id = ANY(%s)", (list(job_ids),)
    )


async def select_reasons(
    connection: Connection, event_ids: Sequence[int]
) -> list[tuple[UUID, str | None]]:
    """The job and the reason of each of these rows of `job_events`, the oldest first."""
    return await Tuples(connection).all(
        "SELECT job_id, reason FROM job_events WHERE id = ANY(%s) ORDER BY id", (list(event_ids),)
    )


async def count_jobs(
    connection: Connection, user_id: UUID | None = None
) -> list[tuple[Status, int]]:
    """Jobs by state, of one owner or of all; states without jobs are missing."""
    of_user: LiteralString = "WHERE user_id = %(user_id)s" if user_id else ""
    cursor = await connection.execute(
        f"SELECT status, count(*) FROM crawl_jobs {of_user} GROUP BY status", {"user_id": user_id}
    )
    return [(Status(status), count) for status, count in await cursor.fetchall()]


async def select_next_due(connection: Connection) -> float | None:
    """Seconds until one of the first pending jobs is due; None without pending jobs."""
    return await Values(connection).first(
        """
        SELECT extract(epoch FROM min(run_after) - now())::float8
          FROM (SELECT run_after
                  FROM crawl_jobs
                 WHERE status = 'pending'
                 ORDER BY priority DESC, created_at, id
                 LIMIT 100) AS pending
        """
    )


async def count_active(connection: Connection, job_ids: Sequence[UUID]) -> int:
    """How many of these jobs still run or wait to; a pausing one still runs."""
    return await Values(connection, int).one(
        """
        SELECT count(*) FROM crawl_jobs
         WHERE id = ANY(%s) AND (status IN ('pending', 'processing') OR worker_id IS NOT NULL)
        """,
        (list(job_ids),),
    )


async def sum_pending_work(connection: Connection, user_id: UUID | None = None) -> list[StateCount]:
    """Jobs that are not finished, and the work their last commits left to do."""
    of_user: LiteralString = "AND j.user_id = %(user_id)s" if user_id else ""
    return await Made(connection, lambda status, *rest: StateCount(Status(status), *rest)).all(
        f"""
        SELECT j.status, count(*), coalesce(sum(s.total_pending), 0)::bigint, min(j.created_at)
          FROM crawl_jobs j
          LEFT JOIN crawl_states s ON s.job_id = j.id
         WHERE j.status IN ('pending', 'processing', 'paused') {of_user}
         GROUP BY j.status
         ORDER BY j.status
        """,
        {"user_id": user_id},
    )


CHANNEL = "forager_jobs"

COLUMNS: LiteralString = """
    id, kind, payload, priority, status, worker_id, lease, progress_percentage, created_at,
    run_after, started_at, completed_at, last_heartbeat, retry_count, max_retries, error_message,
    stop_reason, source_id, user_id, region, runner_losses, own_runner
"""


# How a crawl renders: by its own options, or by those of the domain of its host, or of the nearest
# domain above that.
RENDER_MODE: LiteralString = """
    coalesce(
        nullif(crawl_jobs.payload ->> 'render', 'auto'),
        (
            SELECT d.render
              FROM domains d
             WHERE d.domain_name = crawl_jobs.host
                OR d.domain_name = ANY (ARRAY(
                       SELECT array_to_string(labels[first:], '.')
                         FROM (SELECT string_to_array(crawl_jobs.host, '.') AS labels) AS split,
                              generate_series(2, array_length(labels, 1) - 1) AS first
                   ))
             ORDER BY length(d.domain_name) DESC
             LIMIT 1
        ),
        'auto'
    )
"""
NEEDS_BROWSER: LiteralString = f"(crawl_jobs.kind = 'crawl' AND {RENDER_MODE} = 'always')"


def renderer_is_there(role: LiteralString, region: LiteralString = "NULL") -> LiteralString:
    """The condition that a worker of this role with a browser was seen lately and claims work.

    `region` is an expression; only workers of that region count unless it is null. A note says
    why a worker claims nothing.
    """
    return f"""
    EXISTS (SELECT FROM workers w
             WHERE w.role = '{role}' AND w.renders AND w.state = 'running' AND w.note IS NULL
               AND ({region} IS NULL OR w.region = {region})
               AND w.last_seen > now() - %(stale_after)s * interval '1 second')
    """


RENDERER_IS_THERE = renderer_is_there("jobs", "crawl_jobs.region")
# Crawls that render all pages, and `auto` crawls of which some pages need a browser: earlier ones
# gained from it, or were left to workers that have one. OFFSET 0 keeps the planner from reading all
# stats at once for a hash table: each claim looks at few jobs.
ONLY_FOR_RENDERERS: LiteralString = f"""
    (crawl_jobs.kind = 'crawl'
     AND CASE {RENDER_MODE}
         WHEN 'always' THEN true
         WHEN 'auto' THEN {RENDERER_IS_THERE}
             AND EXISTS (SELECT FROM render_lessons l
                          WHERE l.source_id = crawl_jobs.source_id AND l.streak >= 0 OFFSET 0)
         ELSE false
     END)
"""
# in reports, a worker that was not seen for longer counts as gone
SEEN_LATELY = 60.0


async def select_waiting_for_browser(connection: Connection, job_ids: Sequence[UUID]) -> list[UUID]:
    """The due jobs among these that only a worker with a browser claims."""
    return await Values(connection).all(
        f"""
        SELECT id FROM crawl_jobs
         WHERE id = ANY(%(ids)s) AND status = 'pending' AND run_after <= now()
           AND {ONLY_FOR_RENDERERS}
        """,
        {"ids": list(job_ids), "stale_after": SEEN_LATELY},
    )


async def can_hand_over(
    connection: Connection, job_id: UUID, worker_id: UUID, *, stale_after: float
) -> bool:
    """Whether another worker renders, and this one does not."""
    found = await Values(connection).first(
        f"""
        SELECT {RENDERER_IS_THERE}
               AND NOT EXISTS (SELECT FROM workers WHERE id = %(worker_id)s AND renders)
          FROM crawl_jobs
         WHERE id = %(job_id)s
        """,
        {"job_id": job_id, "worker_id": worker_id, "stale_after": stale_after},
    )
    return bool(found)


async def select_recent(
    connection: Connection, *, minutes: int, limit: int, user_id: UUID | None
) -> list[UUID]:
    """Jobs that were at work lately: those that hold a worker, are paused, or just finished."""
    of_user: LiteralString = "AND user_id = %(user_id)s" if user_id else ""
    return await Values(connection).all(
        f"""
        (SELECT id FROM crawl_jobs
          WHERE status IN ('processing', 'paused') {of_user}
          ORDER BY created_at DESC LIMIT %(limit)s)
        UNION
        (SELECT id FROM crawl_jobs
          WHERE status IN ('completed', 'failed', 'cancelled')
            AND completed_at > now() - %(minutes)s * interval '1 minute' {of_user}
          ORDER BY completed_at DESC LIMIT %(limit)s)
        """,
        {"minutes": minutes, "limit": limit, "user_id": user_id},
    )


async def select_moves(
    connection: Connection,
    *,
    move: str | None,
    user_id: UUID | None,
    before: int | None,
    among: int,
    limit: int,
) -> list[TimelineRow]:
    """Moves of one kind and owner among the newest of them, newest first."""
    earlier: LiteralString = "WHERE id < %(before)s" if before is not None else ""
    of_move: LiteralString = "AND e.move = %(move)s" if move is not None else ""
    of_user: LiteralString = "AND j.user_id = %(user_id)s" if user_id is not None else ""
    return await Rows(connection, TimelineRow).all(
        f"""
        SELECT e.id, e.job_id, j.kind, j.source_id, e.at, e.move, e.from_status::text,
               e.to_status::text, e.actor, e.reason
          FROM (
            SELECT * FROM job_events {earlier} ORDER BY id DESC LIMIT %(among)s
          ) AS e
          JOIN crawl_jobs j ON j.id = e.job_id
         WHERE true {of_move} {of_user}
         ORDER BY e.id DESC
         LIMIT %(limit)s
        """,
        {"move": move, "user_id": user_id, "before": before, "among": among, "limit": limit},
    )


async def select_reach(connection: Connection, *, before: int | None, among: int) -> int | None:
    """The oldest of the newest moves up to a limit; None if there are fewer."""
    earlier: LiteralString = "WHERE id < %(before)s" if before is not None else ""
    return await Values(connection).first(
        f"SELECT id FROM job_events {earlier} ORDER BY id DESC OFFSET %(skipped)s LIMIT 1",
        {"before": before, "skipped": among - 1},
    )
