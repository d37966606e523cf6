"""Statements that find jobs by a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from forager.db.database import Connection
from forager.jobs.job import Job
from forager.jobs.lifecycle import Status
from forager.jobs.store.rows import COLUMNS, job_cursor


async def select_jobs_with(
    connection: Connection,
    text: str,
    *,
    statuses: Sequence[Status] | None,
    user_id: UUID | None,
    among: int,
    limit: int,
) -> list[Job]:
    """Of the newest jobs those with the text in their id, source or first URL; newest first."""
    of_user: LiteralString = "WHERE user_id = %(user_id)s" if user_id else ""
    of_status: LiteralString = "AND status = ANY(%(statuses)s::job_status[])" if statuses else ""
    cursor = job_cursor(connection)
    await cursor.execute(
        f"""
        SELECT {COLUMNS}
          FROM (
            SELECT * FROM crawl_jobs {of_user} ORDER BY created_at DESC, id DESC LIMIT %(among)s
          ) AS newest
         WHERE (strpos(lower(source_id), lower(%(text)s)) > 0
                OR strpos(id::text, lower(%(text)s)) > 0
                OR strpos(lower(payload -> 'urls' ->> 0), lower(%(text)s)) > 0)
               {of_status}
         ORDER BY created_at DESC, id DESC
         LIMIT %(limit)s
        """,
        {
            "text": text,
            "statuses": list(statuses or ()),
            "user_id": user_id,
            "among": among,
            "limit": limit,
        },
    )
    return await cursor.fetchall()
