"""Background services of the job queue: recovery of abandoned jobs, deletion of old ones."""

from __future__ import annotations

from functools import partial

from forager.db.database import Database
from forager.jobs import workers
from forager.jobs.queue import Queue
from forager.jobs.watchdog import Watchdog
from forager.logs import get_logger
from forager.services.service import Service
from forager.settings import Settings

log = get_logger("jobs")

CLEANUP_INTERVAL = 3600.0
# how long a worker that ended without unregistering stays in the list
WORKER_MEMORY = 24 * 3600.0


def job_services(database: Database, settings: Settings) -> list[Service]:
    cleanup = partial(delete_old_jobs, database, settings)
    return [
        Watchdog(database, settings).service(),
        Service(name="job cleanup", every=CLEANUP_INTERVAL, step=cleanup),
    ]


async def delete_old_jobs(database: Database, settings: Settings) -> int:
    """Delete finished jobs past their age, and workers that are gone."""
    deleted = await Queue(database, settings).prune()
    if deleted:
        log.info("old jobs deleted", jobs=deleted)
    async with database.connection() as connection:
        await workers.delete_gone(connection, older_than=WORKER_MEMORY)
    return deleted
