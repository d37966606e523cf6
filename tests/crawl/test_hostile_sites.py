"""Whole sites that do harm by what they say: robots.txt, sitemaps, headers, pages without end."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_hex

import pytest

from crawl.crawling import Crawls
from forager.crawl.batch import Batch, Committer
from forager.crawl.frontier.entry import FrontierEntry, Via
from forager.crawl.frontier.scope import CrawlScope
from forager.crawl.options import crawl_options
from forager.crawl.settlement import Outcome, Postponed, Settlement
from forager.crawl.visit.outcomes import OutcomeRules
from forager.errors import ErrorKind, Retry, SlowDown
from forager.extract.keys import url_key
from forager.extract.urls import NormalizedUrl
from forager.jobs.lifecycle import Status
from servers.hostile import _Answer
from servers.site import Answer, Page, Site, html, moved, text


async def test_sitemap_lines_that_are_no_urls_are_harmless(crawls: Crawls, site: Site) -> None:
    lines = ["http://[bad", "/a\0b.xml", "file:///etc/passwd", "\ud800", "/map.xml"]
    robots = "\n".join(f"Sitemap: {line}" for line in lines).encode("utf-8", "surrogatepass")
    site.pages["/robots.txt"] = Page(robots, headers={"Content-Type": "text/plain"})
    site.pages["/map.xml"] = _sitemap(f"{site.url}/listed")
    site.pages["/listed"] = html("Listed")
    site.pages["/"] = html("Start")
    crawled = await crawls.run(f"{site.url}/")
    assert crawled.job.stop_reason == "finished", crawled.job.error_message
    assert crawled.pages(site.url) == {"/", "/listed"}


async def test_sitemaps_without_end_are_not_kept_without_end(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.crawl.frontier.seeding.MAX_SITEMAPS", 5)
    kept: list[int] = []
    write = Committer.write

    async def write_and_look(self: Committer, batch: Batch) -> None:
        kept.append(len(self.state.sitemaps_waiting))
        await write(self, batch)

    monkeypatch.setattr(Committer, "write", write_and_look)
    lines = "\n".join(f"Sitemap: {site.url}/{n}.xml" for n in range(50))
    site.pages["/robots.txt"] = text(lines)
    for n in range(50):
        further = (f"<sitemap><loc>/{n}/{m}.xml</loc></sitemap>" for m in range(50))
        site.pages[f"/{n}.xml"] = text(f"<sitemapindex>{''.join(further)}</sitemapindex>")
    site.pages["/"] = html("Start")
    crawled = await crawls.run(f"{site.url}/")
    assert crawled.pages(site.url) == {"/"}
    assert max(kept) <= 5
    assert sum(site.hits[f"/{n}.xml"] for n in range(50)) == 5


async def test_a_sitemap_that_fails_once_is_asked_for_again(crawls: Crawls, site: Site) -> None:
    busy = Page(b"", "503 Busy", {"Retry-After": "1"})
    site.pages["/robots.txt"] = text(f"Sitemap: {site.url}/map.xml")
    listed = _sitemap(f"{site.url}/listed")
    site.pages["/map.xml"] = lambda hit: busy if hit == 1 else listed
    site.pages["/listed"] = html("Listed")
    site.pages["/"] = html("Start")
    crawled = await crawls.run(f"{site.url}/", strategy="sitemap")
    assert crawled.pages(site.url) == {"/listed"}, crawled.job.error_message
    first, second = (request.at for request in site.log if request.target == "/map.xml")
    assert second - first > 0.9  # the host was left alone as long as it asked for


def _sitemap(*urls: str) -> Page:
    return text(f"<urlset>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>")


async def test_a_wait_of_thousands_of_years_can_still_be_read(crawls: Crawls, site: Site) -> None:
    dates = {
        "Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT",
        "Date": "Mon, 01 Jan 1900 00:00:00 GMT",
    }
    site.pages["/"] = Page(b"", "503 Busy", dates)
    crawled = await crawls.run(f"{site.url}/")
    assert crawled.job.status is Status.PENDING
    assert crawled.job.run_after.year < 9999


# --- credentials ---------------------------------------------------------------------------------


class Listening(Site):
    """Keeps the Authorization header of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[tuple[str, str]] = []

    async def _serve_page(self, target: str, page: Page, answer: _Answer) -> None:
        self.received.append((answer.header("Authorization"), answer.header("Accept-Language")))
        await super()._serve_page(target, page, answer)


