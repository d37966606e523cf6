"""What became of one URL in the last crawls."""

from __future__ import annotations

from uuid import UUID

from forager.crawl import explain_store as store
from forager.crawl.explain_store import Fate
from forager.db.database import Database
from forager.extract.keys import url_key
from forager.extract.urls import NormalisedUrl

RECENT_CRAWLS = 50


async def url_history(
    database: Database, url: NormalisedUrl, *, user_id: UUID | None = None
) -> list[Fate]:
    """How each of the newest crawls (of an owner) that has settled it did so, the newest first."""
    async with database.connection() as connection:
        jobs = await store.select_recent_crawls(connection, user_id, limit=RECENT_CRAWLS)
        fates = await store.select_settled(connection, jobs, url_key(url))
    return sorted(fates, key=lambda fate: jobs.index(fate.job_id))
