"""Jobs and their moves over time, and the search for jobs by a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack
from uuid import UUID

from forager.db.cursor import Page, decode_number
from forager.db.database import Database
from forager.jobs.job import Job, JobEvent, JobFilters, TimelineRow
from forager.jobs.lifecycle import MOVES, Status
from forager.jobs.store import listing, reads
from forager.jobs.store.moves import FAILED_JOBS
from forager.jobs.store.reads import select_jobs_by_id, select_reasons

__all__ = ["FAILED_JOBS", "select_jobs_by_id", "select_reasons"]


async def recent_jobs(
    database: Database, *, minutes: int = 60, limit: int = 100, user_id: UUID | None = None
) -> list[UUID]:
    """Jobs that were at work in the last minutes; the newest, if they are many."""
    return await database.run(reads.select_recent, minutes=minutes, limit=limit, user_id=user_id)


# moves that are looked through for one page
MOVES_SCANNED = 10_000
KINDS = tuple(dict.fromkeys(["enqueue", *(move.name for move in MOVES)]))


async def list_moves(
    database: Database,
    *,
    move: str | None = None,
    user_id: UUID | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[TimelineRow]:
    """Moves of the jobs (of an owner). A short page may still be followed by others."""
    before = decode_number(cursor)
    async with database.connection() as connection:
        found = await reads.select_moves(
            connection,
            move=move,
            user_id=user_id,
            before=before,
            among=MOVES_SCANNED,
            limit=limit + 1,
        )
        if len(found) > limit:
            return Page(found[:limit], str(found[limit - 1].id))
        reach = await reads.select_reach(connection, before=before, among=MOVES_SCANNED)
    return Page(found, None if reach is None else str(reach))


async def events_of_many(
    database: Database, after: Mapping[UUID, int], *, limit: int
) -> dict[UUID, list[JobEvent]]:
    """Events of several jobs by job, each after the last known one; at most `limit` per job."""
    found = await database.run(reads.select_events_of_many, after, limit=limit)
    by_job: dict[UUID, list[JobEvent]] = {}
    for event in found:
        by_job.setdefault(event.job_id, []).append(event)
    return by_job


# how many of the newest jobs are looked through
SEARCHED_JOBS = 20_000
MAX_TEXT = 500


async def count_found(database: Database, text: str, filters: JobFilters) -> dict[Status, int]:
    """The newest jobs with a text that match the filters, by state, whichever are selected."""
    found = await database.run(
        listing.count_jobs_with, text[:MAX_TEXT], {**filters, "statuses": None}, among=SEARCHED_JOBS
    )
    return {status: found.get(status, 0) for status in Status}


async def find_jobs(
    database: Database, text: str, *, limit: int = 50, **filters: Unpack[JobFilters]
) -> list[Job]:
    """Search the newest jobs for a text in their id, source or first URL."""
    return await database.run(
        listing.select_jobs_with, text[:MAX_TEXT], filters, among=SEARCHED_JOBS, limit=limit
    )
