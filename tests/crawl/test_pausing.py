"""Pause, cancel, resume and long rests: no work is lost, and no wait is in vain."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import psutil
import pytest

from crawl.crawling import Crawls
from crawl.test_kills import working
from forager.crawl.batch import Batch, Committer
from forager.errors import DatabaseUnavailable
from forager.jobs.lifecycle import Status
from forager.processes.control import StopCause
from servers.site import Page, Site, html, text
from support.waiting import eventually


@pytest.fixture
def hanging(site: Site) -> Site:
    """Some pages answer, the others hang until they are released."""
    site.pages["/"] = html("Start", [*(f"/{n}" for n in range(20)), *(f"/h{n}" for n in range(8))])
    for n in range(20):
        site.pages[f"/{n}"] = html(f"Page {n}", [f"/h{n % 8}"])
    for n in range(8):
        document = html(f"Hanging {n}")
        site.pages[f"/h{n}"] = Page(document.body, hangs=True)
    return site


async def left(crawls: Crawls, job_id: UUID, status: Status) -> None:
    async def look() -> bool:
        job = await crawls.queue.get(job_id)
        return job.status is status and job.worker_id is None

    await eventually(look)


@pytest.mark.parametrize("where", ["page", "robots", "sitemap"])
async def test_pause_and_resume_while_responses_hang(
    crawls: Crawls, hanging: Site, where: str
) -> None:
    if where == "robots":
        hanging.pages["/robots.txt"] = Page(b"", hangs=True)
    elif where == "sitemap":
        hanging.pages["/robots.txt"] = text(f"Sitemap: {hanging.url}/map.xml")
        hanging.pages["/map.xml"] = Page(b"<urlset></urlset>", hangs=True)
    with working(crawls.settings) as worker:
        job_id = await crawls.ask(f"{hanging.url}/")
        await eventually(lambda: hanging.hanging >= (8 if where == "page" else 1))
        before = open_requests(worker.process.pid, hanging)
        await crawls.queue.pause(job_id)
        await left(crawls, job_id, Status.PAUSED)
        await eventually(lambda: open_requests(worker.process.pid, hanging) < before)
        fetched = (await crawls.look(job_id)).pages(hanging.url)
        hanging.release()
        await crawls.queue.resume(job_id)
        await left(crawls, job_id, Status.COMPLETED)
    crawled = await crawls.look(job_id)
    assert fetched <= crawled.pages(hanging.url)
    assert len(crawled.pages()) == 29
    # what was committed is never fetched again; what was under way may be, once
    again = {path: hits for path, hits in hanging.hits.items() if path.strip("/").isdigit()}
    assert {again[path] for path in fetched & again.keys()} <= {1}
    assert set(again.values()) <= {1, 2}
    assert crawled.job.retry_count == 0


async def test_cancel_while_responses_hang(crawls: Crawls, hanging: Site) -> None:
    with working(crawls.settings) as worker:
        job_id = await crawls.ask(f"{hanging.url}/")
        await eventually(lambda: hanging.hanging == 8)
        before = open_requests(worker.process.pid, hanging)
        await crawls.queue.cancel(job_id)
        await left(crawls, job_id, Status.CANCELLED)
        await eventually(lambda: open_requests(worker.process.pid, hanging) < before)
    await crawls.look(job_id)


def open_requests(worker: int, site: Site) -> int:
    """Connections of the worker's runners to the site."""
    port = urlsplit(site.url).port
    ends = []
    for process in psutil.Process(worker).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            ends += process.net_connections("tcp")
    return sum(bool(end.raddr) and end.raddr.port == port for end in ends)


def done_or_asked(running: asyncio.Future[Any], site: Site, requests: int) -> bool:
    return running.done() or len(site.log) >= requests


