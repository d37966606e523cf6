"""SQL that inserts, claims, moves and deletes jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, LiteralString
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from forager.db.database import Connection
from forager.db.ids import REGION_LOCK
from forager.db.retention import OldRows
from forager.db.rows import Rows, Tuples
from forager.jobs.job import Job, NewJob
from forager.jobs.lifecycle import CLAIM, FAIL, RECOVERY, Choice
from forager.jobs.store.reads import CHANNEL, COLUMNS, ONLY_FOR_RENDERERS, RENDERER_IS_THERE
from forager.outbox.store import enqueue


async def insert_jobs(connection: Connection, jobs: list[NewJob], *, actor: str) -> list[Job]:
    """Insert jobs and wake the workers; a source that has an active job is passed over.

    A change of a host's region and the insertion of its job wait for each other.
    """
    return await Rows(connection, Job).all(
        f"""
        WITH inserted AS (
            INSERT INTO crawl_jobs
                (id, kind, payload, priority, max_retries, source_id, user_id, trace, run_after,
                 host, region, own_runner)
            SELECT n.id, n.kind, n.payload, n.priority, n.max_retries, n.source_id, n.user_id,
                   n.trace, now() + n.delay * interval '1 second',
                   n.host, region_of_new_job(n.host, %(region_lock)s), n.own_runner
              FROM json_to_recordset(%(jobs)s::json)
                   AS n (id uuid, kind text, payload jsonb, priority int, max_retries int,
                         source_id text, user_id uuid, trace text, delay float8, host text,
                         own_runner bool)
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
    """Set the source of a new job, and the payload that names it."""
    await connection.execute(
        "UPDATE crawl_jobs SET source_id = %s, host = %s, payload = %s WHERE id = %s",
        (source_id, host, Jsonb(payload), job_id),
    )


async def merge_payload(connection: Connection, job_id: UUID, values: dict[str, Any]) -> None:
    """Replace some options of a job."""
    await connection.execute(
        "UPDATE crawl_jobs SET payload = payload || %s WHERE id = %s", (Jsonb(values), job_id)
    )


# the outbox topic of jobs that failed; a message refers to the row of `job_events`
FAILED_JOBS: LiteralString = "failed jobs"

# jobs by id; with a lease, only under that lease
GIVEN_JOBS = """
    FROM crawl_jobs
    JOIN unnest(%(ids)s::uuid[], %(leases)s::bigint[], %(losses)s::int[]) AS g (id, lease, losses)
      ON crawl_jobs.id = g.id AND (g.lease IS NULL OR crawl_jobs.lease = g.lease)
   WHERE true
"""


@cache
def move_statement(
    choices: tuple[Choice, ...], of: str = GIVEN_JOBS, *, lock: str = "", losses: str = "g.losses"
) -> bytes:
    """The statement that makes the first possible move of each job in `of`, and logs it.

    The subquery is a CTE because PostgreSQL may run a joined LIMIT twice and take too many.
    """
    tests = [(f"({c.move.allowed}) AND {c.condition}", c.move.name) for c in choices]
    chosen = " ".join(f"WHEN {test} THEN '{name}'" for test, name in tests)
    columns = dict.fromkeys(column for c in choices for column in c.move.changes)
    changes = ", ".join(f"{column} = {_new_value(column, choices)}" for column in columns)
    return f"""
        WITH before AS MATERIALIZED (
            SELECT crawl_jobs.id, crawl_jobs.status, {losses} AS losses, CASE {chosen} END AS move
            {of} AND ({" OR ".join(f"({test})" for test, _ in tests)})
            {lock or "FOR NO KEY UPDATE OF crawl_jobs"}
        ), moved AS (
            UPDATE crawl_jobs
               SET {changes}
              FROM before b
             WHERE crawl_jobs.id = b.id
            RETURNING crawl_jobs.*, b.status AS from_status, b.move
        ), logged AS (
            INSERT INTO job_events (job_id, move, from_status, to_status, actor, reason, lease)
            SELECT id, move, from_status, status, %(actor)s, %(reason)s, lease FROM moved
            RETURNING id, move
        ), {_announced(choices)} woken AS (
            SELECT count(pg_notify('{CHANNEL}', id::text)) FROM moved WHERE move <> 'claim'
        )
        SELECT {COLUMNS} FROM moved LEFT JOIN woken ON true ORDER BY priority DESC, created_at, id
        """.encode()


def _announced(choices: tuple[Choice, ...]) -> str:
    """A message for each job that fails, in the transaction of the move."""
    if not any(choice.move is FAIL for choice in choices):
        return ""
    rows = f"SELECT '{FAILED_JOBS}', id FROM logged WHERE move = '{FAIL.name}'"
    return f"announced AS ({enqueue(rows, 'topic, ref_id')}),"


def _new_value(column: str, choices: tuple[Choice, ...]) -> str:
    """The value of a column after the move that was chosen."""
    values = [(c.move.name, c.move.changes.get(column)) for c in choices]
    if len({value for _, value in values}) == 1:
        return str(values[0][1])
    cases = " ".join(f"WHEN '{name}' THEN {value}" for name, value in values if value is not None)
    return f"CASE b.move {cases} ELSE crawl_jobs.{column} END"


async def apply_moves(
    connection: Connection,
    ids: Sequence[UUID],
    choices: tuple[Choice, ...],
    *,
    actor: str,
    leases: Sequence[int] | None = None,
    losses: Sequence[int] | None = None,
    **values: object,
) -> list[Job]:
    """Make the first possible move of each job; those whose state or lease forbids all are left.

    `losses`: how many runners each job has lost with this one, if that is known.
    """
    nothing = [None] * len(ids)
    return await Rows(connection, Job).all(
        move_statement(choices),
        {
            "ids": list(ids),
            "leases": nothing if leases is None else list(leases),
            "losses": nothing if losses is None else list(losses),
            "actor": actor,
            "reason": None,
            "stop_reason": None,
            "delay": 0.0,
            **values,
        },
    )


async def set_own_runner(connection: Connection, job_id: UUID) -> None:
    """Give a job its own runner from now on."""
    await connection.execute("UPDATE crawl_jobs SET own_runner = true WHERE id = %s", (job_id,))


@cache
def _claim_statement(limit: int, *, one: bool, renders: bool, own_runner: bool | None) -> bytes:
    this_one = "AND id = %(only)s" if one else ""
    runner = "" if own_runner is None else f"AND {'' if own_runner else 'NOT'} own_runner"
    browser = ""
    if not renders:
        others = f"AND {RENDERER_IS_THERE}" if one else ""
        browser = f"AND NOT ({ONLY_FOR_RENDERERS} {others})"
    # The limit is part of the text: as a parameter, a plan for any limit is so much worse than
    # one for this limit that PostgreSQL plans every single claim again (measured: a third slower).
    return move_statement(
        (Choice(CLAIM),),
        f"""
              FROM crawl_jobs
             WHERE run_after <= now()
               AND kind = ANY(%(kinds)s)
               AND (region IS NULL OR region = %(region)s)
               AND (SELECT version_num FROM alembic_version) = %(schema)s
               AND id <> ALL(%(besides)s)
               {this_one} {runner} {browser}
        """,
        lock=f"""
             ORDER BY priority DESC, created_at, id
             LIMIT {limit}
               FOR NO KEY UPDATE SKIP LOCKED
        """,
        losses="NULL::int",
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
    own_runner: bool | None = None,
    besides: Sequence[UUID] = (),
) -> list[Job]:
    """Take the next due jobs. A worker of another schema version gets none.

    Jobs that need a browser are left to workers that have one, `auto` crawls only while there are
    such workers. A worker for `only` one job takes it if no worker renders: the person who waits
    for it then reads at once what is missing. `own_runner`: only jobs that run alone, or only
    others; `besides` are left to others.
    """
    return await Rows(connection, Job).all(
        _claim_statement(limit, one=only is not None, renders=renders, own_runner=own_runner),
        {
            "kinds": list(kinds),
            "schema": schema,
            "region": region,
            "stale_after": stale_after,
            "only": only,
            "besides": list(besides),
            "worker_id": worker_id,
            "actor": f"worker {worker_id}",
            "reason": None,
        },
    )


async def select_stale(
    connection: Connection, *, stale_after: float
) -> list[tuple[UUID, datetime]]:
    """Jobs whose heartbeat is older than this, with that heartbeat."""
    return await Tuples(connection).all(
        """
        SELECT id, last_heartbeat
          FROM crawl_jobs
         WHERE worker_id IS NOT NULL
           AND last_heartbeat < now() - %s * interval '1 second'
        """,
        (stale_after,),
    )


async def recover_stale(
    connection: Connection,
    *,
    ids: Sequence[UUID],
    heartbeats: Sequence[datetime],
    stale_after: float,
    **end: object,
) -> list[Job]:
    """Take jobs from dead workers. Staleness is tested again here, on the locked row."""
    return await _recover(
        connection,
        """
        (crawl_jobs.id, crawl_jobs.last_heartbeat) IN (
            SELECT * FROM unnest(%(ids)s::uuid[], %(heartbeats)s::timestamptz[])
        )
        AND crawl_jobs.worker_id IS NOT NULL
        AND crawl_jobs.last_heartbeat < now() - %(stale_after)s * interval '1 second'
        """,
        {"ids": list(ids), "heartbeats": list(heartbeats), "stale_after": stale_after, **end},
    )


async def recover_orphaned(
    connection: Connection, *, worker_ids: Sequence[UUID], **end: object
) -> list[Job]:
    """Take the jobs of workers that are known to be dead."""
    of_dead = "crawl_jobs.worker_id = ANY(%(worker_ids)s)"
    return await _recover(connection, of_dead, {"worker_ids": list(worker_ids), **end})


async def _recover(connection: Connection, of_dead: str, values: Mapping[str, object]) -> list[Job]:
    """`values`: the error, and the first and the longest delay of retries."""
    return await Rows(connection, Job).all(
        move_statement(
            RECOVERY,
            f"FROM crawl_jobs WHERE {of_dead}",
            lock="FOR NO KEY UPDATE OF crawl_jobs SKIP LOCKED",
            losses="NULL::int",
        ),
        {
            **values,
            "reason": values["error"],
            "permanent": False,
            "delay": 0.0,
            "stop_reason": None,
            "actor": "watchdog",
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
