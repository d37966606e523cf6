"""Finding jobs by what a person remembers of them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from forager.db.database import Database
from forager.jobs.job import Job
from forager.jobs.lifecycle import Status
from forager.jobs.store import reads as store

# how many of the newest jobs are looked through
AMONG = 20_000
MAX_TEXT = 500


async def find_jobs(
    database: Database,
    text: str,
    *,
    statuses: Sequence[Status] | None = None,
    user_id: UUID | None = None,
    limit: int = 50,
) -> list[Job]:
    """Of the newest jobs those with the text in their id, source or first URL."""
    async with database.connection() as connection:
        return await store.select_jobs_with(
            connection,
            text[:MAX_TEXT],
            statuses=statuses,
            user_id=user_id,
            among=AMONG,
            limit=limit,
        )
