"""Pages that are nearly the same: kept, and reported with their cluster."""

from __future__ import annotations

import random

from crawl.crawling import Crawls
from forager.archive.options import archive_options
from forager.crawl.explain.explanation import explain
from forager.documents.checks import check_near_duplicates, read_source
from forager.settings import Settings
from servers.site import Page, Site, html

WORDS = [f"{letter}word{number}" for number in range(300) for letter in "abcdeprst"]


def page(seed: int, mark: str) -> Page:
    words = random.Random(seed).choices(WORDS, k=800)
    words[400] = mark
    body = " ".join(words)
    document = f"<title>{mark}</title><main><h1>Page {seed}</h1><p>{body}</p></main>"
    return Page(document.encode(), headers={"Content-Type": "text/html"})


async def test_near_duplicates_are_kept_and_reported(
    crawls: Crawls, site: Site, settings: Settings
) -> None:
    paths = ["/a", "/b", "/c", "/other"]
    site.pages = {
        "/": html("Home", paths),
        **{path: page(1, path[1:]) for path in paths[:3]},
        "/other": page(2, "other"),
    }
    crawled = await crawls.run(site.url, source="docs")
    assert crawled.outcomes(site.url) == dict.fromkeys(["/", *paths], "fetched")
    assert crawled.ledger["remarks"]["near_duplicate"] == 3
    found = await explain(crawls.database, crawls.queue, f"{site.url}/b")
    assert found.near_duplicates is not None
    assert found.near_duplicates.pages == 2
    assert set(found.near_duplicates.urls) == {f"{site.url}/a", f"{site.url}/c"}
    other = await explain(crawls.database, crawls.queue, f"{site.url}/other")
    assert other.near_duplicates is None
    pages = await read_source(crawls.database, archive_options(settings).open(), "docs")
    check = await check_near_duplicates(pages)
    assert (check.message, check.count) == ("pages with nearly the same text, in 1 cluster", 3)
    # a page that changed leaves its cluster with the next generation
    site.pages["/c"] = page(3, "c")
    refreshed = await crawls.run(site.url, source="docs")
    assert refreshed.ledger["remarks"]["near_duplicate"] == 2
