"""The rows of `crawl_jobs`, and the channel that tells of their moves."""

from __future__ import annotations

from typing import LiteralString

from psycopg import AsyncCursor
from psycopg.rows import class_row

from forager.db.database import Connection
from forager.jobs.job import Job

CHANNEL = "forager_jobs"

COLUMNS: LiteralString = """
    id, kind, payload, priority, status, worker_id, lease, progress_percentage, created_at,
    run_after, started_at, completed_at, last_heartbeat, retry_count, max_retries, error_message,
    stop_reason, source_id, user_id, region
"""


def job_cursor(connection: Connection) -> AsyncCursor[Job]:
    return connection.cursor(row_factory=class_row(Job))
