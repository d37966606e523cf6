"""How fast crawls were, interval by interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from forager.crawl.store import pace as store
from forager.db.database import Database

# URLs that are read for one answer; of larger crawls a sample is
MAX_SAMPLE = 10_000
INTERVALS = 60


@dataclass(frozen=True, slots=True)
class Pace:
    """URLs settled in each interval, the oldest first; `estimated` if only a sample was read."""

    width: float
    settled: list[float]
    failed: list[float]
    estimated: bool

    @property
    def per_second(self) -> list[float]:
        return [count / self.width for count in self.settled]


async def pace_of(
    database: Database,
    job_ids: Sequence[UUID],
    *,
    since: float,
    until: float,
    intervals: int = INTERVALS,
) -> Pace:
    """The pace of these crawls together between two moments, in seconds of the epoch."""
    width = max(1.0, (until - since) / intervals)
    sample = max(1, MAX_SAMPLE // max(1, len(job_ids)))
    async with database.connection() as connection:
        rows = await store.sample_settled(
            connection, job_ids, since=since, width=width, sample=sample
        )
    settled, failed = [0.0] * intervals, [0.0] * intervals
    for number, count, failures, _ in rows:
        place = min(max(number, 0), intervals - 1)
        settled[place] += count
        failed[place] += failures
    return Pace(width, settled, failed, estimated=any(row[3] for row in rows))


async def failures_of(database: Database, job_ids: Sequence[UUID]) -> list[tuple[str, int]]:
    """Failed URLs of these crawls by reason, the most frequent first."""
    async with database.connection() as connection:
        return await store.sum_failures(connection, job_ids)
