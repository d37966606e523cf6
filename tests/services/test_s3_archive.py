"""The archive in a real object store: merged, moved, pruned, and its server killed in between."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from archived_job import Settled, select_refs, start_job
from crawl.crawling import Crawled, Crawls
from forager.archive.audit import AuditedSegment, audit
from forager.archive.deletion import clean_up_archive
from forager.archive.local import LocalStorage
from forager.archive.merging import merge_segments
from forager.archive.migration import StorageMove
from forager.archive.objects import ObjectStorage, open_bucket, open_bucket_store
from forager.archive.options import MovingStorage, archive_options
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage
from forager.archive.warc_record import StorageAway
from forager.crawl import engine
from forager.db.database import Database
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.settings import Settings
from servers.site import Page, Site, html
from services.buckets import SHORT_LIMITS, archived_bodies, new_bucket
from services.servers.minio import MinIO
from support.sql import execute

LIMIT = 64_000_000
PAGES = 60
WAIT_LIMIT = 300.0


@pytest.fixture
def url(minio: MinIO, monkeypatch: pytest.MonkeyPatch) -> str:
    return new_bucket(minio, monkeypatch)


@pytest.fixture
def storage(url: str) -> ObjectStorage:
    return open_bucket(url)


@pytest.fixture
def bucketed(settings: Settings, url: str) -> Settings:
    return settings.model_copy(update={"archive_url": url})


def page(number: int, size: int) -> Settled:
    body = random.Random(number).randbytes(size)
    return Settled(f"https://docs.example.org/{number}", body=body)


async def finished_job(
    database: Database, storage: Storage, queue: Queue, commits: int, size: int = 1000
) -> None:
    """Each commit writes a separate segment."""
    job = await start_job(database, storage, queue)
    for number in range(commits):
        await job.settle([page(number, size)])
        await job.writer.close()
    await job.end()


async def let_time_pass(database: Database) -> None:
    await execute(database, "UPDATE archive_segments SET keep_until = now() RETURNING name")


async def troubles(database: Database, storage: Storage) -> list[AuditedSegment]:
    """Not what the clean-up clears away, as the row of a segment whose upload was given up."""
    return [found async for found in audit(database, storage) if not found.ok]


# --- merging -------------------------------------------------------------------------------------


async def test_small_objects_become_one_that_goes_up_in_parts(
    database: Database, storage: ObjectStorage, queue: Queue, bucketed: Settings
) -> None:
    await finished_job(database, storage, queue, 12, size=1_500_000)
    pages = await archived_bodies(database, storage)
    assert (await clean_up_archive(database, bucketed)).deleted == []
    assert await archived_bodies(database, storage) == pages
    assert len({row[0] for row in await select_refs(database)}) == 1
    await let_time_pass(database)
    assert len((await clean_up_archive(database, bucketed)).deleted) == 12
    [merged] = await storage.list_segments()
    assert merged.size > 12 * 1_500_000
    assert await archived_bodies(database, storage) == pages
    assert await troubles(database, storage) == []


async def test_a_store_that_dies_while_segments_are_merged_costs_nothing(
    database: Database, url: str, minio: MinIO, queue: Queue
) -> None:
    class Dying(ObjectStorage):
        reads = 0

        async def read(self, ref: ArchiveRef) -> bytes:
            self.reads += 1
            if self.reads == 3:
                minio.kill()
            return await super().read(ref)

    whole = open_bucket(url)
    await finished_job(database, whole, queue, 5)
    pages = await archived_bodies(database, whole)
    limited = Dying(open_bucket_store(url, SHORT_LIMITS))
    try:
        assert (await merge_segments(database, limited, LIMIT)).into == 0
    finally:
        minio.start()
    assert await archived_bodies(database, whole) == pages
    await let_time_pass(database)
    assert (await merge_segments(database, whole, LIMIT)).into == 1
    assert await archived_bodies(database, whole) == pages


# --- moving --------------------------------------------------------------------------------------


async def test_there_and_back_with_the_store_killed_on_the_way(
    database: Database, settings: Settings, url: str, minio: MinIO, queue: Queue
) -> None:
    local = LocalStorage(settings.home / "archive")
    bucket, limited = open_bucket(url), open_bucket(url, SHORT_LIMITS)
    await finished_job(database, local, queue, 5)
    pages = await archived_bodies(database, local)

    def kill_at_second(done: int) -> None:
        if done == 2:
            minio.kill()

    try:
        with pytest.raises(StorageAway):
            await StorageMove(database, local, limited, url).run(kill_at_second)
    finally:
        minio.start()
    assert await archived_bodies(database, MovingStorage(bucket, local)) == pages
    there = StorageMove(database, local, bucket, url)
    moved = await there.run(lambda _: None)
    assert (moved.copied, moved.complete) == (3, True)
    assert await there.delete_source() == 5
    assert await archived_bodies(database, bucket) == pages

    back = StorageMove(database, bucket, local, "local")
    assert (await back.run(lambda _: None)).copied == 5
    assert await back.delete_source() == 5
    assert await archived_bodies(database, local) == pages
    assert await bucket.list_segments() == []


# --- crawling ------------------------------------------------------------------------------------


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """Each page links to the next ones, so that there are many commits."""
    pages: dict[str, Page] = {
        f"/{number}": html(f"Page {number}", [f"/{2 * number + 1}", f"/{2 * number + 2}"])
        for number in range(PAGES)
    }
    async with Site(pages, delay=0.02) as site:
        yield site


async def crawl_to_its_end(crawls: Crawls, site: Site) -> Crawled:
    """A released crawl continues immediately."""
    job_id = await crawls.ask(f"{site.url}/0", max_pages=PAGES)
    while True:
        crawled = await crawls.go_on(job_id)
        if crawled.job.status is not Status.PENDING:
            return crawled
        await crawls.sql("UPDATE crawl_jobs SET run_after = now() WHERE id = %s", job_id)


async def test_a_crawl_outlives_its_object_store(
    database: Database,
    bucketed: Settings,
    site: Site,
    minio: MinIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "BATCH_SIZE", 4)
    crawls = Crawls(database, bucketed)
    crawl = asyncio.create_task(crawl_to_its_end(crawls, site))

    async with asyncio.timeout(WAIT_LIMIT):
        while not await select_refs(database):
            await asyncio.sleep(0.01)
    await asyncio.to_thread(minio.kill)
    await asyncio.to_thread(minio.start)
    crawled = await crawl
    assert crawled.job.status is Status.COMPLETED
    assert crawled.job.retry_count == 0
    fetched = {url for url, row in crawled.visited.items() if row.outcome == "fetched"}
    storage = archive_options(bucketed).open()
    assert set(await archived_bodies(database, storage)) == fetched
    assert len(fetched) == PAGES
    assert await troubles(database, storage) == []


async def test_a_crawl_waits_for_keys_that_are_right(
    database: Database, bucketed: Settings, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawls = Crawls(database, bucketed)
    with monkeypatch.context() as wrong:
        wrong.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        crawled = await crawls.run(f"{site.url}/0", max_pages=5)
    assert (crawled.job.status, crawled.job.retry_count) == (Status.PENDING, 0)
    assert not crawled.visited
    await crawls.sql("UPDATE crawl_jobs SET run_after = now()")
    again = await crawls.go_on(crawled.job.id)
    assert again.job.status is Status.COMPLETED
