"""The backlog over time, from samples that are stored once a minute.

A sample stays what it was: jobs that are deleted or finished later do not change the past.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from forager.db.database import Database
from forager.metrics import store
from forager.metrics.store import BacklogSample
from forager.services.service import Service

__all__ = ["BacklogSample", "backlog_samples", "sampling_service", "take_sample"]

# a minute has one sample, whichever process takes it
EVERY = 30.0
# longer than the charts look back
KEPT_DAYS = 2
# tasks that are counted at most, of each state
MOST_WAITING = 50_000


def sampling_service(database: Database) -> Service:
    return Service(name="backlog samples", every=EVERY, step=partial(take_sample, database))


async def take_sample(database: Database) -> None:
    """Store the backlog of this minute unless another process did."""
    async with database.transaction() as connection:
        await store.insert_backlog(connection, most=MOST_WAITING)
        await store.delete_backlog(connection, days=KEPT_DAYS)


async def backlog_samples(
    database: Database, *, minutes: int, user_id: UUID | None = None
) -> list[BacklogSample]:
    """Samples of the last minutes, the oldest first; jobs of one owner if one is given."""
    return await database.run(store.select_backlog, minutes=minutes, user_id=user_id)
