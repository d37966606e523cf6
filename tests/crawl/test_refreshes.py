"""A refresh finds what changed, what did not (304), and which of two copies is the page."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from crawl.crawling import Crawled, Crawls
from crawl.refreshing import (
    SOURCE,
    TWIN,
    crawl,
    generations,
    menu,
    numbered,
    paths,
    published,
    rows,
    site_of,
    source,
)
from forager.crawl import job as crawl_job
from forager.crawl.batch import Batch, Committer
from forager.crawl.extraction import pool as extraction
from forager.documents.diff import diff_generations
from forager.documents.reader import read_page
from forager.errors import NotFound
from servers.site import Answer, Page, Site, html, moved, tagged
from support.waiting import eventually


async def test_a_long_etag_is_kept(crawls: Crawls, site: Site) -> None:
    tag = f'"{"x" * 900}"'
    site.pages = {"/": replace(html("Home"), headers={"ETag": tag})}
    await crawl(crawls, site)
    assert (await crawl(crawls, site)).outcomes(site.url) == {"/": "unchanged:not_modified"}


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
    assert paths(diff, site) == {"added": ["/new"], "removed": ["/gone"], "changed": ["/edited"]}
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


@pytest.mark.usefixtures("small_limits")
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


async def test_a_copy_that_is_read_before_the_commit_of_its_url_is_a_copy(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.pages = site_of({"/one": TWIN, "/two": TWIN})
    site.pages = {path: _untagged(page) for path, page in site.pages.items()}
    await crawl(crawls, site, concurrency=1)
    seen = await published(crawls)
    one, write = site.pages["/one"], Committer._write
    assert isinstance(one, Page)
    site.pages["/one"] = replace(one, hangs=True)

    async def write_late(committer: Committer, batch: Batch) -> None:
        if any(entry.url.endswith("/two") for entry in batch.discovered.entries):
            await eventually(lambda: site.hits["/two"] == 2)
            await asyncio.sleep(0.2)  # for the page to be read
        await write(committer, batch)

    monkeypatch.setattr(Committer, "_write", write_late)
    refreshed = await settle_second_first(crawls, site)
    assert refreshed.outcomes(site.url)["/two"] == "duplicate:content"
    assert await published(crawls) == seen


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
