"""What active jobs are doing: running, waiting for something, or stalled, in one summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from forager.amounts import rounded_time
from forager.db.database import Database
from forager.jobs.store import listing


class JobActivity(StrEnum):
    """What a pending or processing job is doing."""

    RUNNING = "running"
    # its host allows no request yet
    HOST = "waiting-for-host"
    ROBOTS = "waiting-for-robots"
    WORKER = "waiting-for-worker"
    # a retry or a delayed start
    SCHEDULED = "scheduled"
    # it waits for nothing, but neither its worker nor its pages have progressed for minutes
    STALLED = "stalled"


_LABELS = {
    JobActivity.RUNNING: "running",
    JobActivity.HOST: "waiting for their host",
    JobActivity.ROBOTS: "waiting for robots.txt",
    JobActivity.WORKER: "waiting for a worker",
    JobActivity.SCHEDULED: "scheduled for later",
    JobActivity.STALLED: "stalled",
}


@dataclass(frozen=True, slots=True)
class JobsSummary:
    """Active jobs by activity, their pace together, and when the last known page is fetched."""

    activities: Mapping[JobActivity, int]
    pages_per_second: float
    # at the present pace; None if nothing is known to be left
    seconds_left: float | None

    @property
    def parts(self) -> list[tuple[JobActivity, str]]:
        """The activities that jobs have, each as text: `214 waiting for their host`."""
        return [
            (activity, f"{self.activities[activity]:,} {label}")
            for activity, label in _LABELS.items()
            if self.activities[activity]
        ]

    @property
    def pace(self) -> str:
        """Pace and remaining time: `96 pages/s, done in about 40 min`; empty without a pace."""
        if not self.pages_per_second:
            return ""
        digits = 0 if self.pages_per_second >= 10 else 1
        pace = f"{self.pages_per_second:,.{digits}f} pages/s"
        left = self.seconds_left
        return pace if left is None else f"{pace}, done in about {rounded_time(left)}"

    @property
    def message(self) -> str:
        """All of it in one line; empty if no job is active."""
        return ", ".join(filter(None, [*(text for _, text in self.parts), self.pace]))


async def summarize_jobs(
    database: Database, *, user_id: UUID | None = None, job_ids: Sequence[UUID] | None = None
) -> JobsSummary:
    """Summarize the active jobs of one owner or of all, or those among the given ones."""
    rows = await database.run(listing.summarize, user_id=user_id, job_ids=job_ids)
    counts = {row.activity: row.jobs for row in rows}
    pace, pending = sum(row.pace for row in rows), sum(row.pending for row in rows)
    slowest = max((row.slowest for row in rows), default=0.0)
    return JobsSummary(
        {activity: counts.get(activity, 0) for activity in JobActivity},
        pages_per_second=round(pace, 2),
        seconds_left=max(slowest, pending / pace) if pace and pending else None,
    )
