"""Starts that moved, are forbidden, refused, or not there."""

from __future__ import annotations

import pytest

from crawl.crawling import Crawled, Crawls
from forager.documents.generation import Schedule, SourceDeclaration
from forager.documents.sources import declare_sources, get_source
from forager.jobs.lifecycle import Status
from servers.site import Page, Site, html, moved, text


def failed_at_once(crawled: Crawled) -> str:
    assert crawled.job.status is Status.FAILED
    assert crawled.job.retry_count == 0
    assert crawled.job.error_message is not None
    return crawled.job.error_message


async def test_a_start_that_moved_to_another_host_takes_the_scope_along(
    crawls: Crawls, site: Site, other: Site
) -> None:
    site.pages["/"] = moved("/here")
    site.pages["/here"] = moved(f"{other.url}/docs/")
    other.pages["/docs/"] = html("Docs", ["a", f"{site.url}/old"])
    other.pages["/docs/a"] = html("A", [f"{site.url}/away"])
    site.pages["/old"] = html("Old host")
    site.pages["/away"] = moved("http://elsewhere.example/")
    crawled = await crawls.run(f"{site.url}/")
    assert crawled.pages() == {f"{other.url}/docs/", f"{other.url}/docs/a", f"{site.url}/old"}
    assert crawled.outcomes(site.url)["/"] == "duplicate:redirect"
    assert crawled.outcomes(site.url)["/away"] == "excluded:redirect_out_of_scope"


async def test_a_moved_start_is_known_after_a_restart(
    crawls: Crawls, site: Site, other: Site
) -> None:
    site.pages["/"] = moved(f"{other.url}/")
    other.pages["/"] = Page(b"", "503 Busy", {"Retry-After": "1000"})
    crawled = await crawls.run(f"{site.url}/")
    assert crawled.job.status is Status.PENDING
    other.pages["/"] = html("Start", ["/a"])
    other.pages["/a"] = html("A")
    await crawls.sql("UPDATE crawl_jobs SET run_after = now()")
    await crawls.sql("UPDATE crawl_frontier SET not_before = now()")
    await crawls.sql("UPDATE domains SET blocked_until = NULL")
    crawled = await crawls.go_on(crawled.job.id)
    assert crawled.pages() == {f"{other.url}/", f"{other.url}/a"}


async def test_a_start_outside_its_prefix(crawls: Crawls, site: Site) -> None:
    site.pages["/docs/"] = moved("/en/docs/")
    site.pages["/en/docs/"] = html("Docs", ["a", "/blog"])
    site.pages["/en/docs/a"] = html("A")
    crawled = await crawls.run(f"{site.url}/docs/", scope="prefix")
    assert crawled.pages(site.url) == {"/en/docs/", "/en/docs/a"}


async def test_robots_forbid_the_start(crawls: Crawls, site: Site) -> None:
    site.pages["/robots.txt"] = text("User-agent: *\nDisallow: /")
    site.pages["/"] = html("Start")
    crawled = await crawls.run(f"{site.url}/")
    assert "line 2 of robots.txt" in failed_at_once(crawled)
    assert site.hits["/"] == 0


async def test_private_addresses_need_permission(crawls: Crawls, site: Site) -> None:
    crawled = await crawls.run(f"{site.url}/", allow_private=False)
    assert "--allow-private" in failed_at_once(crawled)
    assert site.log == []


@pytest.mark.parametrize("strategy", ["site", "sitemap", "llms", "single", "list"])
async def test_nothing_is_there(crawls: Crawls, site: Site, strategy: str) -> None:
    crawled = await crawls.run(f"{site.url}/", strategy=strategy)
    message = failed_at_once(crawled)
    assert "404" in message or "failed: http_client" in message


async def test_a_name_that_does_not_exist(crawls: Crawls) -> None:
    crawled = await crawls.run("http://no-such-host.invalid/")
    assert "cannot be resolved" in failed_at_once(crawled)
    assert crawled.ledger["failed_by_reason"] == {"network": 1}


async def test_no_server_listens(crawls: Crawls, site: Site) -> None:
    crawled = await crawls.run("http://127.0.0.1:9/")
    assert "no connection" in failed_at_once(crawled)


async def test_one_bad_start_of_several_fails_alone(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = html("Start")
    crawled = await crawls.run("http://no-such-host.invalid/", f"{site.url}/", "http://127.0.0.1:9")
    assert crawled.pages() == {f"{site.url}/"}
    assert crawled.ledger["failed_by_reason"] == {"network": 2}
    assert crawled.job.status is Status.COMPLETED


async def test_the_error_that_ends_a_run_is_logged_with_its_job(crawls: Crawls, site: Site) -> None:
    site.pages["/robots.txt"] = text("User-agent: *\nDisallow: /")
    crawled = await crawls.run(f"{site.url}/")
    message = failed_at_once(crawled)
    [(job_id, stage, logged)] = await crawls.sql(
        "SELECT job_id, stage, error_message FROM error_logs"
    )
    assert (job_id, stage) == (crawled.job.id, "job")
    assert logged in message


async def test_options_that_are_declared_during_a_crawl_stay(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = html("Start")
    job_id = await crawls.ask(site.url, source="docs")
    declared = {"urls": [site.url], "exclude": ["*/old/*"]}
    docs = SourceDeclaration(
        id="docs", base_url=site.url, kind="crawl", payload=declared, schedule=Schedule()
    )
    await declare_sources(crawls.database, [docs])
    assert (await crawls.go_on(job_id)).job.status is Status.COMPLETED
    assert (await get_source(crawls.database, "docs")).payload == declared
    # a crawl that is requested later replaces them
    await crawls.run(site.url, source="docs", exclude=["*/new/*"])
    assert (await get_source(crawls.database, "docs")).payload["exclude"] == ["*/new/*"]
