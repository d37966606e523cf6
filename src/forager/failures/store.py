"""SQL of errors: one row for each failed attempt, and groups of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from forager.db.database import Connection
from forager.db.retention import OldRows
from forager.db.rows import RowArrays, Rows, Tuples
from forager.failures.cause import Cause


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Errors of one domain with the same cause."""

    domain: str | None
    error_type: str
    message: str
    count: int
    first_seen: datetime
    last_seen: datetime
    # the newest one
    example_id: int
    example_url: str | None
    example_message: str


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One error with its place and its cause."""

    id: int
    task_id: int | None
    job_id: str | None
    domain: str | None
    stage: str
    error_type: str
    error_kind: str
    error_message: str
    url: str | None
    stack_trace: str | None
    occurred_at: datetime


# parameters of the conditions; NULL: any
Conditions = Mapping[str, Any]
MATCHES: LiteralString = """
    (%(domain_ids)s::bigint[] IS NULL OR e.domain_id = ANY(%(domain_ids)s))
    AND (%(error_type)s::text IS NULL OR e.error_type = %(error_type)s)
    AND (%(message)s::text IS NULL OR e.message_key = %(message)s)
    AND (%(task_id)s::bigint IS NULL OR e.crawl_task_id = %(task_id)s)
    AND (%(since)s::interval IS NULL OR e.occurred_at >= now() - %(since)s)
    AND (%(user_id)s::uuid IS NULL OR e.job_id IS NULL
         OR EXISTS (SELECT FROM crawl_jobs j WHERE j.id = e.job_id AND j.user_id = %(user_id)s))
"""


async def insert_job_error(
    connection: Connection, job_id: UUID, cause: Cause, url: str | None
) -> None:
    """Log the error of a job."""
    await connection.execute(
        """
        INSERT INTO error_logs (job_id, stage, error_type, error_kind, error_message, message_key,
                                stack_trace, url)
        VALUES (%s, 'job', %s, %s, %s, %s, %s, %s)
        """,
        (
            job_id, cause.type.value, cause.kind.value, cause.message, cause.key,
            cause.stack_trace, url,
        ),
    )  # fmt: skip


# columns of failed attempts, also in dead letters
FAILED_ATTEMPTS = RowArrays(
    "f", task_id="bigint", domain_id="bigint", url="text", error_type="text", error_kind="text",
    error_message="text", message_key="text", stack_trace="text", retry_count="int",
)  # fmt: skip


def failure_columns(failed: Sequence[Any]) -> dict[str, Any]:
    """The parameters that log the failed ones of these attempts in one statement."""
    return FAILED_ATTEMPTS.values(
        (attempt for attempt in failed if attempt.cause is not None),
        task_id="task.id",
        domain_id="task.domain_id",
        url="task.url",
        error_type="cause.type",
        error_kind="cause.kind",
        error_message="cause.message",
        message_key="cause.key",
        stack_trace="cause.stack_trace",
        retry_count="task.retry_count",
    )


async def insert_errors(connection: Connection, stage: str, failed: Sequence[Any]) -> None:
    """Log the failed ones of these attempts of tasks."""
    await connection.execute(
        f"""
        INSERT INTO error_logs (crawl_task_id, domain_id, stage, error_type, error_kind,
                                error_message, message_key, stack_trace, url)
        SELECT task_id, domain_id, %(stage)s, error_type, error_kind, error_message, message_key,
               stack_trace, url
          FROM {FAILED_ATTEMPTS}
        """,
        {"stage": stage, **failure_columns(failed)},
    )


async def select_groups(
    connection: Connection, conditions: Conditions, *, limit: int, offset: int
) -> list[ErrorGroup]:
    """Errors by domain, type and message, most frequent first."""
    return await Rows(connection, ErrorGroup).all(
        f"""
        WITH grouped AS (
            SELECT e.domain_id, e.error_type, e.message_key, count(*) AS count,
                   min(e.occurred_at) AS first_seen, max(e.occurred_at) AS last_seen,
                   max(e.id) AS example_id
              FROM error_logs e
             WHERE {MATCHES}
             GROUP BY e.domain_id, e.error_type, e.message_key
             ORDER BY count DESC, last_seen DESC, example_id DESC
             LIMIT %(limit)s OFFSET %(offset)s
        )
        SELECT d.domain_name AS domain, g.error_type, g.message_key AS message, g.count,
               g.first_seen, g.last_seen, g.example_id, e.url AS example_url,
               e.error_message AS example_message
          FROM grouped g
          JOIN error_logs e ON e.id = g.example_id
          LEFT JOIN domains d ON d.id = g.domain_id
         ORDER BY g.count DESC, g.last_seen DESC, g.example_id DESC
        """,
        {**conditions, "limit": limit, "offset": offset},
    )


async def count_over_time(
    connection: Connection, conditions: Conditions, *, seconds: float, parts: int
) -> list[tuple[int, int]]:
    """Errors of the last `seconds` in equal parts of that time: (index, errors)."""
    return await Tuples(connection).all(
        f"""
        SELECT least(%(parts)s - 1, floor(extract(epoch FROM
                   e.occurred_at - (now() - %(seconds)s * interval '1 second'))
                   * %(parts)s / %(seconds)s))::int,
               count(*)
          FROM error_logs e
         WHERE {MATCHES} AND e.occurred_at > now() - %(seconds)s * interval '1 second'
         GROUP BY 1
        """,
        {**conditions, "seconds": seconds, "parts": parts},
    )


async def select_errors(
    connection: Connection, conditions: Conditions, *, before: int | None, limit: int
) -> list[ErrorRow]:
    """Single errors, newest first."""
    return await Rows(connection, ErrorRow).all(
        f"""
        SELECT e.id, e.crawl_task_id AS task_id, e.job_id::text, d.domain_name AS domain, e.stage,
               e.error_type, e.error_kind, e.error_message, e.url, e.stack_trace, e.occurred_at
          FROM error_logs e
          LEFT JOIN domains d ON d.id = e.domain_id
         WHERE {MATCHES}
           AND (%(before)s::bigint IS NULL OR e.id < %(before)s)
         ORDER BY e.id DESC
         LIMIT %(limit)s
        """,
        {**conditions, "before": before, "limit": limit},
    )


OLD_ERRORS = OldRows.by_time("error_logs", "occurred_at")
