"""Resuming a crawl that knows many URLs: python -m benchmarks.bench_resume [--urls 10000000]

A crawl fetches a few pages and is stopped. Then it gets this many known URLs, half of them settled
and half of them pending, and is resumed. Measures the time until it sends its next request, until
it commits again, until it has sent a hundred requests, and until all known URLs are in memory.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from uuid import UUID

import psycopg
import uvloop

from benchmarks.fleet_worker import many_sites
from benchmarks.machine import describe_machine
from benchmarks.report import Report
from forager.crawl.frontier.known import KnownUrls
from forager.crawl.job import crawl
from forager.crawl.options import crawl_options
from forager.crawl.service import request_crawl
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.db.ids import new_id
from forager.fetch.client import Client
from forager.jobs.context import JobContext
from forager.jobs.job import Lease
from forager.jobs.queue import Queue
from forager.jobs.shared import SharedServices
from forager.logs import configure_logs
from forager.processes.control import StopCause
from forager.settings import Settings

PAGES = 200
FIRST_RUN = 6.0
DELAY = 0.5
LIMIT = 600.0
HUNDRED = 100

# half of them settled; the others come after those that the crawl has found itself
FILL = """
    INSERT INTO crawl_visited (job_id, url_hash, url, outcome, reason, depth, via)
    SELECT %(job)s, substr(sha256(url::bytea), 1, 16), url, 'excluded', 'robots', 1, 'link'
      FROM (SELECT %(base)s || 'settled/' || n AS url
              FROM generate_series(1, %(half)s) AS n) AS settled;
    INSERT INTO crawl_frontier (job_id, depth, seq, url_hash, url, via)
    SELECT %(job)s, 2, s.next_seq + n, substr(sha256(url::bytea), 1, 16), url, 'link'
      FROM crawl_states s,
           generate_series(1, %(half)s) AS n,
           LATERAL (SELECT %(base)s || 'pending/' || n AS url) AS pending
     WHERE s.job_id = %(job)s;
    UPDATE crawl_states
       SET discovered = discovered + 2 * %(half)s, excluded = excluded + %(half)s,
           total_processed = total_processed + %(half)s,
           total_pending = total_pending + %(half)s, next_seq = next_seq + %(half)s + 1
     WHERE job_id = %(job)s;
    ANALYZE crawl_visited, crawl_frontier;
"""


class Run:
    """One run of the job, and the seconds from its start to its first steps."""

    def __init__(self, queue: Queue, database: Database, settings: Settings) -> None:
        self._queue = queue
        self._database = database
        self._settings = settings
        self._shared = SharedServices()
        self.seconds: dict[str, float] = {}
        self._requests = 0

    async def start(self, job_id: UUID) -> None:
        worker = new_id()
        [job] = await self._queue.claim(worker, kinds=["crawl"], only=job_id)
        lease = Lease(job.id, job.lease, worker)
        self._lease = lease
        self.context = JobContext(
            job,
            lease,
            self._database,
            self._settings,
            shared=self._shared,
            on_progress=lambda: self._note("commit"),
        )
        self._began = time.perf_counter()
        self._task = asyncio.ensure_future(crawl(self.context))

    async def stop(self) -> None:
        self.context.ask_to_stop(StopCause.SHUTDOWN)
        async with self._shared:
            await self._task
        await self._queue.release(self._lease, reason="benchmark")

    def _note(self, step: str) -> None:
        self.seconds.setdefault(step, time.perf_counter() - self._began)

    def watch(self) -> None:
        """Note the first request, and when all known URLs are loaded."""
        fetch, load = Client.fetch, KnownUrls._load

        async def noted_fetch(client: Client, *given: object, **options: object) -> object:
            self._requests += 1
            self._note("request")
            if self._requests == HUNDRED:
                self._note("hundred")
            return await fetch(client, *given, **options)  # type: ignore[arg-type]

        async def noted_load(known: KnownUrls) -> None:
            await load(known)
            self._note("loaded")

        Client.fetch = noted_fetch  # type: ignore[method-assign, assignment]
        KnownUrls._load = noted_load  # type: ignore[method-assign, assignment]

    async def until_measured(self) -> None:
        end = time.monotonic() + LIMIT
        steps = {"loaded", "hundred"}
        while steps - self.seconds.keys() and time.monotonic() < end and not self._task.done():
            await asyncio.sleep(0.1)


async def measure(url: str, home: Path, site: str, count: int) -> list[list[str]]:
    async with Database(url, max_size=8) as database:
        settings = Settings(home=home)
        queue = Queue(database, settings)
        options = crawl_options({"urls": [site], "allow_private": True, "delay": DELAY})
        asked = await request_crawl(queue, options, source="site")
        first = Run(queue, database, settings)
        await first.start(asked.job.id)
        await asyncio.sleep(FIRST_RUN)
        await first.stop()
        await asyncio.to_thread(fill, url, asked.job.id, site, count // 2)
        resumed = Run(queue, database, settings)
        resumed.watch()
        await resumed.start(asked.job.id)
        await resumed.until_measured()
        await resumed.stop()
        steps = {
            "request": "first request",
            "commit": "first commit",
            "hundred": f"request {HUNDRED}, {HUNDRED * DELAY:.0f} seconds at the site's pace",
            "loaded": "all URLs loaded",
        }
        shown = {name: f"{resumed.seconds.get(step, LIMIT):.1f}" for step, name in steps.items()}
        return [[name, seconds] for name, seconds in shown.items()]


def fill(url: str, job_id: UUID, base: str, half: int) -> None:
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        connection.execute(FILL, {"job": job_id, "base": base, "half": half})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=10_000_000)
    options = parser.parse_args()
    configure_logs("critical")
    report = Report("Resuming a crawl that knows many URLs")
    report.text("Generated by `make bench-growth`.")
    with (
        tempfile.TemporaryDirectory(prefix="forager-bench-") as folder,
        join_server(Path(folder) / "server") as use,
        many_sites(1, PAGES) as sites,
    ):
        report.table(("machine", ""), describe_machine(Path(folder)))
        schema.ensure_current(use.url)
        rows = uvloop.run(measure(use.url, Path(folder) / "home", sites[0], options.urls))
    report.heading("From the claim of the job")
    report.text(f"The crawl knows {options.urls:,} URLs; half of them are pending.")
    report.table(("step", "seconds"), rows)
    print(report.write("resume.md"), end="")


if __name__ == "__main__":
    main()
