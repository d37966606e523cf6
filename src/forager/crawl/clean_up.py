"""Clean-up of crawls: rows of deleted jobs, and everything old after a crawl in the foreground."""

from __future__ import annotations

import asyncio

from forager.archive.deletion import clean_up_archive
from forager.crawl.store import state as store
from forager.db.database import Database
from forager.db.outages import TRANSIENT_ERRORS
from forager.documents.cleanup import DocumentCleanup
from forager.documents.search.background import embed_in_background
from forager.documents.search.semantic import Embedding
from forager.documents.sources import find_sources
from forager.errors import ForagerError, error_text
from forager.fetch.files.caches import delete_caches, old_caches
from forager.jobs.queue import Queue
from forager.jobs.watchdog import delete_old_jobs
from forager.logs import get_logger
from forager.services.service import in_chunks, isolated
from forager.settings import Settings

log = get_logger("crawl")

# data that is not deleted by then is left to the next crawl
SECONDS = 10.0
EMBEDDING_SECONDS = 30.0
CHUNK = 10_000


async def clean_up(
    database: Database, settings: Settings, *, seconds: float = SECONDS, embeds: bool = False
) -> None:
    """Delete old and abandoned data, as workers do; stopped anywhere, it leaves nothing half done.

    Sections are embedded in the background, or here if a caller waits for that (`embeds`). The
    crawl has ended well by now: an error is logged, and does not change that.
    """
    try:
        # first: it is what the next search needs
        if embeds or not await embed_in_background(database, settings):
            async with asyncio.timeout(None if embeds else EMBEDDING_SECONDS):
                await Embedding(database, settings).run()
    except TimeoutError:
        log.info("sections are embedded after the next crawl", seconds=EMBEDDING_SECONDS)
    except (*TRANSIENT_ERRORS, ForagerError, OSError) as error:
        log.warning("sections were not embedded", error=error_text(error))
    try:
        async with asyncio.timeout(seconds):
            await delete_old_jobs(database, settings)
            await clean_up_crawls(database, settings)
            await DocumentCleanup(database).run_once()
            await clean_up_archive(database, settings)
    except TimeoutError:
        log.info("clean-up is continued after the next crawl", seconds=seconds)
    except (*TRANSIENT_ERRORS, ForagerError, OSError) as error:
        log.warning("clean-up failed", error=error_text(error))


async def clean_up_crawls(database: Database, settings: Settings) -> None:
    """Delete what deleted jobs and sources have left in the database and on this machine."""
    await delete_orphaned_rows(database)
    await delete_unused_caches(database, settings)


async def delete_unused_caches(database: Database, settings: Settings) -> int:
    """Delete caches of repositories without a source or an active job; return their number."""
    caches = await asyncio.to_thread(old_caches, settings.home)
    if not caches:
        return 0
    owners = sorted(set(caches.values()) - {""})
    used = set(await find_sources(database, owners))
    used |= await Queue(database, settings).active_owners(owners)
    deleted = await asyncio.to_thread(delete_caches, caches, used=used)
    if deleted:
        log.info("caches of repositories deleted", caches=deleted)
    return deleted


async def delete_orphaned_rows(database: Database, *, chunk: int = CHUNK) -> int:
    """Delete frontier and visited rows of deleted jobs, which no foreign key removes."""
    orphans = await database.run(store.select_orphaned_jobs)
    deleted = 0
    for job_id in orphans:
        with isolated(f"job {job_id}"):
            deleted += await in_chunks(database, store.purge, job_id=job_id, limit=chunk)
    if deleted:
        log.info("rows of old crawls deleted", rows=deleted, crawls=len(orphans))
    return deleted
