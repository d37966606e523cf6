"""Several crawls in one event loop, with the services that the jobs of a runner share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import psutil
import pytest

from crawl.crawling import Crawled, Crawls
from forager.crawl import engine
from forager.crawl.batch import Batch, Committer
from forager.crawl.engine import FEW_VISITS
from forager.crawl.extraction import pool as extraction
from forager.crawl.frontier import hosts
from forager.crawl.service import CRAWL
from forager.db.ids import new_id
from forager.jobs.context import JobContext
from forager.jobs.job import Lease
from forager.jobs.lifecycle import Status
from forager.jobs.runner import Runner
from forager.jobs.shared import BACKLOG_LIMIT, SharedServices
from forager.processes.control import StopCause
from forager.settings import Settings
from servers.site import Page, Site, html
from support.waiting import eventually


class Hosting:
    """A runner in this process: each crawl is a task, and all share its services."""

    def __init__(self, crawls: Crawls, shared: SharedServices) -> None:
        self.crawls = crawls
        self.shared = shared
        self.contexts: dict[UUID, JobContext] = {}

    async def start(self, job_id: UUID) -> asyncio.Task[Crawled]:
        crawls, worker_id = self.crawls, new_id()
        [job] = await crawls.queue.claim(worker_id, kinds=["crawl"], only=job_id)
        lease = Lease(job.id, job.lease, worker_id)
        context = JobContext(job, lease, crawls.database, crawls.settings, shared=self.shared)
        self.contexts[job_id] = context
        return asyncio.create_task(self._run(context))

    async def _run(self, context: JobContext) -> Crawled:
        await Runner(context, CRAWL, self.crawls.queue).run()
        return await self.crawls.look(context.job.id)

    async def run(self, *jobs: UUID) -> list[Crawled]:
        return await asyncio.gather(*[await self.start(job) for job in jobs])


@pytest.fixture
async def hosting(crawls: Crawls) -> AsyncIterator[Hosting]:
    async with SharedServices() as shared:
        yield Hosting(crawls, shared)


@pytest.fixture
def sites() -> Iterator[list[Site]]:
    sites = [Site() for _ in range(5)]
    with ExitStack() as stack:
        for number, site in enumerate(sites):
            links = [f"/{n}" for n in range(4)]
            site.pages["/"] = html(f"Site {number}", links)
            site.pages |= {link: html(f"Page {link} of {number}") for link in links}
            stack.enter_context(site.served())
        yield sites


async def test_crawls_share_processes_and_one_budget_holder(
    hosting: Hosting, sites: list[Site], settings: Settings
) -> None:
    before = set(psutil.Process().children())
    jobs = [await hosting.crawls.ask(f"{site.url}/", delay=0.2) for site in sites]
    running = [await hosting.start(job) for job in jobs]
    await eventually(lambda: all(len(site.hits) > 2 for site in sites))
    holders = await hosting.crawls.sql("SELECT count(DISTINCT holder) FROM domain_permits")
    crawled = await asyncio.gather(*running)
    assert holders == [(1,)]
    assert [len(each.pages()) for each in crawled] == [5] * 5
    assert all(each.job.status is Status.COMPLETED for each in crawled)
    assert len(set(psutil.Process().children()) - before) <= 2  # extraction processes


async def test_the_longer_delay_of_two_crawls_holds(hosting: Hosting, site: Site) -> None:
    for name in ("a", "b"):
        links = [f"/{name}/{n}" for n in range(3)]
        site.pages[f"/{name}/"] = html(name, links)
        site.pages |= {link: html(link) for link in links}
    jobs = [
        await hosting.crawls.ask(f"{site.url}/{name}/", scope="prefix", delay=delay)
        for name, delay in (("a", 0.05), ("b", 0.4))
    ]
    slow, fast = await hosting.start(jobs[1]), None
    await eventually(lambda: "/b/" in site.hits)
    fast = await hosting.start(jobs[0])
    crawled = await asyncio.gather(slow, fast)
    assert [len(each.pages()) for each in crawled] == [4, 4]
    last_of_slow = max(each.at for each in site.log if each.target.startswith("/b"))
    times = sorted(each.at for each in site.log if each.at <= last_of_slow)
    # less what a request may be late, and what the site may take to see it
    assert min(later - earlier for earlier, later in pairwise(times)) > 0.25


async def test_a_paused_crawl_leaves_its_neighbors_alone(
    hosting: Hosting, site: Site, other: Site
) -> None:
    site.pages["/"] = html("Start", ["/hangs"])
    site.pages["/hangs"] = Page(hangs=True)
    other.pages["/"] = html("Other", ["/hangs"])
    other.pages["/hangs"] = lambda n: Page(html("Late").body, hangs=True)
    paused, running = [await hosting.crawls.ask(f"{each.url}/") for each in (site, other)]
    tasks = [await hosting.start(job) for job in (paused, running)]
    await eventually(lambda: site.hanging and other.hanging)
    await hosting.crawls.queue.pause(paused)
    hosting.contexts[paused].ask_to_stop(StopCause.PAUSE)
    first = await tasks[0]
    assert first.job.status is Status.PAUSED
    assert first.pages(site.url) == {"/"}
    other.release()
    assert (await tasks[1]).pages(other.url) == {"/", "/hangs"}


async def test_a_crawl_fetches_few_pages_while_many_wait_for_extraction(
    hosting: Hosting, site: Site, other: Site
) -> None:
    hosting.shared.backlog = lambda: BACKLOG_LIMIT + 1
    hosting.shared.count_backlog()
    site.pages["/"] = html("Start", [f"/{n}" for n in range(20)])
    site.pages |= {f"/{n}": Page(html(f"Page {n}").body, hangs=True) for n in range(20)}
    other.pages["/"] = html("Other", [f"/{n}" for n in range(20)])
    other.pages |= {f"/{n}": html(f"Page {n}") for n in range(20)}
    jobs = [await hosting.crawls.ask(f"{each.url}/", delay=0) for each in (site, other)]
    waiting = await hosting.start(jobs[0])
    await eventually(lambda: site.hanging >= FEW_VISITS)
    neighbor = await (await hosting.start(jobs[1]))
    assert len(neighbor.pages()) == 21
    assert site.hanging == FEW_VISITS
    site.release()
    assert len((await waiting).pages()) == 21


async def test_a_hostile_page_fails_alone(
    hosting: Hosting, site: Site, other: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction, "MODULE", "sabotaged_extractor")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    site.pages["/"] = html("Start", ["/crash", "/fine"])
    site.pages["/crash"] = html("Crash")
    site.pages["/fine"] = html("Fine")
    other.pages["/"] = html("Other", [f"/{n}" for n in range(20)])
    other.pages |= {f"/{n}": html(f"Page {n}") for n in range(20)}
    jobs = [await hosting.crawls.ask(f"{each.url}/") for each in (site, other)]
    attacked, neighbor = await hosting.run(*jobs)
    assert attacked.outcomes(site.url)["/crash"] == "failed:parse"
    assert attacked.pages(site.url) == {"/", "/fine"}
    assert len(neighbor.pages()) == 21
    assert neighbor.ledger["failed"] == 0


async def test_hosts_of_one_crawl_do_not_wait_for_each_other(
    crawls: Crawls, sites: list[Site]
) -> None:
    """At the end, the slow first host has been asked once for each page that the others have."""
    slow, *others = sites
    slow.pages["/0"] = Page(hangs=True)
    job_id = await crawls.ask(*(f"{site.url}/" for site in sites), delay=0.2)
    running = asyncio.create_task(crawls.go_on(job_id))
    await eventually(lambda: all(len(site.hits) >= 6 for site in others))
    assert slow.hanging == 1
    slow.pages["/0"] = html("Page 0")
    slow.release()
    crawled = await running
    assert len(crawled.pages()) >= 24


async def test_the_last_pages_of_a_polite_crawl_are_one_commit(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BATCH_SECONDS", engine.LONGEST_BATCH_SECONDS)
    monkeypatch.setattr(hosts, "LEAD", 0.05)  # the last page has nearly a second to arrive
    write, batches = Committer.write, []

    async def counted(committer: Committer, batch: Batch) -> None:
        batches.append([settled.entry.url.removeprefix(site.url) for settled in batch.settled])
        await write(committer, batch)

    monkeypatch.setattr(Committer, "write", counted)
    paths = ["/p0", "/p1"]
    site.pages = {"/": html("Home", paths), "/p0": html("First"), "/p1": html("Second")}
    await crawls.run(f"{site.url}/", delay=1.0)
    assert [batch for batch in batches if batch] == [["/"], paths]
