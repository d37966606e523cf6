"""Clean-up after a crawl in the foreground, without any worker."""

from __future__ import annotations

from crawl.crawling import Crawls
from crawl.refreshing import SOURCE, crawl, generations, numbered, published, site_of
from forager.crawl.clean_up import clean_up
from forager.crawl.foreground import Foreground
from forager.db.ids import new_id
from forager.documents.sources import list_sources, set_limits
from forager.jobs.lifecycle import Status
from servers.site import Page, Site

AGED = "UPDATE generations SET retired_at = retired_at - interval '2 hours'"


async def leave_things_behind(crawls: Crawls, site: Site) -> None:
    """Two generations that are past the limit, and rows of a job that is gone."""
    site.pages = site_of(numbered(3))
    for _ in range(3):
        await crawl(crawls, site)
    await set_limits(crawls.database, SOURCE, keep=2)
    await crawls.sql(AGED)
    await crawls.sql(
        "INSERT INTO crawl_visited (job_id, url_hash, url, outcome, depth, via)"
        " VALUES (%s, '\\x00', 'http://gone.example/', 'fetched', 0, 'seed')",
        new_id(),
    )


async def orphans(crawls: Crawls) -> int:
    [[count]] = await crawls.sql(
        "SELECT count(*) FROM crawl_visited WHERE job_id NOT IN (SELECT id FROM crawl_jobs)"
    )
    return int(count)


async def test_a_crawl_in_the_foreground_cleans_up_behind_itself(
    crawls: Crawls, site: Site
) -> None:
    await leave_things_behind(crawls, site)
    job_id = await crawls.ask(f"{site.url}/", source=SOURCE)
    report = await Foreground(crawls.database, crawls.settings, job_id).run()
    assert report.job.status is Status.COMPLETED
    assert [each.number for each in await generations(crawls)] == [3, 4]
    assert len(await published(crawls)) == 4
    assert await orphans(crawls) == 0


async def test_clean_up_ends_in_time_and_loses_nothing(crawls: Crawls, site: Site) -> None:
    await leave_things_behind(crawls, site)
    await clean_up(crawls.database, crawls.settings, seconds=0)
    assert len(await generations(crawls)) == 3
    await clean_up(crawls.database, crawls.settings)
    assert [each.number for each in await generations(crawls)] == [2, 3]


async def test_a_host_that_was_never_fetched_does_not_stay_in_the_list(
    crawls: Crawls, site: Site
) -> None:
    site.pages = {"/": Page(b"no", "404 Not Found")}
    failed = await crawl(crawls, site)
    assert failed.job.status is Status.FAILED
    assert (await list_sources(crawls.database)).items == []
    # while it is being crawled it is there, and after that with its pages
    site.pages = site_of(numbered(3))
    job_id = await crawls.ask(f"{site.url}/", source=SOURCE)
    assert [each.id for each in (await list_sources(crawls.database)).items] == [SOURCE]
    assert (await crawls.go_on(job_id)).job.status is Status.COMPLETED
    assert [each.pages for each in (await list_sources(crawls.database)).items] == [4]


async def test_a_source_without_a_page_goes_with_its_job(crawls: Crawls, site: Site) -> None:
    site.pages = {"/": Page(b"no", "404 Not Found")}
    failed = await crawl(crawls, site)
    await clean_up(crawls.database, crawls.settings)
    assert await crawls.sql("SELECT 1 FROM sources")
    await crawls.sql("DELETE FROM crawl_jobs WHERE id = %s", failed.job.id)
    await clean_up(crawls.database, crawls.settings)
    assert not await crawls.sql("SELECT 1 FROM sources")
