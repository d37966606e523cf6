"""The same move on many jobs: each is moved or refused by itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from forager.errors import InvalidInput, NotAllowed
from forager.jobs.job import Job


class Move(StrEnum):
    """What can be done to a job."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of one id: the job after the move, or why there was none."""

    id: UUID
    job: Job | None = None
    error: InvalidInput | NotAllowed | None = None


async def move_each(ids: Sequence[UUID], move: Callable[[UUID], Awaitable[Job]]) -> list[Moved]:
    """Move them one after the other; ids that are named twice are moved once."""
    return [await _move(job_id, move) for job_id in dict.fromkeys(ids)]


async def _move(job_id: UUID, move: Callable[[UUID], Awaitable[Job]]) -> Moved:
    try:
        return Moved(job_id, await move(job_id))
    except (InvalidInput, NotAllowed) as error:
        return Moved(job_id, error=error)
