"""Asking for crawls: what every adapter (command line, API, library) calls."""

from __future__ import annotations

from uuid import UUID

from forager.crawl.options import CrawlOptions
from forager.crawl.sealing import seal_options
from forager.extract.hosts import host_of
from forager.jobs.job import NewJob
from forager.jobs.queue import Enqueued, Queue
from forager.secrets import Vault

KIND = "crawl"


async def request_crawl(
    queue: Queue,
    options: CrawlOptions,
    *,
    source: str | None = None,
    priority: int = 0,
    max_retries: int = 3,
    user_id: UUID | None = None,
    actor: str = "user",
) -> Enqueued:
    """Enqueue a crawl, its secrets sealed; a source that is being crawled answers with that job."""
    sealed = seal_options(options, Vault(queue.settings))
    job = NewJob(
        kind=KIND,
        payload=sealed.model_dump(mode="json", exclude_defaults=True),
        priority=priority,
        max_retries=max_retries,
        source_id=source or default_source(options),
        user_id=user_id,
    )
    return await queue.enqueue(job, actor=actor)


def default_source(options: CrawlOptions) -> str:
    """The host; what a user wants crawled as one unit is usually a whole site."""
    return host_of(options.seeds[0])
