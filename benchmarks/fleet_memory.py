"""Memory of one more idle crawl in a process that hosts many: fleet_memory.py [CRAWLS].

Runs the handlers of crawls in one event loop with shared services, as a runner does. Each crawl has
fetched some pages and waits for the next slot of its host.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
from pathlib import Path

import psutil
import uvloop

from benchmarks.fleet_worker import many_sites
from forager.crawl.job import crawl
from forager.crawl.options import crawl_options
from forager.crawl.service import request_crawl
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.db.ids import new_id
from forager.jobs.context import JobContext
from forager.jobs.job import Lease
from forager.jobs.queue import Queue
from forager.jobs.shared import SharedServices
from forager.logs import configure_logs
from forager.processes.control import StopCause
from forager.settings import Settings

PAGES = 30
FEW = 20
# with this delay, each crawl fetches a few pages and then sleeps
DELAY = 20.0
WARM_UP = 35.0


class Host:
    def __init__(self, database: Database, settings: Settings, shared: SharedServices) -> None:
        self._database = database
        self._settings = settings
        self._shared = shared
        self._queue = Queue(database, settings)
        self._contexts: list[JobContext] = []
        self._tasks: list[asyncio.Task[object]] = []

    async def start(self, url: str) -> None:
        options = crawl_options({"urls": [url], "allow_private": True, "delay": DELAY})
        asked = await request_crawl(self._queue, options, source=f"source {url}")
        worker = new_id()
        [job] = await self._queue.claim(worker, kinds=["crawl"], only=asked.job.id)
        lease = Lease(job.id, job.lease, worker)
        context = JobContext(job, lease, self._database, self._settings, shared=self._shared)
        self._contexts.append(context)
        self._tasks.append(asyncio.ensure_future(crawl(context)))

    async def stop(self) -> None:
        for context in self._contexts:
            context.ask_to_stop(StopCause.SHUTDOWN)
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def measure(url: str, home: Path, sites: list[str]) -> None:
    settings = Settings(home=home)
    async with Database(url, max_size=8) as database, SharedServices() as shared:
        host = Host(database, settings, shared)
        for site in sites[:FEW]:
            await host.start(site)
        await asyncio.sleep(WARM_UP)
        few = _memory()
        for site in sites[FEW:]:
            await host.start(site)
        await asyncio.sleep(WARM_UP)
        many = _memory()
        crawls = len(sites) - FEW
        print(f"{FEW} crawls: {few:.1f} MB, {len(sites)} crawls: {many:.1f} MB")
        print(f"one more crawl: {(many - few) / crawls * 1024:.0f} KB")
        print(f"open files: {psutil.Process().num_fds()}")
        await host.stop()


def _memory() -> float:
    gc.collect()
    return float(psutil.Process().memory_full_info().uss) / 2**20


def main(crawls: int) -> None:
    configure_logs("critical")
    with (
        tempfile.TemporaryDirectory(prefix="forager-bench-") as folder,
        join_server(Path(folder) / "server") as use,
        many_sites(crawls, PAGES) as sites,
    ):
        schema.ensure_current(use.url)
        uvloop.run(measure(use.url, Path(folder) / "home", sites))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
