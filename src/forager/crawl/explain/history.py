"""What became of one URL in the last crawls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from forager.crawl.explain import store
from forager.crawl.explain.store import Fate
from forager.db.database import Connection
from forager.extract.keys import url_key
from forager.extract.urls import NormalisedUrl

RECENT_CRAWLS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PastFate:
    """How one crawl has settled a URL."""

    job_id: UUID
    outcome: str
    reason: str | None
    detail: str | None
    http_status: int | None
    attempts: int
    settled_at: datetime | None


async def url_history(
    connection: Connection, url: NormalisedUrl, *, user_id: UUID | None = None
) -> list[PastFate]:
    """How each of the newest crawls (of an owner) that has settled it did so, the newest first."""
    jobs = await store.select_recent_crawls(connection, user_id, limit=RECENT_CRAWLS)
    fates = await store.select_settled(connection, jobs, url_key(url))
    return [_past(fate) for fate in sorted(fates, key=lambda fate: jobs.index(fate.job_id))]


def _past(fate: Fate) -> PastFate:
    return PastFate(
        job_id=fate.job_id,
        outcome=fate.outcome,
        reason=fate.reason,
        detail=fate.detail,
        http_status=fate.http_status,
        attempts=fate.attempts,
        settled_at=fate.settled_at,
    )
