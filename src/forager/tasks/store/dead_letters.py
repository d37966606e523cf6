"""The SQL of dead letters: tasks that failed permanently, until they are retried or dismissed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from forager.db.database import Connection
from forager.db.rows import Rows, Values
from forager.failures.store import FAILED_ATTEMPTS, failure_columns
from forager.tasks.lifecycle import RETRY
from forager.tasks.stages.attempt import Attempt, Stage
from forager.tasks.task import CHANNEL


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A task that used up its retries."""

    id: int
    task_id: int
    domain: str
    url: str
    stage: str
    error_type: str
    error_kind: str
    error_message: str
    attempts: int
    died_at: datetime


@dataclass(frozen=True, slots=True)
class LetterGroup:
    """Dead letters of one domain with the same cause."""

    domain: str
    error_kind: str
    message: str
    count: int
    last_died: datetime
    example_url: str


# parameters of the conditions; NULL: any
Conditions = Mapping[str, Any]
MATCHES: LiteralString = """
    l.resolved_at IS NULL
    AND (%(ids)s::bigint[] IS NULL OR l.id = ANY(%(ids)s))
    AND (%(cause)s::text IS NULL OR l.error_kind = %(cause)s)
    AND (%(domain_ids)s::bigint[] IS NULL OR l.domain_id = ANY(%(domain_ids)s))
"""


async def insert_letters(connection: Connection, stage: Stage, failed: Sequence[Attempt]) -> None:
    """Insert an open letter per task; it replaces an open one of the same task."""
    await connection.execute(
        f"""
        INSERT INTO dead_letters (task_id, domain_id, url, stage, error_type, error_kind,
                                  error_message, message_key, attempts)
        SELECT task_id, domain_id, url, %(stage)s, error_type, error_kind, error_message,
               message_key, retry_count + 1
          FROM {FAILED_ATTEMPTS}
        ON CONFLICT (task_id) WHERE resolved_at IS NULL DO UPDATE
           SET stage = excluded.stage, error_type = excluded.error_type,
               error_kind = excluded.error_kind, error_message = excluded.error_message,
               message_key = excluded.message_key, attempts = excluded.attempts, died_at = now()
        """,
        {"stage": stage.value, **failure_columns(failed)},
    )


async def resolve_of_tasks(connection: Connection, task_ids: Sequence[int]) -> None:
    """Resolve the letters of tasks that were completed after all."""
    await connection.execute(
        """
        UPDATE dead_letters
           SET resolved_at = now(), resolution = 'retried'
         WHERE task_id = ANY(%s) AND resolved_at IS NULL
        """,
        (list(task_ids),),
    )


async def select_letters(
    connection: Connection, conditions: Conditions, *, before: int | None, limit: int
) -> list[DeadLetter]:
    """Open letters, newest first."""
    return await Rows(connection, DeadLetter).all(
        f"""
        SELECT l.id, l.task_id, d.domain_name AS domain, l.url, l.stage, l.error_type,
               l.error_kind, l.error_message, l.attempts, l.died_at
          FROM dead_letters l
          JOIN domains d ON d.id = l.domain_id
         WHERE {MATCHES}
           AND (%(before)s::bigint IS NULL OR l.id < %(before)s)
         ORDER BY l.id DESC
         LIMIT %(limit)s
        """,
        {**conditions, "before": before, "limit": limit},
    )


async def select_groups(
    connection: Connection, conditions: Conditions, *, limit: int
) -> list[LetterGroup]:
    """Open letters by cause and domain, the most frequent first."""
    return await Rows(connection, LetterGroup).all(
        f"""
        SELECT d.domain_name AS domain, l.error_kind, l.message_key AS message,
               count(*) AS count, max(l.died_at) AS last_died,
               (array_agg(l.url ORDER BY l.id DESC))[1] AS example_url
          FROM dead_letters l
          JOIN domains d ON d.id = l.domain_id
         WHERE {MATCHES}
         GROUP BY d.domain_name, l.error_kind, l.message_key
         ORDER BY count(*) DESC, max(l.died_at) DESC
         LIMIT %(limit)s
        """,
        {**conditions, "limit": limit},
    )


async def select_open_ids(connection: Connection, ids: Sequence[int]) -> set[int]:
    """Those of the dead letters that are open."""
    return await Values(connection).as_set(
        "SELECT id FROM dead_letters WHERE id = ANY(%s) AND resolved_at IS NULL", (list(ids),)
    )


async def count_letters(connection: Connection, conditions: Conditions) -> int:
    """Number of open dead letters that meet the conditions."""
    return await Values(connection, int).one(
        f"SELECT count(*) FROM dead_letters l WHERE {MATCHES}", conditions
    )


async def resolve(
    connection: Connection, conditions: Conditions, *, resolution: str, limit: int
) -> int:
    """Resolve some letters; `retried`: their tasks are retried now."""
    return await Values(connection, int).one(
        f"""
        WITH chosen AS (
            SELECT l.id, l.task_id
              FROM dead_letters l
             WHERE {MATCHES}
             ORDER BY l.id
             LIMIT %(limit)s
               FOR UPDATE SKIP LOCKED
        ), resolved AS (
            UPDATE dead_letters l
               SET resolved_at = now(), resolution = %(resolution)s
              FROM chosen
             WHERE l.id = chosen.id
        ), retried AS (
            UPDATE crawl_tasks t
               SET {RETRY.changes}, scheduled_at = now()
              FROM chosen
             WHERE t.id = chosen.task_id AND {RETRY.allowed} AND %(resolution)s = 'retried'
        ), woken AS (
            SELECT pg_notify('{CHANNEL}', '') FROM chosen LIMIT 1
        )
        SELECT count(*) FROM chosen LEFT JOIN woken ON true
        """,
        {**conditions, "resolution": resolution, "limit": limit},
    )
