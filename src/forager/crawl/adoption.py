"""Crawl jobs that were inserted by plain SQL: complete them as `request_crawl` would have."""

from __future__ import annotations

from dataclasses import replace

from forager.crawl.options import CrawlOptions, crawl_options
from forager.crawl.sealing import seal_options
from forager.crawl.service import default_source
from forager.errors import GiveUp, InvalidInput
from forager.extract.hosts import host_of
from forager.jobs.context import JobContext
from forager.jobs.outcome import Waiting
from forager.secrets import Vault

# how long a job waits for the active job of its source
BUSY_DELAY = 60.0


async def adopt(context: JobContext) -> Waiting | None:
    """Check the payload, seal its secrets and assign the source; wait if the source is busy."""
    job = context.job
    if job.source_id is not None:
        return None
    options = _options(job.payload)
    source = default_source(options)
    payload = seal_options(options, Vault(context.settings)).model_dump(
        mode="json", exclude_defaults=True
    )
    if not await context.assign_source(source, host=host_of(options.seeds[0]), payload=payload):
        return Waiting(BUSY_DELAY, f"source {source} has another active job")
    context.job = replace(job, source_id=source, payload=payload)
    return None


def _options(payload: dict[str, object]) -> CrawlOptions:
    try:
        return crawl_options(payload)
    except InvalidInput as error:
        raise GiveUp(f"the payload is not valid: {error.message}") from None
