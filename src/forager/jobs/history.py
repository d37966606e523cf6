"""The queue over time: jobs added, finished and active in each of the last minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from forager.db.cursor import Page, decode_number
from forager.db.database import Database
from forager.jobs.job import Job, JobEvent, TimelineRow
from forager.jobs.lifecycle import MOVES, Status
from forager.jobs.store import reads


@dataclass(frozen=True, slots=True)
class QueueHistory:
    """One number for each minute, the oldest first and the present one last."""

    added: list[int]
    finished: list[int]
    active: list[int]


async def queue_history(
    database: Database, *, active: int, minutes: int = 60, user_id: UUID | None = None
) -> QueueHistory:
    """The queue in the last minutes; `active` is the current number of unfinished jobs."""
    rows = await database.run(reads.count_by_minute, minutes=minutes, user_id=user_id)
    counts = {ago: (added, finished) for ago, added, finished in rows}
    by_minute = [counts.get(ago, (0, 0)) for ago in range(minutes)]
    levels, level = [], active
    for added, finished in by_minute:
        levels.append(max(0, level))
        # before this minute its new jobs were not there yet, and its finished ones still were
        level += finished - added
    return QueueHistory(
        added=[added for added, _ in reversed(by_minute)],
        finished=[finished for _, finished in reversed(by_minute)],
        active=levels[::-1],
    )


async def recent_jobs(
    database: Database, *, minutes: int = 60, limit: int = 100, user_id: UUID | None = None
) -> list[UUID]:
    """Jobs that were at work in the last minutes; the newest, if they are many."""
    return await database.run(reads.select_recent, minutes=minutes, limit=limit, user_id=user_id)


# moves that are looked through for one page
AMONG = 10_000
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
            connection, move=move, user_id=user_id, before=before, among=AMONG, limit=limit + 1
        )
        if len(found) > limit:
            return Page(found[:limit], str(found[limit - 1].id))
        reach = await reads.select_reach(connection, before=before, among=AMONG)
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


async def find_jobs(
    database: Database,
    text: str,
    *,
    statuses: Sequence[Status] | None = None,
    user_id: UUID | None = None,
    limit: int = 50,
) -> list[Job]:
    """Search the newest jobs for a text in their id, source or first URL."""
    return await database.run(
        reads.select_jobs_with,
        text[:MAX_TEXT],
        statuses=statuses,
        user_id=user_id,
        among=SEARCHED_JOBS,
        limit=limit,
    )
