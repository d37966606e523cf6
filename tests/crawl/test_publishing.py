"""Which generations are published, and what readers see meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from crawl.crawling import Crawled, Crawls
from crawl.refreshing import (
    HANGING,
    SOURCE,
    crawl,
    generations,
    numbered,
    published,
    site_of,
    source,
)
from forager.db.database import Database
from forager.documents.publication import publish, roll_back
from forager.documents.reader import list_documents, read_page
from forager.documents.search import SearchRequest, search
from forager.documents.sources import get_source
from forager.errors import NotAllowed, NotFound
from forager.jobs.lifecycle import Status
from servers.site import Page, Site
from support.waiting import eventually


async def test_a_refresh_does_not_undo_a_rollback(crawls: Crawls, site: Site) -> None:
    site.pages = site_of(numbered(5, "first"))
    await crawl(crawls, site)
    first = await published(crawls)
    site.pages = site_of(numbered(5, "second"))
    await crawl(crawls, site)
    site.pages = site_of(numbered(5, "third")) | {"/p4": HANGING}
    refreshing = asyncio.create_task(crawl(crawls, site))
    await eventually(lambda: site.hanging)
    await roll_back(crawls.database, SOURCE)
    site.release()
    refreshed = await refreshing
    assert (refreshed.job.status, refreshed.job.stop_reason) == (Status.COMPLETED, "not published")
    assert await published(crawls) == first
    assert (await generations(crawls))[-1].note == (
        "what was published when the crawl began has been replaced since"
    )


async def test_a_site_that_is_down_leaves_what_is_published(crawls: Crawls, site: Site) -> None:
    site.pages = site_of(numbered(5))
    await crawl(crawls, site)
    seen = await published(crawls)
    site.pages = {path: Page(b"no", "500 Oops") for path in site.pages}
    down = await crawl(crawls, site, retries=0)
    assert down.job.status is Status.FAILED
    assert await published(crawls) == seen
    site.pages = site_of(numbered(5, "again"))
    assert (await crawl(crawls, site)).job.stop_reason == "finished"
    assert set(await published(crawls)) == set(seen)


async def refused(crawls: Crawls, crawled: Crawled) -> str:
    assert (crawled.job.status, crawled.job.stop_reason) == (Status.COMPLETED, "not published")
    assert (await source(crawls)).published_number == 1
    return (await generations(crawls))[-1].note or ""


async def test_a_site_that_shrinks_is_not_published_unless_forced(
    crawls: Crawls, site: Site
) -> None:
    site.pages = site_of(numbered(19))
    await crawl(crawls, site)
    seen = await published(crawls)
    site.pages = site_of(numbered(14))
    note = await refused(crawls, await crawl(crawls, site))
    assert note == "pages fell from 20 to 15"
    assert await published(crawls) == seen
    with pytest.raises(NotAllowed):
        await publish(crawls.database, SOURCE)
    await publish(crawls.database, SOURCE, force=True)
    assert len(await published(crawls)) == 15
    # from here on that is what the next one is compared with
    assert (await crawl(crawls, site)).job.stop_reason == "finished"


@pytest.mark.parametrize(("status", "publishes"), [("500 Oops", False), ("404 Gone", True)])
async def test_a_crawl_with_many_failures_is_not_published(
    crawls: Crawls, site: Site, status: str, *, publishes: bool
) -> None:
    site.pages = site_of(numbered(19))
    await crawl(crawls, site)
    seen = await published(crawls)
    site.pages |= {f"/p{number}": Page(b"no", status) for number in range(3)}
    refreshed = await crawl(crawls, site, retries=0)
    assert refreshed.ledger["failed"] == 3
    if publishes:
        assert refreshed.job.stop_reason == "finished"
        assert len(await published(crawls)) == 17
        return
    note = await refused(crawls, refreshed)
    assert note == "3 of 20 URLs failed (3 × http_500)"
    assert await published(crawls) == seen


class Reader:
    """Search and list until stopped; every result is of one version, and complete."""

    def __init__(self, database: Database, size: int) -> None:
        self._database = database
        self._size = size
        self.seen: set[str] = set()

    async def read_until(self, done: asyncio.Event) -> None:
        while not done.is_set():
            self._judge(await self._listed())
            self._judge(await self._found())

    async def _listed(self) -> list[str]:
        titles: list[str] = []
        cursor = None
        while True:
            page = await list_documents(self._database, SOURCE, path="/p", cursor=cursor, limit=3)
            titles += [each.title or "" for each in page.items]
            cursor = page.next_cursor
            if cursor is None:
                return titles

    async def _found(self) -> list[str]:
        titles: list[str] = []
        cursor = None
        while True:
            request = SearchRequest(
                query="something", source=SOURCE, path="/p", limit=3, cursor=cursor
            )
            page = await search(self._database, request)
            titles += [hit.title for hit in page.items]
            cursor = page.next_cursor
            if cursor is None:
                return titles

    def _judge(self, titles: list[str]) -> None:
        [version] = {title.split()[0] for title in titles}
        assert sorted(titles) == sorted(numbered(self._size, version).values())
        self.seen.add(version)


async def test_readers_never_see_a_mix(crawls: Crawls, site: Site) -> None:
    site.pages = site_of(numbered(8, "v0"))
    await crawl(crawls, site)
    done = asyncio.Event()
    reader = Reader(crawls.database, 8)
    reading = asyncio.create_task(reader.read_until(done))
    for turn in range(1, 7):
        site.pages = site_of(numbered(8, f"v{turn}"))
        assert (await crawl(crawls, site)).job.stop_reason == "finished"
        if turn % 2:  # a reader may miss what is published for a moment, but not the last
            await roll_back(crawls.database, SOURCE)
        assert not reading.done()
    await eventually(lambda: "v6" in reader.seen or reading.done())
    done.set()
    await reading
    assert len(reader.seen) >= 3


async def test_nothing_is_visible_before_the_first_publication(crawls: Crawls, site: Site) -> None:
    site.pages = site_of(numbered(3)) | {"/p2": HANGING}
    crawling = asyncio.create_task(crawl(crawls, site))
    await eventually(lambda: site.hanging)
    with pytest.raises(NotFound):
        await read_page(crawls.database, f"{site.url}/p0")
    assert await published(crawls) == {}
    site.pages = site_of(numbered(3))
    site.release()
    await crawling
    assert (await read_page(crawls.database, f"{site.url}/p0")).document.title == "page 0"


async def test_what_was_granted_to_a_job_is_not_left_to_the_next(
    crawls: Crawls, site: Site
) -> None:
    site.pages = site_of(numbered(3))
    crawled = await crawls.run(f"{site.url}/", source=SOURCE, granted_pages=50)
    assert crawled.job.payload["granted_pages"] == 50
    source = await get_source(crawls.database, SOURCE)
    assert "granted_pages" not in source.payload
    assert source.payload["urls"] == crawled.job.payload["urls"]
