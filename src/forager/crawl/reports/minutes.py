"""The counts of crawls over time, from samples that are stored once a minute.

A sample stays what it was: crawls that are deleted later do not change the past.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from forager.crawl.store import minutes as store
from forager.crawl.store.minutes import CrawlMinute, ThroughputMinute
from forager.db.database import Database
from forager.services.service import Service

__all__ = [
    "CrawlMinute",
    "ThroughputMinute",
    "crawl_minutes",
    "sampling_service",
    "store_minute",
    "throughput",
]

# a minute has one sample, whichever process takes it
EVERY = 30.0
# longer than the charts look back
KEPT_DAYS = 2


def sampling_service(database: Database) -> Service:
    return Service(name="crawl samples", every=EVERY, step=partial(store_minute, database))


async def store_minute(database: Database) -> None:
    """Store the counts of this minute unless another process did."""
    async with database.transaction() as connection:
        await store.insert_minute(connection)
        await store.delete_minutes(connection, days=KEPT_DAYS)


async def crawl_minutes(database: Database, job_id: UUID) -> list[CrawlMinute]:
    """The stored counts of a crawl, the oldest first."""
    return await database.run(store.select_minutes, job_id)


async def throughput(
    database: Database, *, minutes: int, user_id: UUID | None = None
) -> list[ThroughputMinute]:
    """URLs of all crawls by minute, the oldest first; of one owner if one is given."""
    return await database.run(store.select_throughput, minutes=minutes, user_id=user_id)
