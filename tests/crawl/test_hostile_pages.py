"""Pages and servers that do harm: each is a failure of that URL, with its reason, and no more."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from crawl.crawling import Crawls
from forager.crawl import batch
from forager.crawl.extraction import pool as extraction
from forager.db.database import Database, SessionLimits
from forager.documents.search.hit import SearchRequest
from forager.documents.search.service import search
from forager.jobs.lifecycle import Status
from forager.settings import Settings
from servers.certificates import Authority
from servers.hostile import HostileServer, bomb
from servers.site import Page, Site, html, moved

MISBEHAVIOUR = {
    "/endless": "too_large",
    "/claim": "too_large",
    "/bomb/gzip": "too_large",
    "/bomb/br": "too_large",
    "/bomb/zstd": "too_large",
    "/broken/gzip": "parse",
    "/cut/gzip": "network",
    "/drip": "timeout",
    "/silent": "timeout",
    "/slow-head": "timeout",
    "/endless-head": "too_large",
    "/long-header": "too_large",
    "/short": "network",
    "/reset": "network",
    "/reset-body": "network",
    "/close": "network",
    "/garbage": "network",
    "/bad-chunks": "network",
}


async def test_every_misbehaviour_is_a_failure_of_that_url(
    crawls: Crawls, site: Site, small_limits: None
) -> None:
    site.pages["/"] = html("Start", [*MISBEHAVIOUR, "/good"])
    site.pages["/good"] = html("Good")
    for coding in ("gzip", "br", "zstd"):  # made beforehand: packing takes longer than the limits
        packed = Page(bomb(coding), headers={"Content-Encoding": coding})
        site.pages[f"/bomb/{coding}"] = packed
    crawled = await crawls.run(f"{site.url}/", concurrency=32, retries=1)
    failed = {path: row for path, row in crawled.visited.items() if row.outcome == "failed"}
    reasons = {path.removeprefix(site.url): row.reason for path, row in failed.items()}
    assert reasons == MISBEHAVIOUR
    assert crawled.pages(site.url) == {"/", "/good"}
    for row in failed.values():
        assert row.detail
        again = row.reason in ("network", "timeout")
        assert row.attempts == (1 if again else 0), row


async def test_bad_tls_dns_and_ports(crawls: Crawls, site: Site, authority: Authority) -> None:
    site.pages["/"] = html("Start")
    async with HostileServer(authority.server_context("localhost")) as secure:
        urls = [
            f"{site.url}/",
            f"{secure.url}/ok",
            "http://no-such-host.invalid/",
            "http://127.0.0.1:9/",
            f"http://127.0.0.1:{secure.port}/ok",
        ]
        crawled = await crawls.run(*urls, strategy="list", retries=0)
    assert [crawled.visited[url].reason for url in urls] == [
        None, "tls", "network", "network", "network",
    ]  # fmt: skip


@pytest.fixture
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


async def test_retries_as_configured(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = html("Start", ["/status/500"])
    crawled = await crawls.run(f"{site.url}/", retries=3, retry_delay=0.01)
    assert site.hits["/status/500"] == 4
    assert crawled.visited[f"{site.url}/status/500"].attempts == 3
    site.log.clear()
    await crawls.run(f"{site.url}/", retries=0)
    assert site.hits["/status/500"] == 1


SLOW_TO_STORE = """
    CREATE FUNCTION store_slowly() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_sleep(600);
        RETURN NEW;
    END
    $$;
    CREATE TRIGGER slowly BEFORE INSERT ON documents
       FOR EACH ROW WHEN (NEW.title = 'Large') EXECUTE FUNCTION store_slowly();
