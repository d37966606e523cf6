"""Crawls that are killed again and again end as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import UUID

import psutil
import psycopg
import pytest

from crawl.crawling import Crawled, Crawls
from crawl.test_exactness import truth
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server, server_status
from forager.errors import DatabaseUnavailable
from forager.jobs.lifecycle import FINISHED
from forager.jobs.watchdog import Watchdog
from forager.settings import Settings
from servers.site import Site
from support.waiting import eventually

CONCURRENCY = 8
BATCH = 50
SLOWNESS = 0.02
LIMIT = 60.0
SCRIPT = Path(__file__).with_name("crawl_worker.py")
NOT_PAGES = {"/robots.txt", "/sitemap.xml", "/inner.xml.gz", "/plain.txt", "/missing.xml"}


class Worker:
    """A worker with its runner and their extraction processes."""

    def __init__(self, settings: Settings) -> None:
        self._arguments = [settings.model_dump_json(exclude={"database_url"})]
        if settings.database_url is not None:
            self._arguments.append(settings.database_url.get_secret_value())
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(SCRIPT), *self._arguments]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def tree(self) -> list[psutil.Process]:
        leader = psutil.Process(self.process.pid)
        return [leader, *leader.children(recursive=True)]

    def kill_runner(self) -> None:
        for process in psutil.Process(self.process.pid).children():
            process.kill()

    def kill_everything(self) -> None:
        for process in self.tree():
            process.kill()
        self.process.wait(LIMIT)

    def kill_supervisor(self) -> None:
        """Its runner lives on for a moment, and notices."""
        self.process.kill()
        self.process.wait(LIMIT)

    def start_again(self) -> None:
        self.process = self._start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(LIMIT)


@contextmanager
def working(settings: Settings) -> Iterator[Worker]:
    worker = Worker(settings)
    try:
        yield worker
    finally:
        worker.stop()


@pytest.fixture
def slow_site(site: Site, other: Site) -> Site:
    site.pages = truth(site, other).pages  # type: ignore[assignment]
    site.delay = SLOWNESS
    return site


class Disturbance:
    """Kill after each such number of requests to the site, until the crawl has ended."""

    def __init__(self, crawls: Crawls, site: Site, seed: int) -> None:
        self._crawls = crawls
        self._site = site
        self._random = random.Random(seed)
        self.kills = 0

    async def disturb(self, job_id: UUID, kill: Callable[[], object], times: int) -> None:
        for _ in range(times):
            if not await self._more_requests(job_id, self._random.randint(1, 60)):
                return
            kill()
            self.kills += 1
            await self._forget_permits()

    async def _forget_permits(self) -> None:
        """A dead runner's share of the host ends by itself, but that takes ten seconds."""
        with suppress(DatabaseUnavailable):
            await self._crawls.sql("DELETE FROM domain_permits")

    async def ended(self, job_id: UUID) -> bool:
        try:
            return (await self._crawls.queue.get(job_id)).status in FINISHED
        except DatabaseUnavailable:
            return False

    async def _more_requests(self, job_id: UUID, count: int) -> bool:
        target = len(self._site.log) + count

        async def look() -> bool:
            return len(self._site.log) >= target or await self.ended(job_id)

        await eventually(look)
        return not await self.ended(job_id)


def same(disturbed: Crawled, undisturbed: Crawled) -> None:
    assert {url: _facts(row) for url, row in disturbed.visited.items()} == {
        url: _facts(row) for url, row in undisturbed.visited.items()
    }
    assert disturbed.ledger == undisturbed.ledger
    assert disturbed.pending == undisturbed.pending == {}


def _facts(row: object) -> tuple[object, ...]:
    names = ("outcome", "reason", "duplicate_of", "http_status", "title", "outlinks")
    return tuple(getattr(row, name) for name in names)


def check_refetched(hits: dict[str, int], before: dict[str, int], kills: int) -> None:
    extra = {
        target: count - before.get(target, 0)
        for target, count in hits.items()
        if target not in NOT_PAGES
    }
    refetched = sum(extra.values())
    print(f"{kills} kills, {refetched} pages fetched again")
    assert refetched <= kills * (CONCURRENCY + BATCH)


async def crawl_undisturbed(crawls: Crawls, site: Site) -> tuple[Crawled, dict[str, int]]:
    crawled = await crawls.run(f"{site.url}/", concurrency=CONCURRENCY, retry_delay=0.2)
    hits = dict(site.hits)
    site.log.clear()
    return crawled, hits


async def ask(crawls: Crawls, site: Site) -> UUID:
    return await crawls.ask(
        f"{site.url}/", concurrency=CONCURRENCY, retry_delay=0.2, max_retries=1000
    )


@pytest.mark.timeout(400)
async def test_killed_runners(crawls: Crawls, slow_site: Site) -> None:
    undisturbed, hits = await crawl_undisturbed(crawls, slow_site)
    disturbance = Disturbance(crawls, slow_site, seed=1)
    with working(crawls.settings) as worker:
        job_id = await ask(crawls, slow_site)
        await disturbance.disturb(job_id, worker.kill_runner, times=8)
        await eventually(lambda: disturbance.ended(job_id))
    same(await crawls.look(job_id), undisturbed)
    check_refetched(slow_site.hits, hits, disturbance.kills)
    assert disturbance.kills >= 5


@pytest.mark.timeout(400)
async def test_killed_workers(crawls: Crawls, slow_site: Site) -> None:
    undisturbed, hits = await crawl_undisturbed(crawls, slow_site)
    disturbance = Disturbance(crawls, slow_site, seed=2)
    with working(crawls.settings) as worker:
        job_id = await ask(crawls, slow_site)
        for round_ in range(6):
            kill = worker.kill_supervisor if round_ % 2 else worker.kill_everything
            await disturbance.disturb(job_id, kill, times=1)
            if worker.process.poll() is not None:
                await recover(crawls)
                worker.start_again()
        await eventually(lambda: disturbance.ended(job_id))
    same(await crawls.look(job_id), undisturbed)
    check_refetched(slow_site.hits, hits, disturbance.kills)
    assert disturbance.kills >= 4


async def recover(crawls: Crawls) -> None:
    """What a watchdog does when a long time has passed since the last heartbeats."""
    watchdog = Watchdog(crawls.database, crawls.settings)
    await crawls.sql("UPDATE crawl_jobs SET last_heartbeat = now() - interval '1 hour'")
    await watchdog.run_once()
    await watchdog.run_once()


@pytest.mark.timeout(400)
async def test_killed_database(slow_site: Site, tmp_path: Path, settings: Settings) -> None:
    home = tmp_path / "own"
    with join_server(home) as use:
        schema.upgrade(use.url)
        with psycopg.connect(use.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")
        own = Settings(**(settings.model_dump() | {"home": home, "database_url": None}))
        async with Database(use.url, revive=use.ensure_running) as database:
            crawls = Crawls(database, own)
            undisturbed, hits = await crawl_undisturbed(crawls, slow_site)
            disturbance = Disturbance(crawls, slow_site, seed=3)

            def kill_server() -> None:
                pid = server_status(home).pid
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)

            with working(own):
                job_id = await ask(crawls, slow_site)
                await disturbance.disturb(job_id, kill_server, times=6)
                started = time.monotonic()
                await eventually(lambda: disturbance.ended(job_id))
                print(f"ended {time.monotonic() - started:.1f} s later")
            same(await crawls.look(job_id), undisturbed)
            check_refetched(slow_site.hits, hits, disturbance.kills)
            assert disturbance.kills >= 4
