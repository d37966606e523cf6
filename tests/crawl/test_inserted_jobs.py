"""A row inserted into `crawl_jobs` by plain SQL is a job like any other."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from crawl.crawling import Crawls
from forager.crawl.options import check_payload
from forager.errors import InvalidInput
from forager.jobs.lifecycle import Status
from servers.site import Site, html


@pytest.fixture
def site(site: Site) -> Site:
    site.pages["/"] = html("Start", ["/a"])
    site.pages["/a"] = html("A", ["/b"])
    site.pages["/b"] = html("B")
    return site


async def insert(crawls: Crawls, **payload: Any) -> UUID:
    [(job_id,)] = await crawls.sql(
        "INSERT INTO crawl_jobs (payload) VALUES (%s) RETURNING id", Jsonb(payload)
    )
    return UUID(str(job_id))


async def test_a_payload_is_enough(crawls: Crawls, site: Site) -> None:
    job_id = await insert(crawls, url=f"{site.url}/", depth=1, allow_private=True)
    assert job_id.version == 7
    crawled = await crawls.go_on(job_id)
    assert (crawled.job.status, crawled.job.kind) == (Status.COMPLETED, "crawl")
    assert crawled.pages(site.url) == {"/", "/a"}
    assert crawled.job.source_id == site.url.removeprefix("http://")
    assert crawled.job.payload["urls"] == [f"{site.url}/"]
    published = await crawls.sql("SELECT path FROM documents_active ORDER BY path")
    assert published == [("/",), ("/a",)]


async def test_the_ids_of_inserted_rows_are_in_order_of_time(crawls: Crawls) -> None:
    ids = [await insert(crawls, url="https://a.example") for _ in range(3)]
    times = [job_id.int >> 80 for job_id in ids]
    assert times == sorted(times)
    [(drift,)] = await crawls.sql(
        "SELECT max(abs(extract(epoch FROM created_at) * 1000 - %s::bigint)) FROM crawl_jobs",
        times[0],
    )
    assert drift < 60_000


async def test_secrets_of_a_payload_are_sealed_once_it_runs(crawls: Crawls, site: Site) -> None:
    headers = {"Authorization": "Bearer hunter2"}
    job_id = await insert(crawls, url=f"{site.url}/", allow_private=True, headers=headers)
    crawled = await crawls.go_on(job_id)
    assert crawled.job.status is Status.COMPLETED
    assert "hunter2" not in str(crawled.job.payload)


async def test_a_job_whose_source_is_being_crawled_waits(crawls: Crawls, site: Site) -> None:
    running = await crawls.ask(f"{site.url}/", source=site.url.removeprefix("http://"))
    inserted = await insert(crawls, url=f"{site.url}/", allow_private=True)
    waiting = (await crawls.go_on(inserted)).job
    assert (waiting.status, waiting.retry_count) == (Status.PENDING, 0)
    assert waiting.run_after > waiting.created_at
    await crawls.go_on(running)
    await crawls.sql("UPDATE crawl_jobs SET run_after = now() WHERE id = %s", inserted)
    assert (await crawls.go_on(inserted)).job.status is Status.COMPLETED


@pytest.mark.parametrize(
    "payload", [{}, {"url": "ftp://a.example/"}, {"url": "a.example", "no": 1}]
)
async def test_a_payload_that_is_not_valid_fails_at_once(
    crawls: Crawls, payload: dict[str, Any]
) -> None:
    failed = (await crawls.go_on(await insert(crawls, **payload))).job
    assert (failed.status, failed.retry_count) == (Status.FAILED, 0)
    assert "the payload is not valid" in (failed.error_message or "")


@pytest.mark.parametrize(
    ("strategies", "strategy"),
    [(["list"], "list"), (["list", "list"], "list"), (["list", "sitemap"], None), ([], None)],
)
async def test_a_payload_may_name_strategies(strategies: list[str], strategy: str | None) -> None:
    """As in the HTTP alias: several mean `site`, which is the default."""
    payload = check_payload({"url": "https://a.example/", "strategies": strategies})
    assert payload.get("strategy") == strategy


@pytest.mark.parametrize("strategies", [["nonsense"], [1], "page", [{}]])
async def test_strategies_that_do_not_exist_are_refused(strategies: Any) -> None:
    with pytest.raises(InvalidInput, match="strateg"):
        check_payload({"url": "https://a.example/", "strategies": strategies})