"""


async def test_pages_that_take_too_long_to_store_fail_alone(
    crawls: Crawls, site: Site, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "MANY_SECTIONS", 5)
    monkeypatch.setattr(batch, "MANY_CHARACTERS", 10_000)
    await crawls.sql(SLOW_TO_STORE)
    body = "".join(f"<h2>Part {n}</h2><p>Text of part {n}.</p>" for n in range(10))
    site.pages["/"] = html("Start", ["/large", "/long", "/small"])
    site.pages["/large"] = html("Large", body=body)
    site.pages["/long"] = html("Large", body=f"<p>{'Some words. ' * 1_000}</p>")
    site.pages["/small"] = html("Small")
    limits = SessionLimits(statement_ms=3_000)
    async with Database(crawls.database.url, limits=limits) as database:
        crawled = await Crawls(database, settings).run(f"{site.url}/")
    assert crawled.job.status is Status.COMPLETED
    assert crawled.pages(site.url) == {"/", "/small"}
    for path in ("/large", "/long"):
        page = crawled.visited[f"{site.url}{path}"]
        assert (page.outcome, page.reason) == ("failed", "validation")
        assert "too large" in str(page.detail)
        assert site.hits[path] == 1


@pytest.mark.parametrize("run", ["a_", "./", "~/", "a@1"])
async def test_long_runs_of_characters_do_not_slow_down_the_database(
    crawls: Crawls, site: Site, settings: Settings, run: str
) -> None:
    """PostgreSQL looks ahead in them from each character: these took minutes."""
    text = f"lighthouse {run * (200_000 // len(run))} keeper".replace("<", "&lt;")
    site.pages["/"] = html("Start", body=f"<h2>Run</h2><pre>{text}</pre>")
    async with Database(crawls.database.url, limits=SessionLimits(statement_ms=15_000)) as database:
        crawled = await Crawls(database, settings).run(f"{site.url}/")
        assert crawled.job.status is Status.COMPLETED
        found = await search(database, SearchRequest(query="lighthouse keeper"))
    assert [hit.url for hit in found.items] == [f"{site.url}/"]


async def test_text_that_postgresql_refuses_is_cleaned(crawls: Crawls, site: Site) -> None:
    odd = b"<title>a\0b\xed\xa0\x80c</title><p>" + b"word \0 " * 50
    site.pages["/"] = html("Start", ["/odd", "/long", "/headers", "/redirect"])
    site.pages["/odd"] = Page(odd, headers={"Content-Type": "text/html; charset=utf-8"})
    site.pages["/long"] = html("T" * 2_000_000)
    strange = {"Content-Type": "text/html; x=\udcff\udc80", "ETag": "\udcff", "X-Odd": "\udcfe"}
    site.pages["/headers"] = replace(html("Headers"), headers=strange)
    site.pages["/redirect"] = moved("http://[\udcff/")
    crawled = await crawls.run(f"{site.url}/")
    assert crawled.pages(site.url) == {"/", "/odd", "/long", "/headers"}
    assert crawled.outcomes(site.url)["/redirect"] == "failed:bad_redirect"
    title = crawled.visited[f"{site.url}/long"].title
    assert title is not None
    assert len(title) < 10_000


async def test_a_large_page(crawls: Crawls, site: Site) -> None:
    links = "".join(f'<a href="/l/{n}">{n}</a>' for n in range(60_000))
    site.pages["/"] = html("Start", ["/large", "/larger"])
    site.pages["/large"] = html("Large", body=links + "x " * 8_000_000)
    site.pages["/larger"] = html("Larger", body="x " * 11_000_000)
    # seconds of work: on a busy machine the usual limit would judge the machine
    crawls.settings = crawls.settings.model_copy(update={"extraction_time_limit": 110.0})
    crawled = await crawls.run(f"{site.url}/", max_depth=1)
    assert crawled.outcomes(site.url)["/large"] == "fetched"
    assert crawled.outcomes(site.url)["/larger"] == "failed:too_large"
    assert crawled.ledger["remarks"] == {"links_cut": 1}
    assert crawled.ledger["excluded_by_reason"] == {"depth": 50_000}


# --- extraction ----------------------------------------------------------------------------------


async def test_pages_that_take_too_long_or_too_much_memory_fail_alone(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"extraction_time_limit": 1.5, "extraction_memory_mb": 300, "extraction_processes": 1}
    crawls.settings = Settings(**(crawls.settings.model_dump() | limits))
    good = [f"/{n}" for n in range(40)]
    bad = ["/slow", "/fat", "/crash"]
    site.pages["/"] = html("Start", [*good[:20], *bad, *good[20:]])
    for n, path in enumerate(good):
        site.pages[path] = html(f"Good {n}")
    for path in bad:
        site.pages[path] = html(path.strip("/"))
    monkeypatch.setattr(extraction, "MODULE", "sabotaged_extractor")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    crawled = await crawls.run(f"{site.url}/", concurrency=16)
    assert crawled.pages(site.url) == {"/", *good}
    details = {path: crawled.visited[site.url + path].detail or "" for path in bad}
    assert {crawled.visited[site.url + path].reason for path in bad} == {"parse"}
    assert "longer than 1.5 s" in details["/slow"]
    assert "more than 300 MB" in details["/fat"]
    assert "code -11" in details["/crash"]


async def test_really_hostile_markup_is_survived(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = html("Start", ["/nested", "/attributes", "/good"])
    site.pages["/nested"] = html("Nested", body="<div>" * 300_000)
    site.pages["/attributes"] = html("Attributes", body="<p " + "a=b " * 300_000 + ">")
    site.pages["/good"] = html("Good")
    crawled = await crawls.run(f"{site.url}/")
    assert {"/", "/good"} <= crawled.pages(site.url)
    assert crawled.pending == {}
    assert set(crawled.ledger["failed_by_reason"]) <= {"parse"}


# --- what the database refuses -------------------------------------------------------------------


async def test_a_page_that_postgresql_refuses_fails_alone(crawls: Crawls, site: Site) -> None:
    await crawls.sql(
        "ALTER TABLE crawl_visited ADD CHECK (title NOT IN ('Poison 3', 'Poison 7')), "
        "ADD CHECK (coalesce(reason, '') <> 'nofollow')"
    )
    site.pages["/"] = html("Start", [f"/{n}" for n in range(30)])
    for n in range(30):
        site.pages[f"/{n}"] = html(f"Poison {n}", [f"/below/{n}"])
        site.pages[f"/below/{n}"] = html(f"Below {n}")
    site.pages["/8"] = html("Eight", ['<a rel=nofollow href="/nofollow">x</a>', "/below/8"])
    crawled = await crawls.run(f"{site.url}/")
    assert crawled.ledger["failed_by_reason"] == {"validation": 3}
    assert {p for p, o in crawled.outcomes(site.url).items() if o.startswith("failed")} == {
        "/3", "/7", "/nofollow",
    }  # fmt: skip
    assert len(crawled.pages()) == 1 + 28 + 30
    assert all(hits == 1 for hits in site.hits.values())


async def test_whatever_statement_refuses_a_row_only_its_url_fails(
    crawls: Crawls, site: Site
) -> None:
    """A link that cannot be put into the frontier, and a page that cannot wait in it."""
    await crawls.sql(
        "ALTER TABLE crawl_frontier ADD CHECK (url NOT LIKE '%%/refused'), ADD CHECK (attempts < 1)"
    )
    good = [f"/{n}" for n in range(10)]
    site.pages["/"] = html("Start", [*good[:5], "/refused", "/status/500", *good[5:]])
    site.pages["/refused"] = html("Refused")
    for path in good:
        site.pages[path] = html(f"Good {path}")
    crawled = await crawls.run(f"{site.url}/")
    assert crawled.job.status == "completed"
    assert crawled.pages(site.url) == {"/", *good}
    outcomes = crawled.outcomes(site.url)
    assert outcomes["/refused"] == outcomes["/status/500"] == "failed:validation"
    assert crawled.ledger["failed_by_reason"] == {"validation": 2}
    assert crawled.pending == {}
