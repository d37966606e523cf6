"""A site whose truth is known: every URL gets exactly the outcome and the reason it should."""

from __future__ import annotations

import gzip
from functools import partial

import pytest

from crawl.crawling import Crawls
from forager.crawl import job
from forager.crawl.frontier import discovery
from forager.crawl.frontier.window import CAPACITY, Window
from servers.site import Page, Site, html, moved, text

TREE = 200
FETCHED = "fetched"


class Truth:
    """Pages, and what must become of them; all are linked from the start."""

    def __init__(self) -> None:
        self.pages: dict[str, object] = {}
        self.expected: dict[str, str] = {}
        self.start: list[str] = []

    def add(self, path: str, page: object, expected: str, *, link: str | None = None) -> None:
        self.pages[path] = page
        self.expected[path] = expected
        self.start.append(link or path)

    def hidden(self, path: str, page: object, expected: str = FETCHED) -> None:
        """Not linked from the start."""
        self.pages[path] = page
        self.expected[path] = expected

    def refused(self, path: str, expected: str, *, link: str | None = None) -> None:
        """Never asked for."""
        self.expected[path] = expected
        self.start.append(link or path)


def truth(site: Site, other: Site) -> Truth:
    all_of_it = Truth()
    _tree(all_of_it)
    _redirects(all_of_it, other)
    _duplicates(all_of_it, other)
    _directives(all_of_it)
    _failures(all_of_it)
    _addresses(all_of_it, other)
    _traps(all_of_it)
    _sitemaps(all_of_it, site)
    all_of_it.hidden("/", html("Start", all_of_it.start))
    return all_of_it


def _tree(t: Truth) -> None:
    """A binary tree with ways back up and across, written in every spelling."""
    for n in range(TREE):
        links = [f"/p/{n // 2}", "../p/0", "./", "#top", f"{(n * 7) % TREE}#part"]
        links += [str(child) for child in (2 * n + 1, 2 * n + 2) if child < TREE]
        t.hidden(f"/p/{n}", html(f"Tree {n}", links))
    t.hidden("/p/", html("Tree"))
    t.start.append("/p/0")


def _redirects(t: Truth, other: Site) -> None:
    t.add("/r/one", moved("/p/3"), "duplicate:redirect")
    t.add("/r/1", moved("2"), "duplicate:redirect")
    t.hidden("/r/2", moved("/p/4", "308 Permanent"), "duplicate:redirect")
    t.add("/r/self", moved("/r/self"), "failed:redirect_loop")
    t.add("/r/away", moved(f"{other.url}/"), "excluded:redirect_out_of_scope")
    t.add("/r/mail", moved("mailto:someone@example.com"), "failed:bad_redirect")
    t.add("/r/into-loop", moved("/loop/1"), "failed:redirect_loop")
    t.add("/r/a", moved("/r/b"), "failed:redirect_loop")  # both are linked: neither ends
    t.add("/r/b", moved("/r/a"), "failed:redirect_loop")
    t.start.append("/loop/1")
    t.start.append("/loop/2")
    t.expected |= {"/loop/1": "failed:redirect_loop", "/loop/2": "failed:redirect_loop"}
    t.add("/r/first", moved("/r/second"), "failed:redirect_loop")  # only the first is linked
    t.hidden("/r/second", moved("/r/first"), "failed:redirect_loop")
    t.start.append("/spiral/0")
    t.expected |= {f"/spiral/{n}": "duplicate:redirect" for n in range(10)}
    t.expected["/spiral/10"] = "failed:too_many_redirects"
    refresh = '<meta http-equiv="refresh" content="0; url=/p/9">'
    t.add("/refresh", html("Refresh", head=refresh), "duplicate:redirect")
    reload = '<meta http-equiv="refresh" content="5">'
    t.add("/reload", html("Reload", head=reload), FETCHED)
    slow = '<meta http-equiv="refresh" content="60; url=/p/9">'
    t.add("/slow-refresh", html("Slow refresh", head=slow), FETCHED)


def _canonical(url: str) -> str:
    return f'<link rel="canonical" href="{url}">'


