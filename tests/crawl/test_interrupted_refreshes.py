"""A killed or cancelled refresh leaves what is published."""

from __future__ import annotations

from uuid import UUID

from crawl.crawling import Crawls
from crawl.refreshing import (
    HANGING,
    SOURCE,
    crawl,
    generations,
    numbered,
    paths,
    published,
    rows,
    site_of,
    source,
)
from crawl.test_kills import Disturbance, Worker, recover, working
from forager.documents.cleanup import CleanupResult, DocumentCleanup
from forager.documents.diff import diff_generations
from forager.jobs.lifecycle import Status
from servers.site import Site
from support.waiting import eventually


class Refresh:
    """A refresh of a changed site by a separate worker, which cannot end by itself."""

    OLD = numbered(60, "old")
    NEW = numbered(58, "old") | {"/p3": "edited", "/last": "last"}

    def __init__(self, crawls: Crawls, site: Site) -> None:
        self.crawls = crawls
        self.site = site

    async def begin(self) -> UUID:
        self.site.pages = site_of(self.OLD)
        await crawl(self.crawls, self.site)
        self.site.pages = site_of(self.NEW) | {"/last": HANGING}
        return await self.crawls.ask(
            f"{self.site.url}/", source=SOURCE, concurrency=4, max_retries=1000
        )

    async def has_committed_some(self) -> None:
        async def some() -> bool:
            counts = await self.crawls.sql(
                "SELECT 1 FROM generations WHERE state = 'building' AND pages >= 20"
            )
            return bool(counts) and self.site.hanging > 0

        await eventually(some)

    async def kill(self, worker: Worker) -> None:
        await self.has_committed_some()
        worker.kill_everything()
        await self.crawls.sql("DELETE FROM domain_permits")


async def test_a_killed_refresh_leaves_what_is_published_and_resumed_publishes_it_all(
    crawls: Crawls, site: Site
) -> None:
    refresh = Refresh(crawls, site)
    job_id = await refresh.begin()
    seen = await published(crawls)
    with working(crawls.settings) as worker:
        await refresh.kill(worker)
        assert await published(crawls) == seen
        assert (await source(crawls)).published_number == 1
        site.pages = site_of(refresh.NEW)
        await recover(crawls)
        worker.start_again()
        await eventually(lambda: Disturbance(crawls, site, seed=1).ended(job_id))
    resumed = await crawls.look(job_id)
    assert (resumed.job.status, resumed.job.stop_reason) == (Status.COMPLETED, "finished")
    assert (await source(crawls)).published_number == 2

    await crawls.run(f"{site.url}/", source="undisturbed")
    assert await published(crawls) == await published(crawls, "undisturbed")
    newest = (await generations(crawls))[-1]
    assert (newest.pages, newest.added, newest.changed, newest.removed) == (60, 1, 1, 2)
    diff = await diff_generations(crawls.database, SOURCE)
    assert paths(diff, site) == {
        "added": ["/last"], "removed": ["/p58", "/p59"], "changed": ["/p3"],
    }  # fmt: skip


async def test_a_cancelled_refresh_is_cleaned_up(crawls: Crawls, site: Site) -> None:
    refresh = Refresh(crawls, site)
    job_id = await refresh.begin()
    seen, stored = await published(crawls), await rows(crawls)
    with working(crawls.settings) as worker:
        await refresh.kill(worker)
        await crawls.queue.cancel(job_id)
    removed = await DocumentCleanup(crawls.database).run_once()
    assert removed == CleanupResult(generations=1, documents=1)
    assert [each.number for each in await generations(crawls)] == [1]
    assert (await published(crawls), await rows(crawls)) == (seen, stored)
