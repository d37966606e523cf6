"""Failed URLs of a finished crawl are fetched again, and published with its other pages."""

from __future__ import annotations

import pytest

from crawl.crawling import Crawls
from forager.access.caller import LOCAL
from forager.crawl.admission import retry_failed
from forager.documents.sources import get_source, list_generations
from forager.errors import NotAllowed
from forager.jobs.lifecycle import Status
from servers.site import Page, Site, html


@pytest.fixture
def broken(site: Site) -> Site:
    """A site of which two pages fail and one is missing."""
    site.pages["/"] = html("Start", ["/a", "/b", "/c", "/gone"])
    site.pages["/a"] = html("A")
    for path in ("/b", "/c"):
        site.pages[path] = Page(b"broken", "500 Internal Server Error")
    site.pages["/gone"] = Page(b"gone", "404 Not Found")
    return site


async def test_failed_urls_are_added_to_the_pages_of_the_job(crawls: Crawls, broken: Site) -> None:
    crawled = await crawls.run(broken.url, source="docs", retries=0)
    assert crawled.job.stop_reason == "not published"
    broken.pages |= {"/b": html("B", ["/d"]), "/c": html("C"), "/d": html("D")}
    requests = len(broken.log)

    retried = await retry_failed(
        crawls.database, crawls.settings, LOCAL, crawled.job.id, ["http_500"]
    )
    assert (retried.urls, retried.job.status) == (2, Status.PENDING)
    assert (await crawls.look(crawled.job.id)).ledger["failed_by_reason"] == {"http_404": 1}
    again = await crawls.go_on(crawled.job.id)
    assert again.pages(broken.url.rstrip("/")) == {"/", "/a", "/b", "/c", "/d"}
    fetched = {each.target for each in broken.log[requests:]} - {"/robots.txt"}
    assert fetched == {"/b", "/c", "/d"}
    source = await get_source(crawls.database, "docs")
    assert (source.published_number, source.pages) == (2, 5)
    newest = (await list_generations(crawls.database, "docs")).items[0]
    assert (newest.added, newest.unchanged, newest.removed) == (5, 0, 0)

    broken.pages["/gone"] = html("Gone")
    await retry_failed(crawls.database, crawls.settings, LOCAL, crawled.job.id)
    await crawls.go_on(crawled.job.id)
    newest = (await list_generations(crawls.database, "docs")).items[0]
    assert (newest.number, newest.added, newest.unchanged) == (3, 1, 5)
    with pytest.raises(NotAllowed, match="no failed URLs"):
        await retry_failed(crawls.database, crawls.settings, LOCAL, crawled.job.id)
    assert (await crawls.queue.get(crawled.job.id)).status is Status.COMPLETED


async def test_an_outdated_job_is_not_continued(crawls: Crawls, broken: Site) -> None:
    options = {"source": "docs", "retries": 0}
    first = await crawls.run(broken.url, **options)
    await crawls.run(broken.url, **options)
    with pytest.raises(NotAllowed, match="not the newest"):
        await retry_failed(crawls.database, crawls.settings, LOCAL, first.job.id)
    unchanged = await crawls.look(first.job.id)
    assert (unchanged.job.status, unchanged.ledger["failed"]) == (Status.COMPLETED, 3)