def _duplicates(t: Truth, other: Site) -> None:
    t.add("/same/1", html("Same", ["/same/2"]), FETCHED)
    t.hidden("/same/2", html("Same", ["/same/2"]), "duplicate:content")
    t.add("/c/other", html("Named", head=_canonical("/p/7")), "duplicate:canonical")
    t.add("/c/self", html("Self", head=_canonical("/c/self#x")), FETCHED)
    t.add("/c/away", html("Away", head=_canonical(f"{other.url}/x")), FETCHED)
    t.add("/c/hidden", html("To hidden", head=_canonical("/c/unseen")), "duplicate:canonical")
    t.hidden("/c/unseen", html("Seen only as a canonical URL"))
    t.add("/c/lost", html("To nothing", head=_canonical("/c/gone")), FETCHED)
    t.expected["/c/gone"] = "failed:http_404"
    t.add("/c/refused", html("To robots", head=_canonical("/private/c")), FETCHED)
    t.expected["/private/c"] = "excluded:robots"
    header = html("Header", Link='</p/8>; rel="canonical"')
    t.add("/c/header", header, "duplicate:canonical")


def _directives(t: Truth) -> None:
    t.refused("/nf/1", "excluded:nofollow", link='<a rel="nofollow" href="/nf/1">x</a>')
    t.add("/nf/2", html("Followed elsewhere"), FETCHED, link='<a rel=nofollow href="/nf/2">x</a>')
    nofollow = '<meta name="robots" content="nofollow">'
    t.add("/nf/page", html("Nofollow", ["/nf/3"], head=nofollow), FETCHED)
    t.expected["/nf/3"] = "excluded:nofollow"
    t.add("/nf/plain", html("Plain", ["/nf/2"]), FETCHED)
    noindex = '<meta name="robots" content="noindex">'
    t.add("/ni/page", html("Noindex", ["/ni/next"], head=noindex), "excluded:noindex")
    t.hidden("/ni/next", html("After noindex"))
    t.add("/ni/header", html("Header", X_Robots_Tag="noindex"), "excluded:noindex")
    t.refused("/private/1", "excluded:robots")


def _failures(t: Truth) -> None:
    for status in ("404", "410", "403", "500"):
        t.refused(f"/status/{status}", f"failed:http_{status}")
    t.add("/soft", html("Page not found"), "failed:soft_404")
    t.add("/flaky", lambda hit: html("Flaky") if hit > 1 else Page(b"", "500 Oops"), FETCHED)
    shell = Page(b"<title>App</title><div id=root></div><script src=/a.js></script>")
    t.add("/app", shell, FETCHED)
    t.add("/empty", Page(b"", "204 Nothing"), "failed:http_204")


def _addresses(t: Truth, other: Site) -> None:
    based = html("Based", ["leaf", "../up?utm_source=x&b=2&a=1"], head='<base href="/base/in/">')
    t.add("/based", based, FETCHED)
    t.hidden("/base/in/leaf", html("Leaf"))
    t.hidden("/base/up?b=2&a=1", html("Up"))
    t.add("/Case", html("Upper"), FETCHED)
    t.add("/case", html("Lower"), FETCHED)
    t.add("/dots", html("Dots"), FETCHED, link="/x/./../dots")
    t.refused("/image.png", "excluded:type")
    pdf = Page(b"%PDF-1.7", headers={"Content-Type": "application/pdf"})
    t.add("/paper", pdf, "excluded:no_text")
    film = Page(b"\x00\x00\x00\x18ftypmp42", headers={"Content-Type": "video/mp4"})
    t.add("/film", film, "excluded:type")
    t.start += [f"{other.url}/elsewhere", "mailto:a@example.com", "javascript:void(0)", "http://["]


def _traps(t: Truth) -> None:
    t.add("/s/a", html("Session", ["/s/b;jsessionid=99"]), FETCHED, link="/s/a;jsessionid=1")
    t.start += ["/s/a;jsessionid=2", "/s/c?PHPSESSID=abc&x=1"]
    t.hidden("/s/b", html("Session b"))
    t.hidden("/s/c?x=1", html("Session c"))
    # a server that insists: without the id it only redirects
    t.add("/s/d", moved("/s/d;jsessionid=7"), "duplicate:redirect")
    t.hidden("/s/d;jsessionid=7", html("Session d"))
    t.refused("/calendar/2099/01", "excluded:trap:calendar")
    t.refused("/w/x/y/x/y/x/y", "excluded:trap:repeating_path")
    t.refused("/d" * 10 + "/e" * 11, "excluded:trap:deep_path")
    for n in range(10):
        link = f"/q?a={n}&b=1&c=1"
        if n < 5:
            t.add(link, html(f"Query {n}"), FETCHED)
        else:
            t.refused(link, "excluded:trap:query_explosion")