async def test_headers_of_a_crawl_are_for_the_hosts_it_was_asked_for(crawls: Crawls) -> None:
    site, other = Listening(), Listening()
    with site.served(), other.served():
        site.pages["/robots.txt"] = text(f"Sitemap: {other.url}/map.xml")
        site.pages["/"] = moved(f"{other.url}/")
        other.pages["/map.xml"] = _sitemap(f"{site.url}/listed")
        other.pages["/robots.txt"] = text("")
        other.pages["/"] = html("Elsewhere")
        site.pages["/listed"] = html("Listed")
        headers = {"Authorization": "Bearer secret", "Accept-Language": "de"}
        crawled = await crawls.run(f"{site.url}/", headers=headers)
        assert crawled.pages() == {f"{other.url}/", f"{site.url}/listed"}
    assert set(site.received) == {("Bearer secret", "de")}
    assert set(other.received) == {("", "de")}


# --- retries and slow-downs ----------------------------------------------------------------------


def _entry(attempts: int) -> FrontierEntry:
    url = NormalizedUrl("https://a.example/x")
    return FrontierEntry(1, 1, url_key(url), url, Via.LINK, attempts=attempts)


def test_a_host_that_sends_retry_after_does_not_use_up_the_retries_of_a_url() -> None:
    options = crawl_options({"urls": ["https://a.example/"], "retries": 3})
    outcomes = OutcomeRules(options, CrawlScope(options.seeds))
    limited = SlowDown("429", kind=ErrorKind.HTTP_CLIENT)
    asked = SlowDown("503", retry_after=1.0)
    for error in (limited, asked):
        assert isinstance(outcomes.failure(_entry(8), error), Postponed)
        assert isinstance(outcomes.failure(_entry(1000), error), Settlement)
    broken = Retry("500", kind=ErrorKind.HTTP_SERVER)
    for other in (SlowDown("503"), broken):
        assert isinstance(outcomes.failure(_entry(2), other), Postponed)
        assert isinstance(outcomes.failure(_entry(3), other), Settlement)


async def test_a_storm_of_429_fails_nothing(crawls: Crawls, site: Site) -> None:
    busy = Page(b"", "429 Busy", {"Retry-After": "1"})
    site.pages["/"] = html("Start", [f"/{n}" for n in range(5)])
    for n in range(5):
        page = html(f"Page {n}")
        site.pages[f"/{n}"] = lambda hit, page=page: busy if hit < 4 else page  # type: ignore[misc]
    crawled = await crawls.run(f"{site.url}/", retries=1, retry_delay=0.0)
    assert len(crawled.pages()) == 6


# --- traps and size ------------------------------------------------------------------------------


async def test_pages_that_are_large_are_committed_by_the_few(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.crawl.engine.BATCH_BYTES", 100_000)
    sizes: list[Sequence[int]] = []
    write = Committer.write

    async def write_and_look(self: Committer, batch: Batch) -> None:
        sizes.append([s.size or 0 for s in batch.settled if s.outcome is Outcome.FETCHED])
        await write(self, batch)

    monkeypatch.setattr(Committer, "write", write_and_look)
    site.pages["/"] = html("Start", [f"/{n}" for n in range(30)])
    for n in range(30):
        site.pages[f"/{n}"] = html(f"Page {n}", body=f"<p>{n} and more of it. </p>" * 2000)
    crawled = await crawls.run(f"{site.url}/", concurrency=30)
    assert len(crawled.pages()) == 31
    # at most one page more than fits
    assert max(sum(batch[:-1]) for batch in sizes if batch) < 100_000


async def test_crawler_traps_end(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.crawl.frontier.discovery.CALENDAR_LIMIT", 20)
    monkeypatch.setattr("forager.crawl.frontier.discovery.ONE_PARAMETER_LIMIT", 20)
    monkeypatch.setattr("forager.crawl.frontier.discovery.NUMBERS_LIMIT", 20)
    site.pages = _Maze()
    crawled = await crawls.run(f"{site.url}/", max_time=60.0)
    assert crawled.job.stop_reason == "finished", crawled.ledger
    assert len(crawled.pages()) < 200
    reasons = crawled.ledger["excluded_by_reason"]
    assert reasons["trap:query_explosion"]
    assert reasons["trap:repeating_path"]
    assert crawled.ledger["remarks"]["session_ids_removed"]


class _Maze(dict[str, Answer]):
    """A page for every target; each has new links."""

    def get(self, target: str, default: object = None) -> Answer:
        if target == "/robots.txt":
            return text("")
        path, _, query = target.partition("?")
        number = int(query.rpartition("=")[2] or 0) if query else 0
        months = [int(part) for part in path.split("/") if part.isdigit()] or [2020, 1]
        year, month = (months[0], months[1] - 1) if months[1] > 1 else (months[0] - 1, 12)
        links = [
            f"/calendar/{year}/{month:02}",
            f"/list?page={number + 1}",
            f"/shop;jsessionid={token_hex(16)}",
            f"/basket?PHPSESSID={token_hex(16)}",
            "again/",
        ]
        return html(f"Page {target}", links)
