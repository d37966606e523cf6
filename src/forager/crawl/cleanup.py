"""Clean-up of crawls: rows of deleted jobs, which no foreign key removes."""

from __future__ import annotations

from forager.crawl import store
from forager.db.database import Database
from forager.logs import get_logger
from forager.services.chunks import in_chunks
from forager.services.isolation import isolated

log = get_logger("crawl")

CHUNK = 10_000


async def delete_orphaned_rows(database: Database, *, chunk: int = CHUNK) -> int:
    """Delete frontier and visited rows of jobs that no longer exist; return their number."""
    async with database.connection() as connection:
        orphans = await store.select_orphaned_jobs(connection)
    deleted = 0
    for job_id in orphans:
        with isolated(f"job {job_id}"):
            deleted += await in_chunks(database, store.purge, job_id=job_id, limit=chunk)
    if deleted:
        log.info("rows of old crawls deleted", rows=deleted, crawls=len(orphans))
    return deleted
