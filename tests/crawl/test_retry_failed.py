"""Failed URLs of a finished crawl are fetched again, and published with its other pages."""

from __future__ import annotations

import pytest

from crawl.crawling import Crawls
from forager.crawl.admission import retry_failed
from forager.documents.sources import get_source, list_generations
from forager.errors import NotAllowed
from forager.jobs.lifecycle import Status
from forager.operations.operation import Context
from servers.site import Page, Site, html


def context_of(crawls: Crawls) -> Context:
    return Context(crawls.database, crawls.settings)


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
    more = [f"/more{number}" for number in range(12)]
    broken.pages["/"] = html("Start", ["/a", "/b", "/c", "/gone", *more])
    broken.pages |= dict.fromkeys(more, broken.pages["/b"])
    crawled = await crawls.run(broken.url, source="docs", retries=0)
    assert crawled.job.stop_reason == "not published"
    broken.pages |= {"/b": html("B", ["/d"]), "/c": html("C"), "/d": html("D")}
    broken.pages |= {path: html(path) for path in more}
    requests = len(broken.log)

    retried = await retry_failed(context_of(crawls), crawled.job.id, ["http_500"])
    assert (retried.urls, retried.job.status) == (14, Status.PENDING)
    assert (await crawls.look(crawled.job.id)).ledger["failed_by_reason"] == {"http_404": 1}
    again = await crawls.go_on(crawled.job.id)
    assert again.pages(broken.url.rstrip("/")) == {"/", "/a", "/b", "/c", "/d", *more}
    fetched = {each.target for each in broken.log[requests:]} - {"/robots.txt"}
    assert fetched == {"/b", "/c", "/d", *more}
    source = await get_source(crawls.database, "docs")
    assert (source.published_number, source.pages) == (2, 17)
    newest = (await list_generations(crawls.database, "docs")).items[0]
    assert (newest.added, newest.unchanged, newest.removed) == (17, 0, 0)

    broken.pages["/gone"] = html("Gone")
    await retry_failed(context_of(crawls), crawled.job.id)
    await crawls.go_on(crawled.job.id)
    newest = (await list_generations(crawls.database, "docs")).items[0]
    assert (newest.number, newest.added, newest.unchanged) == (3, 1, 17)
    with pytest.raises(NotAllowed, match="no failed URLs"):
        await retry_failed(context_of(crawls), crawled.job.id)
    assert (await crawls.queue.get(crawled.job.id)).status is Status.COMPLETED


async def test_an_outdated_job_is_not_continued(crawls: Crawls, broken: Site) -> None:
    options = {"source": "docs", "retries": 0}
    first = await crawls.run(broken.url, **options)
    await crawls.run(broken.url, **options)
    with pytest.raises(NotAllowed, match="not the newest"):
        await retry_failed(context_of(crawls), first.job.id)
    unchanged = await crawls.look(first.job.id)
    assert (unchanged.job.status, unchanged.ledger["failed"]) == (Status.COMPLETED, 3)
