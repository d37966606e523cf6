"""A job whose state is lost starts again from its seed URLs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from crawl.crawling import Crawls
from crawl.refreshing import HANGING, SOURCE, numbered, published, site_of
from forager.documents.sources import list_generations
from forager.jobs.lifecycle import Status
from forager.processes.control import StopCause
from servers.site import Site
from support.waiting import eventually

TABLES = ("crawl_states", "crawl_frontier", "crawl_visited")


async def paused_halfway(crawls: Crawls, site: Site) -> UUID:
    """A crawl that has committed some pages and waits for the others."""
    whole = site_of(numbered(12))
    site.pages = whole | dict.fromkeys(list(whole)[8:], HANGING)
    job_id = await crawls.ask(f"{site.url}/", source=SOURCE)
    running = asyncio.create_task(crawls.go_on(job_id))

    async def committed() -> bool:
        rows = await crawls.sql("SELECT 1 FROM crawl_visited WHERE job_id = %s", job_id)
        return len(rows) >= 4 and site.hanging > 0

    await eventually(committed)
    await crawls.queue.pause(job_id)
    assert crawls.context is not None
    crawls.context.ask_to_stop(StopCause.PAUSE)
    assert (await running).job.status is Status.PAUSED
    site.release()
    site.pages = whole
    return job_id


@pytest.mark.parametrize("lost", [TABLES[:1], TABLES], ids=["state", "everything"])
async def test_a_crawl_without_its_state_starts_again(
    crawls: Crawls, site: Site, lost: Sequence[str]
) -> None:
    job_id = await paused_halfway(crawls, site)
    for table in lost:
        await crawls.sql(f"DELETE FROM {table} WHERE job_id = %s RETURNING 1", job_id)
    await crawls.queue.resume(job_id)
    crawled = await crawls.go_on(job_id)
    assert (crawled.job.status, crawled.job.stop_reason) == (Status.COMPLETED, "finished")
    assert crawled.job.retry_count == 0
    assert crawled.ledger["fetched"] == 13
    assert crawled.ledger["failed"] == 0
    assert len(await published(crawls)) == 13
    found = (await list_generations(crawls.database, SOURCE)).items
    assert [(each.number, each.state.value) for each in found] == [
        (2, "published"), (1, "abandoned")
    ]  # fmt: skip
