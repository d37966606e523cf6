"""What a backup asks the database itself."""

from __future__ import annotations

import psycopg


def has_archived_records(url: str) -> bool:
    """Whether there is a segment that responses were written to."""
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        cursor = connection.execute(
            "SELECT FROM archive_segments WHERE records > 0 AND going_at IS NULL LIMIT 1"
        )
        return cursor.fetchone() is not None
