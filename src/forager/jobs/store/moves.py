"""SQL that inserts, claims, moves and deletes jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, LiteralString
from uuid import UUID

import orjson
from psycopg.sql import SQL, Literal
from psycopg.types.json import Jsonb

from forager.db.database import Connection
from forager.db.ids import REGION_LOCK
from forager.db.retention import OldRows
from forager.db.rows import Rows
from forager.jobs.job import Job, NewJob
from forager.jobs.lifecycle import Transition
from forager.jobs.store.reads import (
    CHANNEL,
    COLUMNS,
    ONLY_FOR_RENDERERS,
    RENDERER_IS_THERE,
)


async def insert_jobs(connection: Connection, jobs: list[NewJob], *, actor: str) -> list[Job]:
    """Insert jobs and wake the workers; a source that has an active job is passed over.

    A change of a host's region and the insertion of its job wait for each other.
    """
    return await Rows(connection, Job).all(
        f"""
        WITH inserted AS (
            INSERT INTO crawl_jobs
                (id, kind, payload, priority, max_retries, source_id, user_id, trace, run_after,
                 host, region)
            SELECT n.id, n.kind, n.payload, n.priority, n.max_retries, n.source_id, n.user_id,
                   n.trace, now() + n.delay * interval '1 second',
                   n.host, region_of_new_job(n.host, %(region_lock)s)
              FROM json_to_recordset(%(jobs)s::json)
                   AS n (id uuid, kind text, payload jsonb, priority int, max_retries int,
                         source_id text, user_id uuid, trace text, delay float8, host text)
            ON CONFLICT (source_id)
                WHERE source_id IS NOT NULL AND status IN ('pending', 'processing', 'paused')
                DO NOTHING
            RETURNING *
        ), logged AS (
            INSERT INTO job_events (job_id, move, from_status, to_status, actor, lease)
            SELECT id, 'enqueue', NULL, status, %(actor)s, lease FROM inserted
        ), woken AS (
            SELECT pg_notify('{CHANNEL}', '') FROM inserted LIMIT 1
        )
        SELECT {COLUMNS} FROM inserted LEFT JOIN woken ON true
        """,
        {
            # one JSON text is made faster than an array for each column
            "jobs": orjson.dumps(jobs).decode(),
            "actor": actor,
            "region_lock": REGION_LOCK,
        },
    )


async def assign_source(
    connection: Connection, job_id: UUID, source_id: str, *, host: str, payload: dict[str, Any]
) -> None:
    await connection.execute(
        "UPDATE crawl_jobs SET source_id = %s, host = %s, payload = %s WHERE id = %s",
        (source_id, host, Jsonb(payload), job_id),
    )


async def merge_payload(connection: Connection, job_id: UUID, values: dict[str, Any]) -> None:
    await connection.execute(
        "UPDATE crawl_jobs SET payload = payload || %s WHERE id = %s", (Jsonb(values), job_id)
    )


@cache
def _claim_statement(limit: int, *, one: bool, renders: bool) -> bytes:
    """The subquery is a CTE because PostgreSQL may run a joined LIMIT twice and take too many."""
    this_one: LiteralString = "AND id = %(only)s" if one else ""
    browser: LiteralString = ""
    if not renders:
        others: LiteralString = f"AND {RENDERER_IS_THERE}" if one else ""
        browser = f"AND NOT ({ONLY_FOR_RENDERERS} {others})"
    # The limit is part of the text: as a parameter, a plan for any limit is so much worse than
    # one for this limit that PostgreSQL plans every single claim again (measured: a third slower).
    return (
        SQL(
            f"""
        WITH next AS MATERIALIZED (
            SELECT id
              FROM crawl_jobs
             WHERE status = 'pending'
               AND run_after <= now()
               AND kind = ANY(%(kinds)s)
               AND (region IS NULL OR region = %(region)s)
               AND (SELECT version_num FROM alembic_version) = %(schema)s
               {this_one} {browser}
             ORDER BY priority DESC, created_at, id
             LIMIT {{limit}}
               FOR NO KEY UPDATE SKIP LOCKED
        ), moved AS (
            UPDATE crawl_jobs j
               SET status = 'processing',
                   worker_id = %(worker_id)s,
                   lease = lease + 1,
                   started_at = coalesce(started_at, now()),
                   last_heartbeat = now()
              FROM next
             WHERE j.id = next.id
            RETURNING j.*
        ), logged AS (
            INSERT INTO job_events (job_id, move, from_status, to_status, actor, lease)
            SELECT id, 'claim', 'pending', status, %(actor)s, lease FROM moved
        )
        SELECT {COLUMNS} FROM moved ORDER BY priority DESC, created_at, id
        """
        )
        .format(limit=Literal(limit))
        .as_bytes()
    )


async def claim_jobs(
    connection: Connection,
    *,
    worker_id: UUID,
    kinds: Sequence[str],
    limit: int,
    schema: str,
    stale_after: float,
    region: str | None = None,
    renders: bool = False,
    only: UUID | None = None,
) -> list[Job]:
    """Take the next due jobs. A worker of another schema version gets none.

    Jobs that need a browser are left to workers that have one, `auto` crawls only while there are
    such workers. A worker for `only` one job takes it if no worker renders: the person who waits
    for it then reads at once what is missing.
    """
    return await Rows(connection, Job).all(
        _claim_statement(limit, one=only is not None, renders=renders),
        {
            "kinds": list(kinds),
            "schema": schema,
            "region": region,
            "stale_after": stale_after,
            "only": only,
            "worker_id": worker_id,
            "actor": f"worker {worker_id}",
        },
    )


@cache
def _values_of(move: Transition) -> dict[str, Any]:
    return asdict(move) | {"sources": list(move.sources), "finishes": move.finishes}


async def apply_move(
    connection: Connection,
    job_id: UUID,
    move: Transition,
    *,
    actor: str,
    lease: int | None = None,
    reason: str | None = None,
    stop_reason: str | None = None,
    delay: float = 0.0,
) -> Job | None:
    """Make one move if the job's state, lease and worker allow it; None if they do not."""
    return await Rows(connection, Job).first(
        f"""
        WITH before AS (
            SELECT id, status
              FROM crawl_jobs
             WHERE id = %(id)s
               AND status = ANY(%(sources)s::job_status[])
               AND (%(lease)s::bigint IS NULL OR lease = %(lease)s)
               AND (%(needs_worker)s::bool IS NULL
                    OR (worker_id IS NOT NULL) = %(needs_worker)s)
               FOR NO KEY UPDATE
        ), moved AS (
            UPDATE crawl_jobs j
               SET status = %(target)s::job_status,
                   worker_id = CASE WHEN %(keeps_worker)s THEN j.worker_id END,
                   lease = j.lease + %(revokes)s::bool::int,
                   run_after = CASE
                       WHEN %(target)s::job_status = 'pending'
                           THEN now() + %(delay)s * interval '1 second'
                       ELSE j.run_after
                   END,
                   completed_at = CASE WHEN %(finishes)s THEN now() END,
                   retry_count = CASE WHEN %(resets_retries)s THEN 0 ELSE j.retry_count END,
                   progress_percentage = CASE
                       WHEN %(target)s::job_status = 'completed' THEN 100
                       WHEN %(resets_progress)s THEN 0
                       ELSE j.progress_percentage
                   END,
                   error_message = CASE
                       WHEN %(target)s::job_status = 'completed' OR %(resets_retries)s THEN NULL
                       ELSE j.error_message
                   END,
                   stop_reason = %(stop_reason)s
              FROM before
             WHERE j.id = before.id
            RETURNING j.*, before.status AS from_status
        ), logged AS (
            INSERT INTO job_events (job_id, move, from_status, to_status, actor, reason, lease)
            SELECT id, %(name)s, from_status, status, %(actor)s, %(reason)s, lease FROM moved
        ), woken AS (
            SELECT pg_notify('{CHANNEL}', id::text) FROM moved
        )
        SELECT {COLUMNS} FROM moved LEFT JOIN woken ON true
        """,
        {
            **_values_of(move),
            "id": job_id,
            "lease": lease,
            "delay": delay,
            "stop_reason": stop_reason,
            "actor": actor,
            "reason": reason,
        },
    )


# everything below a job is deleted with it
OLD_JOBS = OldRows(
    "crawl_jobs",
    """
    t.status IN ('completed', 'failed', 'cancelled')
    AND t.completed_at < now() - %(older_than)s * interval '1 second'
    """,
    "t.completed_at",
)
