"""What a crawl would fetch first is shown without starting it."""

from __future__ import annotations

import pytest

from crawl.crawling import Crawls
from forager.crawl.options import crawl_options
from forager.crawl.preview import preview_crawl
from forager.errors import GiveUp
from servers.site import Page, Site, html, text


async def test_a_preview_lists_first_urls_with_the_rules_that_refuse_them(
    crawls: Crawls, site: Site
) -> None:
    base = f"{site.url}/"
    sitemap = f"<urlset><url><loc>{base}listed</loc></url></urlset>"
    site.pages |= {
        "/robots.txt": text(
            f"User-agent: *\nDisallow: /private/\nCrawl-delay: 0.01\nSitemap: {base}sitemap.xml"
        ),
        "/sitemap.xml": text(sitemap, "text/xml"),
        "/": html("Start", ["/a", "/private/b", "/old/c", "https://elsewhere.example/"]),
    }
    options = crawl_options({"urls": [site.url], "allow_private": True, "exclude": ["/old/*"]})
    found = await preview_crawl(crawls.database, crawls.settings, options)
    assert (found.crawl_delay, found.problems) == (0.01, [])
    decisions = {url.url.removeprefix(base): (url.via, url.refusal) for url in found.urls}
    assert list(decisions) == ["", "listed", "a", "private/b", "old/c"]
    assert decisions["listed"] == ("sitemap", None)
    assert decisions["a"] == ("link", None)
    assert decisions["private/b"] == ("link", "line 2 of robots.txt: Disallow: /private/")
    assert "/old/*" in (decisions["old/c"][1] or "")
    assert await crawls.sql("SELECT FROM crawl_jobs") == []


async def test_a_preview_says_what_it_could_not_read(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = Page(b"broken", "500 Internal Server Error")
    options = crawl_options({"urls": [site.url], "allow_private": True})
    found = await preview_crawl(crawls.database, crawls.settings, options)
    assert [url.url for url in found.urls] == [f"{site.url}/"]
    assert "500" in found.problems[0]


async def test_a_preview_refuses_private_addresses_as_the_crawl_does(
    crawls: Crawls, site: Site
) -> None:
    with pytest.raises(GiveUp, match="may not be crawled") as refused:
        await preview_crawl(crawls.database, crawls.settings, crawl_options({"urls": [site.url]}))
    assert "--allow-private" in str(refused.value.hint)
