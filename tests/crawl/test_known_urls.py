"""A crawl that resumes with many known URLs fetches while it loads them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from crawl.crawling import Crawls, check_every_commit
from crawl.refreshing import HANGING
from crawl.test_lost_state import paused_halfway
from forager.crawl.frontier import known
from forager.crawl.store import visited
from forager.db.database import Connection
from forager.errors import StatementTimedOut
from forager.jobs.lifecycle import Status
from forager.processes.control import StopCause
from servers.site import Site, html, text
from support.waiting import eventually

HELD_BACK = pytest.mark.parametrize("held_back", ["select_known_visited", "select_known_frontier"])


@HELD_BACK
async def test_pages_are_fetched_while_known_urls_are_loaded(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch, held_back: str
) -> None:
    check_every_commit(monkeypatch, crawls.database)
    job_id = await paused_halfway(crawls, site)
    settled = {row[0] for row in await crawls.sql("SELECT url FROM crawl_visited")}
    # the pages that are left lead to all others, and to one that nothing else names
    links = " ".join(f'<a href="{url}">{url}</a>' for url in [*settled, *site.pages, "/new"])
    left = [path for path in site.pages if f"{site.url}{path}" not in settled]
    site.pages |= {path: html(f"Text of {path}", body=links) for path in [*left, "/new"]}
    site.log.clear()
    go_on = asyncio.Event()
    select = getattr(visited, held_back)

    async def select_later(connection: Connection, job_id: UUID, **place: Any) -> object:
        await go_on.wait()
        return await select(connection, job_id, **place)

    monkeypatch.setattr(known, "FEW", 0)
    monkeypatch.setattr(visited, held_back, select_later)
    await crawls.queue.resume(job_id)
    running = asyncio.create_task(crawls.go_on(job_id))
    await eventually(lambda: {*left, "/new"} <= {request.target for request in site.log})
    go_on.set()
    crawled = await running
    assert crawled.job.status is Status.COMPLETED
    assert {url.removeprefix(site.url) for url in crawled.visited} == set(site.pages)
    fetched = [request.target for request in site.log if request.target in site.pages]
    assert sorted(fetched) == sorted([*left, "/new"])


async def test_a_lookup_that_takes_too_long_is_repeated(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await paused_halfway(crawls, site)
    settled = {row[0] for row in await crawls.sql("SELECT url FROM crawl_visited")}
    site.log.clear()
    lookups = 0
    loads = asyncio.Event()
    find, select = visited.select_known, visited.select_known_visited

    async def find_later(
        connection: Connection, job_id: UUID, keys: Sequence[bytes], **place: Any
    ) -> object:
        nonlocal lookups
        lookups += 1
        if lookups == 1:
            raise StatementTimedOut("it took too long")
        loads.set()
        return await find(connection, job_id, keys, **place)

    async def select_later(connection: Connection, job_id: UUID, **place: Any) -> object:
        await loads.wait()
        return await select(connection, job_id, **place)

    monkeypatch.setattr(known, "FEW", 0)
    monkeypatch.setattr(visited, "select_known", find_later)
    monkeypatch.setattr(visited, "select_known_visited", select_later)
    await crawls.queue.resume(job_id)
    crawled = await crawls.go_on(job_id)
    assert crawled.job.status is Status.COMPLETED
    assert crawled.job.retry_count == 0
    assert lookups > 1
    assert {url.removeprefix(site.url) for url in crawled.visited} == set(site.pages)
    assert settled.isdisjoint(f"{site.url}{request.target}" for request in site.log)


async def test_a_sitemap_is_read_while_known_urls_are_loaded(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_every_commit(monkeypatch, crawls.database)
    listed = [f"/p{number}" for number in range(6)]
    maps = [f"Sitemap: {site.url}/map{number}.xml" for number in range(2)]
    urls = "".join(f"<url><loc>{site.url}{path}</loc></url>" for path in listed)
    both = text(f"<urlset>{urls}</urlset>")
    site.pages |= {"/robots.txt": text("\n".join(maps)), "/map0.xml": both}
    site.pages |= {"/map1.xml": HANGING} | {path: html(f"Text of {path}") for path in listed}
    job_id = await crawls.ask(f"{site.url}/", strategy="sitemap")
    running = asyncio.create_task(crawls.go_on(job_id))
    await eventually(lambda: site.hanging > 0)
    await crawls.queue.pause(job_id)
    assert crawls.context is not None
    crawls.context.ask_to_stop(StopCause.PAUSE)
    await running
    site.release()
    site.pages["/map1.xml"] = both
    loads = asyncio.Event()
    select = visited.select_known_frontier

    async def select_later(connection: Connection, job_id: UUID, **place: Any) -> object:
        await loads.wait()
        return await select(connection, job_id, **place)

    monkeypatch.setattr(known, "FEW", 0)
    monkeypatch.setattr(visited, "select_known_frontier", select_later)
    await crawls.queue.resume(job_id)
    running = asyncio.create_task(crawls.go_on(job_id))
    await eventually(lambda: set(listed) <= site.hits.keys())
    loads.set()
    crawled = await running
    assert crawled.pages(site.url) == set(listed)
    assert {path: site.hits[path] for path in listed} == dict.fromkeys(listed, 1)


async def test_a_crawl_whose_urls_cannot_be_loaded_says_why(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await paused_halfway(crawls, site)

    async def fail(*_: object, **__: object) -> object:
        raise RuntimeError("the frontier cannot be read")

    monkeypatch.setattr(known, "FEW", 0)
    monkeypatch.setattr(visited, "select_known_frontier", fail)
    await crawls.queue.resume(job_id)
    crawled = await crawls.go_on(job_id)
    assert crawled.job.status is Status.PENDING
    assert "the frontier cannot be read" in (crawled.job.error_message or "")
