"""What a crawl is limited to: pages, depth, time, bytes, patterns, scope, strategy."""

from __future__ import annotations

import pytest

from crawl.crawling import Crawls
from servers.site import Page, Site, html, moved, text


@pytest.fixture
def chain(site: Site) -> Site:
    """Start -> ten lists -> a hundred leaves, and the same leaves by longer ways."""
    site.pages["/"] = html("Start", [f"/list/{n}" for n in range(10)])
    for n in range(10):
        site.pages[f"/list/{n}"] = html(f"List {n}", [f"/leaf/{n}{m}" for m in range(10)])
        for m in range(10):
            links = [f"/leaf/{n}{m + 1}", f"/end/{n}{m}"] if m < 9 else [f"/end/{n}{m}"]
            site.pages[f"/leaf/{n}{m}"] = html(f"Leaf {n} {m}", links)
            site.pages[f"/end/{n}{m}"] = html(f"End {n} {m}")
    return site


@pytest.mark.parametrize("most", [1, 7, 60, 210])
async def test_max_pages_is_exact(crawls: Crawls, chain: Site, most: int) -> None:
    chain.pages["/leaf/00"] = lambda hit: html("Leaf") if hit > 1 else Page(b"", "500 Oops")
    crawled = await crawls.run(f"{chain.url}/", max_pages=most, concurrency=16)
    assert crawled.ledger["fetched"] == len(crawled.pages()) == most
    assert crawled.job.stop_reason == "max pages"
    assert crawled.ledger["pending"] == len(crawled.pending)
    assert crawled.ledger["discovered"] == most + len(crawled.pending)


async def test_a_crawl_that_its_quota_ends_says_so(crawls: Crawls, chain: Site) -> None:
    crawled = await crawls.run(f"{chain.url}/", granted_pages=2, max_pages=7)
    assert (crawled.ledger["fetched"], crawled.job.stop_reason) == (2, "page quota")


async def test_a_limit_that_is_not_reached_changes_nothing(crawls: Crawls, chain: Site) -> None:
    crawled = await crawls.run(
        f"{chain.url}/", max_pages=10_000, max_time=10_000, max_bytes=2**40, max_depth=100
    )
    assert crawled.ledger["fetched"] == 211
    assert (crawled.job.stop_reason, crawled.pending) == ("finished", {})


@pytest.mark.parametrize(("deepest", "pages", "refused"), [(0, 1, 10), (1, 11, 100), (2, 111, 100)])
async def test_max_depth(
    crawls: Crawls, chain: Site, deepest: int, pages: int, refused: int
) -> None:
    """Leaves are also found through other leaves, one level too late: the shortest way counts."""
    crawled = await crawls.run(f"{chain.url}/", max_depth=deepest, concurrency=16)
    assert crawled.ledger["fetched"] == pages
    assert crawled.ledger["excluded_by_reason"] == {"depth": refused}
    assert {row.depth for row in crawled.visited.values() if row.outcome == "fetched"} == set(
        range(deepest + 1)
    )
    assert crawled.job.stop_reason == "finished"


async def test_max_bytes(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = html("Start", [f"/{n}" for n in range(100)])
    for n in range(100):
        site.pages[f"/{n}"] = html(f"Big {n}", body="x" * 100_000)
    crawled = await crawls.run(f"{site.url}/", max_bytes=2_000_000, concurrency=4)
    assert crawled.job.stop_reason == "max bytes"
    assert 2_000_000 <= crawled.report["bytes"] < 8_000_000
    assert crawled.ledger["pending"] == len(crawled.pending) > 0


async def test_max_time_ends_a_crawl_whose_responses_hang(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = html("Start", ["/hangs"])
    site.pages["/hangs"] = Page(hangs=True)
    # long enough to start an extraction process on a busy machine
    crawled = await crawls.run(f"{site.url}/", max_time=4.0)
    assert crawled.job.stop_reason == "max time"
    assert crawled.pages(site.url) == {"/"}
    assert set(crawled.pending) == {f"{site.url}/hangs"}


async def test_include_and_exclude(crawls: Crawls, chain: Site) -> None:
    crawled = await crawls.run(
        f"{chain.url}/", include=["/list/*", "/leaf/1*"], exclude=["re:/list/[5-9]$"]
    )
    lists = {f"/list/{n}" for n in range(5)}
    assert crawled.pages(chain.url) == {"/", *lists, *(f"/leaf/1{n}" for n in range(10))}
    assert crawled.ledger["excluded_by_reason"] == {"include": 40 + 10, "exclude": 5}


async def test_scopes(crawls: Crawls, site: Site, other: Site) -> None:
    links = ["/docs/a", "/docs/deep/b", "/blog", f"{other.url}/x", "http://elsewhere.example/"]
    site.pages["/docs/"] = html("Docs", links)
    for path in ("/docs/a", "/docs/deep/b", "/blog"):
        site.pages[path] = html(path)
    other.pages["/x"] = html("Other port")
    robots = text("")
    site.pages["/robots.txt"] = other.pages["/robots.txt"] = robots
    prefix = await crawls.run(f"{site.url}/docs/", scope="prefix")
    assert prefix.pages(site.url) == {"/docs/", "/docs/a", "/docs/deep/b"}
    assert prefix.ledger["out_of_scope_links"] == {"other_host": 2, "other_prefix": 1}
    host = await crawls.run(f"{site.url}/docs/", scope="host")
    assert host.pages(site.url) == {"/docs/", "/docs/a", "/docs/deep/b", "/blog"}
    assert host.ledger["out_of_scope_links"] == {"other_host": 2}
    domain = await crawls.run(f"{site.url}/docs/", scope="domain")
    assert domain.pages() == {*host.pages(), f"{other.url}/x"}
    assert domain.ledger["out_of_scope_links"] == {"other_domain": 1}


async def test_strategies(crawls: Crawls, chain: Site) -> None:
    urls = [f"{chain.url}/leaf/00", f"{chain.url}/end/11", f"{chain.url}/leaf/00?utm_source=x"]
    listed = await crawls.run(*urls, strategy="list")
    assert listed.pages(chain.url) == {"/leaf/00", "/end/11"}
    single = await crawls.run(urls[0], strategy="single")
    assert single.pages(chain.url) == {"/leaf/00"}
    chain.pages["/sitemap.xml"] = text(
        f"<urlset><url><loc>{chain.url}/end/00</loc></url></urlset>", "application/xml"
    )
    mapped = await crawls.run(f"{chain.url}/", strategy="sitemap")
    assert mapped.pages(chain.url) == {"/end/00"}
    chain.pages["/llms.txt"] = text("# Docs\n\n- [Leaf](/leaf/05)\n- [End](/end/05): the end\n")
    llms = await crawls.run(f"{chain.url}/", strategy="llms")
    assert llms.pages(chain.url) == {"/llms.txt", "/leaf/05", "/end/05"}
    assert llms.outcomes(chain.url)["/llms-full.txt"] == "failed:http_404"
    assert {c.job.stop_reason for c in (listed, single, mapped, llms)} == {"finished"}


async def test_pages_asked_for_by_name_are_all_fetched(crawls: Crawls, site: Site) -> None:
    """Also when they say the same, name another one, or have moved to another host."""
    site.pages = {f"/{n}": html("Same") for n in range(3)}
    site.pages["/3"] = html("Three", head='<link rel=canonical href="/1">')
    site.pages["/4"] = moved("/5")
    site.pages["/5"] = html("Five")
    crawled = await crawls.run(*(f"{site.url}/{n}" for n in range(5)), strategy="list")
    assert crawled.pages(site.url) == {"/0", "/1", "/2", "/3", "/5"}
