"""Crawls of domains that are tied to a region, and the workers that run them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from forager.db.database import Database
from forager.db.ids import new_id
from forager.fetch.domains import store as domain_store
from forager.fetch.domains.service import DomainChanges, Domains
from forager.jobs.job import Job, NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.jobs.supervisor import Supervisor
from forager.settings import Settings
from servers.site import Site, html
from support.sql import execute

LIMIT = 60.0


def of_region(settings: Settings, region: str | None) -> Settings:
    return Settings(**(settings.model_dump() | {"region": region}))


def crawl_of(url: str, **options: object) -> NewJob:
    payload = {"urls": [url], **options}
    return NewJob(kind="crawl", payload=payload, source_id=url)


@pytest.fixture
def domains(database: Database) -> Domains:
    return Domains(database)


async def enqueued(queue: Queue, url: str) -> Job:
    return (await queue.enqueue(crawl_of(url))).job


async def region_of(queue: Queue, job: Job) -> str | None:
    return (await queue.get(job.id)).region


async def test_a_job_is_claimed_by_workers_of_its_region(
    database: Database, settings: Settings, queue: Queue, domains: Domains
) -> None:
    await domains.add("tied.example", DomainChanges(region="eu"))
    tied = await enqueued(queue, "https://www.tied.example/docs")
    free = await enqueued(queue, "https://free.example/")
    assert (tied.region, free.region) == ("eu", None)

    async def claimed(region: str | None) -> list[UUID]:
        worker = Queue(database, of_region(settings, region))
        return [job.id for job in await worker.claim(new_id(), kinds=["crawl"], limit=10)]

    assert await claimed("us") == [free.id]
    assert await claimed(None) == []
    assert await claimed("eu") == [tied.id]


async def test_jobs_follow_the_region_of_their_domain(queue: Queue, domains: Domains) -> None:
    below = await enqueued(queue, "https://www.example.com/")
    deeper = await enqueued(queue, "https://a.shop.example.com/")
    other = await enqueued(queue, "https://notexample.com/")
    ported = await enqueued(queue, "https://example.com:8443/")
    await domains.add("example.com", DomainChanges(region="eu"))
    assert [await region_of(queue, job) for job in (below, deeper)] == ["eu", "eu"]
    assert [await region_of(queue, job) for job in (other, ported)] == [None, None]
    # the nearest domain decides, also if it is tied to none
    await domains.add("shop.example.com")
    assert [await region_of(queue, job) for job in (below, deeper)] == ["eu", None]
    await domains.set("shop.example.com", DomainChanges(region="us"))
    await domains.set("example.com", DomainChanges(region=None))
    assert [await region_of(queue, job) for job in (below, deeper)] == [None, "us"]


async def test_a_name_without_a_dot_covers_itself_alone(queue: Queue, domains: Domains) -> None:
    own = await enqueued(queue, "http://intranet/")
    below = await enqueued(queue, "http://docs.intranet/")
    deeper = await enqueued(queue, "http://a.docs.intranet/")
    await domains.add("intranet", DomainChanges(region="eu"))
    later = await enqueued(queue, "http://wiki.intranet/")
    regions = [await region_of(queue, job) for job in (own, below, deeper, later)]
    assert regions == ["eu", None, None, None]
    # a name with a dot covers what is below it
    await domains.set("intranet", DomainChanges(region="asia"))
    await domains.add("docs.intranet", DomainChanges(region="us"))
    regions = [await region_of(queue, job) for job in (own, below, deeper, later)]
    assert regions == ["asia", "us", "us", None]


async def test_a_paused_and_a_failed_job_follow_too(
    database: Database, queue: Queue, domains: Domains
) -> None:
    paused = await enqueued(queue, "https://a.example.com/")
    failed = await enqueued(queue, "https://b.example.com/")
    done = await enqueued(queue, "https://c.example.com/")
    await queue.pause(paused.id)
    await queue.cancel(done.id)
    await execute(
        database,
        "UPDATE crawl_jobs SET status = 'failed', completed_at = now() WHERE id = %s",
        failed.id,
    )
    await domains.add("example.com", DomainChanges(region="eu"))
    regions = [await region_of(queue, job) for job in (paused, failed, done)]
    assert regions == ["eu", "eu", None]


async def test_tying_a_domain_to_a_region_finds_every_job(queue: Queue, domains: Domains) -> None:
    await domains.add("example.com")

    async def ask(number: int) -> Job:
        return await enqueued(queue, f"https://{number}.example.com/")

    tying = asyncio.ensure_future(domains.set("example.com", DomainChanges(region="eu")))
    jobs = await asyncio.gather(*(ask(number) for number in range(20)))
    await tying
    assert {await region_of(queue, job) for job in jobs} == {"eu"}


@asynccontextmanager
async def source_taken(database: Database, source: str) -> AsyncIterator[None]:
    """Another transaction adds a job of this source, and is rolled back at the end."""
    async with database.connection() as connection, connection.transaction(force_rollback=True):
        await connection.execute(
            "INSERT INTO crawl_jobs (id, kind, payload, source_id) VALUES (%s, 'crawl', '{}', %s)",
            (new_id(), source),
        )
        yield


async def waiting(database: Database, number: int, *unless: asyncio.Future[Any]) -> None:
    """Wait until this many sessions wait for a lock, or one of the tasks is done."""
    async with asyncio.timeout(LIMIT), database.connection() as connection:
        while not any(each.done() for each in unless):
            cursor = await connection.execute(
                """
                SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock'
                """
            )
            row = await cursor.fetchone()
            if row is not None and row[0] >= number:
                return
            await asyncio.sleep(0.02)


async def test_adding_a_domain_finds_the_job_that_is_being_added(
    database: Database, queue: Queue, domains: Domains
) -> None:
    url = "https://www.example.com/"
    async with source_taken(database, url):
        enqueuing = asyncio.ensure_future(enqueued(queue, url))
        await waiting(database, 1, enqueuing)
        tying = asyncio.ensure_future(domains.add("example.com", DomainChanges(region="eu")))
        await waiting(database, 2, enqueuing, tying)
    job = await enqueuing
    await tying
    assert await region_of(queue, job) == "eu"


@pytest.mark.parametrize("is_known", [False, True])
async def test_a_job_heeds_the_domain_that_is_being_tied(
    database: Database, queue: Queue, domains: Domains, is_known: bool
) -> None:
    if is_known:
        await domains.add("example.com")
    async with database.transaction() as connection:
        await domain_store.lock_regions(connection)
        await domain_store.insert_domain(connection, "example.com", "https://example.com/")
        await domain_store.update_domain(connection, "example.com", {"region": "eu"})
        await domain_store.move_jobs(connection, "example.com")
        enqueuing = asyncio.ensure_future(enqueued(queue, "https://www.example.com/"))
        await waiting(database, 1, enqueuing)
    assert (await enqueuing).region == "eu"


async def test_a_job_does_not_wait_for_users_of_the_domain(
    database: Database, queue: Queue, domains: Domains
) -> None:
    await domains.add("example.com", DomainChanges(region="eu"))
    async with database.transaction() as connection:
        await connection.execute("SELECT FROM domains FOR UPDATE")
        job = await asyncio.wait_for(enqueued(queue, "https://www.example.com/"), LIMIT)
    assert job.region == "eu"


async def test_many_jobs_are_added_in_one_order(database: Database, queue: Queue) -> None:
    def jobs(*sources: str) -> list[NewJob]:
        return [NewJob(kind="selftest", source_id=source) for source in sources]

    async with source_taken(database, "m"):
        down = asyncio.ensure_future(queue.enqueue_many(jobs("z", "m", "a")))
        await waiting(database, 1, down)
        up = asyncio.ensure_future(queue.enqueue_many(jobs("a", "z")))
        await waiting(database, 2, down, up)
    assert [job.source_id for job in await down] == ["z", "m", "a"]
    assert await up == []


@asynccontextmanager
async def supervising(database: Database, settings: Settings) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(database, settings)
    running = asyncio.ensure_future(supervisor.run())
    try:
        yield supervisor
    finally:
        supervisor.stop()
        await asyncio.wait_for(running, LIMIT)


async def test_two_workers_of_two_regions_share_the_crawls(
    database: Database, settings: Settings, queue: Queue, domains: Domains
) -> None:
    tied, free = Site({"/": html("Tied")}), Site({"/": html("Free")})
    with tied.served(), free.served():
        await domains.add(tied.url, DomainChanges(region="eu"))
        async with (
            supervising(database, settings) as plain,
            supervising(database, of_region(settings, "eu")) as european,
        ):
            jobs = [
                (await queue.enqueue(crawl_of(site.url, allow_private=True))).job
                for site in (tied, free)
            ]
            async with asyncio.timeout(LIMIT):
                for job in jobs:
                    while (await queue.get(job.id)).status is not Status.COMPLETED:
                        await asyncio.sleep(0.05)
            events = [await queue.events(job.id) for job in jobs]
            claims = [{e.actor for e in each if e.move == "claim"} for each in events]
    assert claims[0] == {f"worker {european.worker_id}"}
    assert claims[1] <= {f"worker {w.worker_id}" for w in (plain, european)}