def _sitemaps(t: Truth, site: Site) -> None:
    urls = "".join(f"<url><loc>{site.url}/sm/{n}</loc></url>" for n in range(5))
    inner = f"<urlset>{urls}<url><loc>http://elsewhere.example/</loc></url></urlset>"
    index = "".join(
        f"<sitemap><loc>{site.url}/{name}</loc></sitemap>"
        for name in ("inner.xml.gz", "plain.txt", "missing.xml", "sitemap.xml")
    )
    robots = f"User-agent: *\nDisallow: /private/\nSitemap: {site.url}/sitemap.xml\n"
    t.pages |= {
        "/robots.txt": text(robots),
        "/sitemap.xml": text(f"<sitemapindex>{index}</sitemapindex>", "application/xml"),
        "/inner.xml.gz": Page(gzip.compress(inner.encode())),
        "/plain.txt": text(f"{site.url}/sm/5\n{site.url}/sm/6;jsessionid=1\n"),
    }
    for n in range(7):
        t.hidden(f"/sm/{n}", html(f"Listed {n}"))


@pytest.fixture
def few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MANY_PARAMETERS_LIMIT", 5)


@pytest.mark.parametrize("capacity", [CAPACITY, 7])
async def test_every_url_of_a_site_gets_its_outcome_and_reason(
    crawls: Crawls,
    site: Site,
    other: Site,
    few_queries: None,
    capacity: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job, "Window", partial(Window, capacity=capacity))
    known = truth(site, other)
    site.pages = known.pages  # type: ignore[assignment]
    crawled = await crawls.run(f"{site.url}/")
    assert crawled.outcomes(site.url) == known.expected
    assert crawled.job.stop_reason == "finished"
    assert crawled.pending == {}
    assert crawled.ledger["remarks"]["needs_javascript"] == 1
    assert crawled.ledger["remarks"]["session_ids_removed"] == 2
    assert crawled.ledger["remarks"]["canonical_is_no_page"] == 2
    assert crawled.ledger["out_of_scope_links"] == {"other_host": 1, "sitemap": 1}
    assert crawled.ledger["sitemaps"] == {"read": 3, "failed: http_client": 1}
    assert other.log == []
    repeated = {target for target, hits in site.hits.items() if hits > 1}
    assert repeated == {"/flaky", "/status/500"}


async def test_of_two_pages_that_name_each_other_one_is_the_page(
    crawls: Crawls, site: Site
) -> None:
    for n in range(10):
        site.pages[f"/{n}a"] = html(f"A {n}", head=_canonical(f"/{n}b"))
        site.pages[f"/{n}b"] = html(f"B {n}", head=_canonical(f"/{n}a"))
    site.pages["/"] = html("Start", [f"/{n}{x}" for n in range(10) for x in "ab"])
    crawled = await crawls.run(f"{site.url}/")
    assert crawled.ledger["fetched"] == 11
    assert crawled.ledger["duplicate_by_reason"] == {"canonical": 10}
    for n in range(10):
        assert len({f"/{n}a", f"/{n}b"} & crawled.pages(site.url)) == 1


async def test_a_redirect_far_behind_the_front_is_followed(crawls: Crawls, site: Site) -> None:
    """Where a page redirects to is as deep as the page: earlier than what is read already."""
    chain = {f"/{n}": html(f"Chain {n}", [f"/{n + 1}"]) for n in range(1, 40)}
    site.pages = {**chain, "/": html("Start", ["/1", "/slow"]), "/40": html("End")}
    site.pages["/slow"] = lambda hit: moved("/late") if hit > 1 else Page(b"", "500 Oops")
    site.pages["/late"] = html("Late", ["/later"])
    site.pages["/later"] = html("Later")
    crawled = await crawls.run(f"{site.url}/")
    assert {"/late", "/later", "/40"} <= crawled.pages(site.url)
    assert crawled.pending == {}
