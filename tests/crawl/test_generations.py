"""What crawls publish: whole generations, that differ as the site does, and outlive any trouble."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from crawl.crawling import Crawled, Crawls
from crawl.test_kills import Disturbance, Worker, recover, working
from forager.crawl import job as crawl_job
from forager.crawl.extraction import pool as extraction
from forager.db.database import Database
from forager.documents.cleanup import DocumentCleanup, Removed
from forager.documents.diff import Diff, diff_generations
from forager.documents.generation import Generation, Source
from forager.documents.publication import publish, roll_back
from forager.documents.reader import list_documents, read_page
from forager.documents.search import SearchRequest, search
from forager.documents.sources import get_source, list_generations
from forager.errors import NotAllowed, NotFound
from forager.jobs.lifecycle import Status
from forager.settings import Settings
from servers.site import Answer, Page, Site, html, moved, tagged
from support.waiting import eventually

SOURCE = "docs"
HANGING = Page(b"", hangs=True)
# long enough to be compared
TWIN = "A page that is there under two names, word for word"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """No waiting longer and longer after each kill."""
    return Settings(**(settings.model_dump() | {"retry_delay_max": 0.05}))


# --- sites ---------------------------------------------------------------------------------------


def menu(targets: Iterable[str]) -> str:
    """Links that are not part of what a page says."""
    return "<nav>" + " ".join(f'<a href="{each}">{each}</a>' for each in targets) + "</nav>"


def site_of(texts: Mapping[str, str]) -> dict[str, Answer]:
    """A home page that leads to pages with these texts; all of them have an ETag."""
    home = html("Home", body=menu(texts))
    pages = {path: html(text, body=menu(["/"])) for path, text in texts.items()}
    return {path: tagged(page) for path, page in {"/": home, **pages}.items()}


def numbered(count: int, text: str = "page") -> dict[str, str]:
    return {f"/p{number}": f"{text} {number}" for number in range(count)}


async def crawl(crawls: Crawls, site: Site, **options: Any) -> Crawled:
    return await crawls.run(f"{site.url}/", source=SOURCE, **options)


# --- what readers see ----------------------------------------------------------------------------


async def published(crawls: Crawls, source_id: str = SOURCE) -> dict[str, tuple[str, bytes]]:
    """Path -> title and content of every page that readers see."""
    listed = await list_documents(crawls.database, source_id, limit=1000)
    return {
        each.url.split("/", 3)[3]: (each.title or "", each.content_hash) for each in listed.items
    }


async def generations(crawls: Crawls) -> list[Generation]:
    """The oldest first."""
    return (await list_generations(crawls.database, SOURCE)).items[::-1]


async def source(crawls: Crawls) -> Source:
    return await get_source(crawls.database, SOURCE)


def paths(diff: Diff, site: Site) -> dict[str, list[str]]:
    return {
        name: [page.url.removeprefix(site.url) for page in getattr(diff, name)]
        for name in ("added", "removed", "changed")
    }


async def rows(crawls: Crawls) -> tuple[int, ...]:
    """How much is stored of documents."""
    [counts] = await crawls.sql(
        """
        SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM sections),
               (SELECT count(*) FROM section_search), (SELECT max(id) FROM documents)
        """
    )
    return tuple(counts)


# --- differences ---------------------------------------------------------------------------------


@pytest.mark.parametrize("with_tags", [True, False])
async def test_a_diff_is_exactly_what_happened_to_the_site(
    crawls: Crawls, site: Site, *, with_tags: bool
) -> None:
    before = {"/same": "Same", "/edited": "First", "/gone": "Gone", "/old-name": "Named"}
    before |= numbered(10)
    site.pages = site_of(before)
    after = {path: text for path, text in before.items() if path not in ("/gone", "/old-name")}
    after |= {"/edited": "Second", "/new-name": "Named", "/new": "New"}
    if not with_tags:
        site.pages = {path: _untagged(page) for path, page in site.pages.items()}
    await crawl(crawls, site)
    documents_before = await rows(crawls)
    site.pages = site_of(after)
    if not with_tags:
        site.pages = {path: _untagged(page) for path, page in site.pages.items()}
    refreshed = await crawl(crawls, site)

    diff = await diff_generations(crawls.database, SOURCE, with_sections=True)
    assert paths(diff, site) == {
        "added": ["/new"],
        "removed": ["/gone"],
        "changed": ["/edited"],
    }
    assert [(r.old_url, r.new_url) for r in diff.renamed] == [
        (f"{site.url}/old-name", f"{site.url}/new-name")
    ]
    assert "+" in "\n".join(change.diff for change in diff.changed[0].sections)
    newest = (await generations(crawls))[-1]
    assert (newest.added, newest.changed, newest.removed, newest.unchanged) == (2, 1, 2, 12)

    # the home page has other links, and says the same
    unchanged = dict.fromkeys(("/", "/same", *numbered(10)), "unchanged:same_content")
    if with_tags:
        unchanged |= dict.fromkeys(("/same", *numbered(10)), "unchanged:not_modified")
    assert refreshed.outcomes(site.url) == unchanged | {
        "/edited": "fetched", "/new": "fetched", "/new-name": "fetched",
    }  # fmt: skip
    assert refreshed.ledger["unchanged"] == 12
    documents = await rows(crawls)
    assert documents[0] - documents_before[0] == 3


def _untagged(page: Answer) -> Page:
    assert isinstance(page, Page)
    return Page(page.body)


# --- answers of 304 ------------------------------------------------------------------------------


async def test_a_refresh_answered_by_304_alone_finds_the_whole_site(
    crawls: Crawls, site: Site
) -> None:
    """Only the first page of a chain is known at the start; links lead from each to the next."""
    chain = [f"/c{number}" for number in range(8)]
    site.pages = {
        path: tagged(html(path, body=menu([target, "/"])))
        for path, target in zip(["/", *chain], [*chain, "/c0"], strict=True)
    }
    site.pages["/c7"] = tagged(
        html("/c7", ['<a href="/secret" rel="nofollow">secret</a>'], body=menu(["/"]))
    )
    site.pages["/secret"] = tagged(html("Secret"))
    first = await crawl(crawls, site)
    seen, stored = await published(crawls), await rows(crawls)
    assert len(seen) == 9
    site.log.clear()

    second = await crawl(crawls, site)
    unchanged = dict.fromkeys(["/", *chain], "unchanged:not_modified")
    assert second.outcomes(site.url) == unchanged | {"/secret": "excluded:nofollow"}
    assert first.outcomes(site.url)["/secret"] == "excluded:nofollow"
    assert site.not_modified == dict.fromkeys(["/", *chain], 1)
    assert await published(crawls) == seen
    assert await rows(crawls) == stored
    assert (await source(crawls)).published_number == 2
    diff = await diff_generations(crawls.database, SOURCE)
    assert paths(diff, site) == {"added": [], "removed": [], "changed": []}

    # and a third time, from what the second one kept
    third = await crawl(crawls, site)
    assert third.outcomes(site.url) == second.outcomes(site.url)
    assert await published(crawls) == seen


async def test_last_modified_is_enough(crawls: Crawls, site: Site) -> None:
    when = "Sat, 01 Nov 2025 10:00:00 GMT"
    site.pages = {
        "/": html("Home", body=menu(["/a"]), Last_Modified=when),
        "/a": html("A", Last_Modified=when),
    }
    await crawl(crawls, site)
    second = await crawl(crawls, site)
    assert second.outcomes(site.url) == dict.fromkeys(["/", "/a"], "unchanged:not_modified")


@pytest.mark.long
async def test_links_that_led_too_deep_are_followed_from_a_page_that_is_nearer(
    crawls: Crawls, site: Site
) -> None:
    near = tagged(html("Near", body=menu(["/leaf"])))
    site.pages = {
        "/": tagged(html("Home", body=menu(["/middle", "/near"]))),
        "/middle": tagged(html("Middle", body=menu(["/deep"]))),
        "/deep": tagged(html("Deep", body=menu(["/leaf"]))),
        "/near": near,
        "/leaf": tagged(html("Leaf")),
    }
    await crawl(crawls, site, max_depth=2)
    site.pages["/near"] = replace(near, hangs=True)
    refreshing = asyncio.create_task(crawl(crawls, site, max_depth=2))
    deep = "SELECT 1 FROM crawl_visited WHERE outcome = 'unchanged' AND right(url, 5) = '/deep'"
    await eventually(lambda: crawls.sql(deep))
    site.release()
    refreshed = await refreshing
    assert set(refreshed.outcomes(site.url).values()) == {"unchanged:not_modified"}
    assert len(await published(crawls)) == 5


async def test_a_304_without_a_conditional_request_is_no_page(crawls: Crawls, site: Site) -> None:
    site.pages = {path: _untagged(page) for path, page in site_of(numbered(12)).items()}
    await crawl(crawls, site)
    site.pages["/p3"] = Page(b"", "304 Not Modified")
    refreshed = await crawl(crawls, site)
    assert refreshed.outcomes(site.url)["/p3"] == "failed:http_304"
    assert "p3" not in await published(crawls)


async def test_content_duplicates_stay_duplicates_in_a_refresh(crawls: Crawls, site: Site) -> None:
    site.pages = site_of({"/one": TWIN, "/two": TWIN, "/three": "Other"})
    first = await crawl(crawls, site, concurrency=1)
    assert first.outcomes(site.url)["/two"] == "duplicate:content"
    seen = await published(crawls)
    second = await crawl(crawls, site, concurrency=1)
    assert second.outcomes(site.url) == {
        "/": "unchanged:not_modified",
        "/one": "unchanged:not_modified",
        "/two": "duplicate:content",
        "/three": "unchanged:not_modified",
    }
    assert second.visited[f"{site.url}/two"].duplicate_of == f"{site.url}/one"
    assert await published(crawls) == seen


@pytest.mark.parametrize("with_tags", [True, False])
async def test_chance_does_not_decide_which_of_two_copies_is_the_page(
    crawls: Crawls, site: Site, *, with_tags: bool
) -> None:
    site.pages = site_of({"/one": TWIN, "/two": TWIN, "/three": "Other"})
    if not with_tags:
        site.pages = {path: _untagged(page) for path, page in site.pages.items()}
    await crawl(crawls, site, concurrency=1)
    seen = await published(crawls)
    assert set(seen) == {"", "one", "three"}
    one = site.pages["/one"]
    assert isinstance(one, Page)
    site.pages["/one"] = replace(one, hangs=True)
    await settle_second_first(crawls, site)
    assert await published(crawls) == seen
    [newest] = (await generations(crawls))[1:]
    assert (newest.added, newest.changed, newest.removed, newest.unchanged) == (0, 0, 0, 3)


async def settle_second_first(crawls: Crawls, site: Site) -> Crawled:
    """A refresh in which /one answers after everything else is settled."""
    refreshing = asyncio.create_task(crawl(crawls, site))
    two = "SELECT 1 FROM crawl_visited WHERE right(url, 4) = '/two' HAVING count(*) = 2"
    await eventually(lambda: crawls.sql(two))
    site.release()
    return await refreshing


@pytest.mark.parametrize("fate", ["changed", "gone", "moved"])
async def test_a_copy_of_what_is_no_more_is_the_page(crawls: Crawls, site: Site, fate: str) -> None:
    """Also where that turns out only after the copies are settled."""
    site.pages = site_of({"/one": TWIN, "/two": TWIN, "/twa": TWIN})
    await crawl(crawls, site, concurrency=1)
    assert set(await published(crawls)) == {"", "one"}
    fates = {
        "changed": html("Something else"),
        "gone": Page(b"gone", "404 Gone"),
        "moved": moved("/two"),
    }
    site.pages["/one"] = replace(fates[fate], hangs=True)
    refreshed = await settle_second_first(crawls, site)
    outcomes = refreshed.outcomes(site.url)
    assert sorted([outcomes["/two"], outcomes["/twa"]]) == ["duplicate:content", "fetched"]
    [page] = [path for path in ("/two", "/twa") if outcomes[path] == "fetched"]
    [copy] = {"/two", "/twa"} - {page}
    assert refreshed.visited[site.url + copy].duplicate_of == site.url + page
    assert set(await published(crawls)) == {"", page[1:]} | (
        {"one"} if fate == "changed" else set()
    )
    assert TWIN in (await read_page(crawls.database, site.url + page)).markdown


async def test_another_extractor_asks_for_everything(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.pages = site_of(numbered(3))
    await crawl(crawls, site)
    monkeypatch.setattr(crawl_job, "EXTRACTOR_VERSION", 1_000_000)
    monkeypatch.setattr(extraction, "MODULE", "newer_extractor")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    second = await crawl(crawls, site)
    assert not +site.conditional
    assert second.ledger["unchanged"] == 4
    versions = await crawls.sql("SELECT DISTINCT extractor_version FROM documents_active")
    assert versions == [("1000000",)]
    third = await crawl(crawls, site)
    assert set(third.outcomes(site.url).values()) == {"unchanged:not_modified"}


# --- pages that were something else first --------------------------------------------------------


async def test_a_page_whose_canonical_url_is_no_page_is_published(
    crawls: Crawls, site: Site
) -> None:
    canonical = '<link rel="canonical" href="/gone">'
    site.pages = {
        "/": tagged(html("Home", body=menu(["/print"]))),
        "/print": tagged(html("Printed", head=canonical)),
    }
    for _ in range(2):
        crawled = await crawl(crawls, site)
        assert crawled.visited[f"{site.url}/print"].outcome in ("fetched", "unchanged")
        assert set(await published(crawls)) == {"", "print"}
        page = await read_page(crawls.database, f"{site.url}/print")
        assert "Printed is what this page is about" in page.markdown


# --- kills ---------------------------------------------------------------------------------------


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
    assert removed == Removed(generations=1, documents=1)
    assert [each.number for each in await generations(crawls)] == [1]
    assert (await published(crawls), await rows(crawls)) == (seen, stored)


# --- publishing ----------------------------------------------------------------------------------


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
        "not published: what was published when the crawl began has been replaced since"
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
    assert note == "not published: pages fell from 20 to 15"
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
    assert note == "not published: 3 of 20 URLs failed (3 × http_500)"
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


# --- one page under several URLs -----------------------------------------------------------------


async def test_a_duplicate_is_read_as_the_page_that_was_kept(crawls: Crawls, site: Site) -> None:
    home = html("Home, with a link that leads nowhere", ["#", "/index.html", "/old", "/new"])
    site.pages = {"/": home, "/index.html": home, "/old": moved("/new"), "/new": html("New")}
    crawled = await crawl(crawls, site)
    assert crawled.outcomes(site.url)["/index.html"] == "duplicate:content"
    for path, kept in (("/index.html", "/"), ("/old", "/new")):
        page = await read_page(crawls.database, f"{site.url}{path}")
        assert (page.document.url, page.duplicate) == (f"{site.url}{kept}", f"{site.url}{path}")
    # without a scheme, and under the other one
    assert (await read_page(crawls.database, site.url.removeprefix("http://"))).duplicate is None
    with pytest.raises(NotFound):
        await read_page(crawls.database, f"{site.url}/never")