async def test_stopping_at_any_moment_loses_nothing(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = html("Start", [f"/{n}" for n in range(30)])
    for n in range(150):
        site.pages[f"/{n}"] = html(f"Page {n}", [f"/{(3 * n) % 150}", f"/{(n + 30) % 150}"])
    site.delay = 0.005
    job_id = await crawls.ask(f"{site.url}/", max_retries=0)
    rounds = 0
    while (await crawls.queue.get(job_id)).status is not Status.COMPLETED:
        running = asyncio.ensure_future(crawls.go_on(job_id))
        target = len(site.log) + 5 * rounds + 1
        await eventually(partial(done_or_asked, running, site, target))
        if crawls.context is not None:
            crawls.context.ask_to_stop(StopCause.SHUTDOWN)
        await running
        rounds += 1
    assert rounds > 3
    assert len((await crawls.look(job_id)).pages()) == 151


# --- hosts that want to be left alone ------------------------------------------------------------


async def test_a_long_rest_gives_the_job_back(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = html("Start", [f"/{n}" for n in range(200)])
    for n in range(200):
        site.pages[f"/{n}"] = html(f"Page {n}")
    busy = Page(b"", "503 Busy", {"Retry-After": "600"})
    site.pages["/100"] = lambda hit: busy if hit == 1 else html("Page 100")
    crawled = await crawls.run(f"{site.url}/")
    job = crawled.job
    assert (job.status, job.retry_count, job.worker_id) == (Status.PENDING, 0, None)
    [[seconds]] = await crawls.sql("SELECT extract(epoch FROM run_after - now()) FROM crawl_jobs")
    assert 500 < seconds <= 600
    assert f"{site.url}/100" in crawled.pending
    await end_of_rest(crawls)
    crawled = await crawls.go_on(job.id)
    assert len(crawled.pages()) == 201
    assert crawled.job.stop_reason == "finished"


async def end_of_rest(crawls: Crawls) -> None:
    await crawls.sql("UPDATE crawl_jobs SET run_after = now()")
    await crawls.sql("UPDATE crawl_frontier SET not_before = now() WHERE not_before IS NOT NULL")
    await crawls.sql("UPDATE domains SET blocked_until = NULL, slow_delay = 0")
    await crawls.sql("DELETE FROM robots_files")


async def test_a_long_rest_with_more_urls_than_can_wait_in_memory(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.crawl.frontier.window.CAPACITY", 3)
    site.pages["/"] = html("Start", ["/busy", *(f"/{n}" for n in range(100))])
    busy = Page(b"", "429 Busy", {"Retry-After": "600"})
    site.pages["/busy"] = lambda hit: busy if hit == 1 else html("Busy")
    for n in range(100):
        site.pages[f"/{n}"] = html(f"Page {n}")
    crawled = await crawls.run(f"{site.url}/", concurrency=1)
    assert crawled.job.status is Status.PENDING
    await end_of_rest(crawls)
    assert len((await crawls.go_on(crawled.job.id)).pages()) == 102


async def test_a_short_rest_is_waited_for(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = html("Start", ["/a", "/b"])
    busy = Page(b"", "429 Busy", {"Retry-After": "1"})
    site.pages["/a"] = lambda hit: busy if hit == 1 else html("A")
    site.pages["/b"] = html("B")
    crawled = await crawls.run(f"{site.url}/", concurrency=1)
    assert crawled.pages(site.url) == {"/", "/a", "/b"}
    asked = [request for request in site.log if request.target in ("/a", "/b")]
    assert asked[1].at - asked[0].at > 0.9  # the whole host was left alone
    assert crawled.visited[f"{site.url}/a"].attempts == 1


@pytest.mark.parametrize("strategy", ["site", "sitemap"])
async def test_robots_that_answer_5xx_defer_everything(
    crawls: Crawls, site: Site, strategy: str
) -> None:
    site.pages["/"] = html("Start")
    site.pages["/listed"] = html("Listed")
    site.pages["/map.xml"] = text(f"<urlset><url><loc>{site.url}/listed</loc></url></urlset>")
    robots = text(f"Sitemap: {site.url}/map.xml")
    broken = Page(b"", "500 Oops", {"Retry-After": "600"})
    site.pages["/robots.txt"] = lambda hit: broken if hit == 1 else robots
    crawled = await crawls.run(f"{site.url}/", strategy=strategy)
    assert (crawled.job.status, crawled.job.retry_count) == (Status.PENDING, 0)
    assert site.hits["/"] == 0
    assert crawled.visited == {}
    await end_of_rest(crawls)
    crawled = await crawls.go_on(crawled.job.id)
    assert "/listed" in crawled.pages(site.url)
    assert ("/" in crawled.pages(site.url)) == (strategy == "site")


# --- the database goes away ----------------------------------------------------------------------


@pytest.mark.usefixtures("own_sandboxes")
async def test_after_a_lost_database_the_crawl_starts_clean(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the commit was made and only its answer is lost."""
    site.pages["/"] = html("Start", [f"/{n}" for n in range(200)])
    for n in range(200):
        site.pages[f"/{n}"] = html(f"Page {n}", [f"/{(n * 3) % 200}"])
    write = Committer.write
    commits = 0

    async def write_and_lose(self: Committer, batch: Batch) -> None:
        nonlocal commits
        commits += 1
        if commits % 5 == 3:
            raise DatabaseUnavailable("before the commit")
        await write(self, batch)
        if commits % 5 == 0:
            raise DatabaseUnavailable("after the commit")

    monkeypatch.setattr(Committer, "write", write_and_lose)
    monkeypatch.setattr("forager.db.outages.RETRY_INTERVAL", 0.0)
    crawled = await crawls.run(f"{site.url}/")
    assert len(crawled.pages()) == 201
    assert crawled.job.retry_count == 0
    assert await crawls.sql("SELECT * FROM domain_permits") == []
    children = psutil.Process().children(recursive=True)
    assert [c for c in children if "forager.crawl.extraction.process" in c.cmdline()] == []


# --- many known URLs -----------------------------------------------------------------------------


async def test_a_crawl_with_many_known_urls_moves_to_its_own_runner(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memory would be taken from the other crawls of a shared runner."""
    monkeypatch.setattr("forager.jobs.context.MEMORY_SHARE", 0.0)
    site.pages["/"] = html("Start", [f"/{n}" for n in range(200)])
    for n in range(200):
        site.pages[f"/{n}"] = html(f"Page {n}")
    job_id = await crawls.ask(f"{site.url}/")
    crawled = await crawls.go_on(job_id, alone=False)
    assert (crawled.job.status, crawled.job.own_runner) == (Status.PENDING, True)
    assert crawled.job.retry_count == 0
    crawled = await crawls.go_on(job_id)
    assert len(crawled.pages()) == 201
