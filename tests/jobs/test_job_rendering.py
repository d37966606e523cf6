"""Crawls that need a browser, and the workers that run them."""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

import pytest

from forager.checks import Level
from forager.crawl.explain.explanation import explain
from forager.crawl.reports.report import crawl_report
from forager.db.database import Database
from forager.db.ids import new_id
from forager.fetch.domains.service import DomainChanges, Domains
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from forager.jobs.supervisor import Supervisor
from forager.jobs.workers import Registration
from forager.settings import Settings
from forager.settings.crawling import RenderMode
from forager.tasks.checks import check_renderers
from support.sql import execute

WAITING = "waiting for a worker that renders (forager worker --render)"


async def enqueued(queue: Queue, url: str, **options: object) -> UUID:
    job = NewJob(kind="crawl", payload={"urls": [url], **options}, source_id=url)
    return (await queue.enqueue(job)).job.id


async def claimed(queue: Queue, *, renders: bool, only: UUID | None = None) -> list[UUID]:
    jobs = await queue.claim(new_id(), kinds=["crawl"], limit=10, renders=renders, only=only)
    return [job.id for job in jobs]


async def register_renderer(database: Database) -> None:
    await Registration(database, new_id(), capacity=1, renders=True).renew()


async def test_only_workers_with_a_browser_claim_a_crawl_that_always_renders(queue: Queue) -> None:
    rendered = await enqueued(queue, "https://a.example/", render="always")
    static = [await enqueued(queue, f"https://{n}.example/", render=n) for n in ("never", "auto")]
    assert await claimed(queue, renders=False) == static
    assert await claimed(queue, renders=True) == [rendered]


async def test_the_domain_decides_for_crawls_that_leave_it_open(
    database: Database, queue: Queue
) -> None:
    domains = Domains(database)
    await domains.add("example.com", DomainChanges(render=RenderMode.ALWAYS))
    await domains.add("static.example.com", DomainChanges(render=RenderMode.NEVER))
    below = await enqueued(queue, "https://www.example.com/")
    nearest = await enqueued(queue, "https://static.example.com/")
    refused = await enqueued(queue, "https://docs.example.com/", render="never")
    assert await claimed(queue, renders=False) == [nearest, refused]
    assert await claimed(queue, renders=True) == [below]


async def test_a_crawl_that_waits_for_a_browser_says_so(
    database: Database, settings: Settings, queue: Queue
) -> None:
    url = "https://app.example/"
    job = await enqueued(queue, url, render="always")
    wait = (await crawl_report(database, queue, job)).wait
    assert wait is not None
    assert wait.message == WAITING
    explained = await explain(database, queue, url, job_id=job)
    assert explained.message == f"the crawl has not started: it is {WAITING}"
    check = await check_renderers(database, settings)
    assert check.message == "1 crawl or task waits for a worker that renders"
    await register_renderer(database)
    assert (await check_renderers(database, settings)).level is Level.OK


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_crawl_in_the_foreground_fails_here_unless_another_worker_renders(
    database: Database, queue: Queue, elsewhere: bool
) -> None:
    job = await enqueued(queue, "https://app.example/", render="always")
    if elsewhere:
        await register_renderer(database)
    assert await claimed(queue, renders=False, only=job) == ([] if elsewhere else [job])


async def test_a_renderer_of_another_region_does_not_count(
    database: Database, settings: Settings, queue: Queue
) -> None:
    await enqueued(queue, "https://app.example/", render="always")
    await execute(database, "UPDATE crawl_jobs SET region = 'eu'")
    await register_renderer(database)
    assert (await check_renderers(database, settings)).level is Level.WARN


async def test_a_worker_that_runs_only_one_job_renders_for_no_other(
    database: Database, settings: Settings, queue: Queue
) -> None:
    job = await enqueued(queue, "https://app.example/", render="always")
    await Supervisor(database, settings, renders=True, only=new_id()).run_once()
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT renders FROM workers")
        assert await cursor.fetchall() == [(False,)]
    assert await claimed(queue, renders=False, only=job) == [job]


@pytest.mark.parametrize("change", ["state = 'stopping'", "note = 'claims nothing'"])
async def test_a_renderer_that_claims_nothing_does_not_count(
    database: Database, queue: Queue, change: LiteralString
) -> None:
    job = await enqueued(queue, "https://app.example/", render="always")
    await register_renderer(database)
    await execute(database, f"UPDATE workers SET {change}")
    assert await claimed(queue, renders=False, only=job) == [job]
