"""Cost of a crawl's commit as the crawl grows.

    python -m benchmarks.bench_commit [--rounds 500] [--sizes 10000,100000,1000000,2000000]

One embedded database contains crawls with these numbers of settled URLs and as many pending ones.
Batches of 50 pages with 250 new links are committed to all of them in turn, by the production code.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from uuid import UUID

from benchmarks.machine import describe_machine
from benchmarks.report import Report
from forager.archive.local import LocalStorage
from forager.archive.writer import ArchiveWriter
from forager.crawl.batch import Committer
from forager.crawl.frontier.discovery import Discovery
from forager.crawl.frontier.entry import FrontierEntry, Via, found_url
from forager.crawl.frontier.scope import CrawlScope
from forager.crawl.frontier.window import START
from forager.crawl.ledger import CrawlState
from forager.crawl.options import crawl_options
from forager.crawl.pages import Pages
from forager.crawl.service import request_crawl
from forager.crawl.settlement import Outcome, Postponed, Settlement
from forager.crawl.store import frontier as frontier_rows
from forager.crawl.store import state as state_rows
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.db.ids import new_id
from forager.documents.writer import GenerationWriter
from forager.extract.document import EXTRACTOR_VERSION
from forager.extract.urls import NormalizedUrl
from forager.jobs.context import JobContext
from forager.jobs.job import Lease
from forager.jobs.kinds import load_kinds
from forager.jobs.queue import Queue
from forager.settings import Settings

SIZES = "10000,100000,1000000,2000000"
PAGES = 50
LINKS = 5
WARM_UP = 20
PARTS = 5


class GrownCrawl:
    """A crawl in progress that has settled many URLs."""

    def __init__(
        self, context: JobContext, writer: GenerationWriter, size: int, folder: Path
    ) -> None:
        self.size = size
        self.milliseconds: list[float] = []
        self._context = context
        self._state = CrawlState(next_seq=2 * size)
        self._state.ledger.pending = size
        self._state.ledger.settled[Outcome.FETCHED] = size
        options = crawl_options({"urls": [start_url(size)]})
        scope = CrawlScope(options.seeds)
        self._discovery = Discovery(scope, self._state.ledger, next_seq=self._state.next_seq)
        archive = ArchiveWriter(
            LocalStorage(folder), "bench", context.lease.number, register=_no_register
        )
        self._committer = Committer(
            context,
            options,
            self._state,
            self._discovery,
            archive,
            Pages(writer, scope),
            lambda _: None,
        )
        self._place = START

    @property
    def measured(self) -> list[float]:
        """The times without the first commits, which run with cold caches."""
        return self.milliseconds[WARM_UP:]

    async def fill(self) -> None:
        async with self._context.database.connection() as connection:
            await connection.execute("SET statement_timeout = 0")
            for statement in FILL:
                await connection.execute(
                    statement,
                    {"job_id": self._context.lease.job_id, "size": self.size,
                     "url": start_url(self.size)},
                )  # fmt: skip
        await self._committer.write(self._committer.assemble([]))

    async def commit(self) -> None:
        """Commit one batch; reading it from the frontier is not measured."""
        async with self._context.database.connection() as connection:
            entries = await frontier_rows.select_entries(
                connection, self._context.lease.job_id, after=self._place, limit=PAGES
            )
        self._place = (entries[-1].depth, entries[-1].seq)
        visits: list[Settlement | Postponed] = [self._settled(entry) for entry in entries]
        batch = self._committer.assemble(visits)
        began = time.perf_counter()
        await self._committer.write(batch)
        self.milliseconds.append((time.perf_counter() - began) * 1000)

    def _settled(self, entry: FrontierEntry) -> Settlement:
        urls = [NormalizedUrl(f"{entry.url}/{n}") for n in range(LINKS)]
        return Settlement(
            entry=entry,
            outcome=Outcome.FETCHED,
            http_status=200,
            content_type="text/html",
            title="A page of a manual",
            size=20_000,
            duration_ms=5,
            content_hash=entry.key * 2,
            outlinks=b"x" * 300,
            found=[found_url(url, Via.LINK, entry.depth + 1, entry.key) for url in urls],
        )


FILL = (
    """
    INSERT INTO crawl_visited (job_id, url_hash, url, outcome, http_status, depth, via,
                               content_type, title, size, duration_ms, content_hash, outlinks)
    SELECT %(job_id)s, substring(sha256(n::text::bytea) FOR 16), %(url)s || 'v/' || n, 'fetched',
           200, 3, 'link', 'text/html', 'A page of a manual', 20000, 5, sha256(n::text::bytea),
           repeat('x', 300)::bytea
      FROM generate_series(1, %(size)s) AS n
    """,
    """
    INSERT INTO crawl_frontier (job_id, depth, seq, url_hash, url, via)
    SELECT %(job_id)s, 4, n, substring(sha256((-n)::text::bytea) FOR 16),
           %(url)s || 'f/' || n, 'link'
      FROM generate_series(1, %(size)s) AS n
    """,
    "ANALYZE crawl_visited, crawl_frontier",
)


def start_url(size: int) -> str:
    return f"https://docs-{size}.example/"


async def _no_register(_: str) -> None:
    return None


async def measure(rounds: int, sizes: list[int], report: Report) -> None:
    with tempfile.TemporaryDirectory() as name, join_server(Path(name) / "home") as use:
        report.table(("machine", ""), describe_machine(Path(name)))
        schema.upgrade(use.url)
        async with Database(use.url) as database:
            settings = Settings(home=Path(name))
            crawls = []
            for size in sizes:
                print(f"filling a crawl of {size:,} settled URLs", file=sys.stderr)
                crawls.append(await _grown(database, settings, size, Path(name)))
            await _checkpoint(database)
            print(f"{rounds:,} commits to each", file=sys.stderr)
            for _ in range(rounds + WARM_UP):
                for crawl in crawls:
                    await crawl.commit()
    report_growth(report, crawls)
    report_checkpoint(report, crawls[0], crawls[-1], rounds)


def report_growth(report: Report, crawls: list[GrownCrawl]) -> None:
    report.heading("A commit against the size of the crawl, in milliseconds")
    report.text(
        f"Commits of {PAGES} pages and {PAGES * LINKS} new URLs each, made in turn in crawls with"
        " the given number of visited URLs and the same number of pending URLs."
    )
    smallest = statistics.mean(crawls[0].measured)
    rows = []
    for crawl in crawls:
        mean = statistics.mean(crawl.measured)
        p90 = statistics.quantiles(crawl.measured, n=10, method="inclusive")[-1]
        middle = statistics.median(crawl.measured)
        cells = [*(f"{ms:.1f}" for ms in (middle, mean, p90)), f"{mean / smallest:.2f}"]
        rows.append([f"{crawl.size:,}", *cells])
    report.table(("visited URLs", "median", "mean", "p90", "mean, against the first"), rows)


def report_checkpoint(report: Report, small: GrownCrawl, large: GrownCrawl, rounds: int) -> None:
    report.heading("The smallest and the largest after a checkpoint")
    report.text(
        "After a checkpoint, PostgreSQL logs each index page in full when it is first written,"
        " and the larger crawl has more such pages. The difference decreases until the next"
        " checkpoint."
    )
    step = max(1, rounds // PARTS)
    names = [
        f"{crawl.size:,}: {kind} ms" for kind in ("median", "mean") for crawl in (small, large)
    ]
    report.table(
        ("commits after a checkpoint", *names[:2], "ratio", *names[2:], "of means"),
        [_row(small, large, start, step) for start in range(0, step * PARTS, step)],
    )


def _row(small: GrownCrawl, large: GrownCrawl, start: int, count: int) -> list[str]:
    cells = [f"{start + 1:,} to {start + count:,}"]
    for average in (statistics.median, statistics.mean):
        below, above = (average(crawl.measured[start : start + count]) for crawl in (small, large))
        cells += [f"{below:.1f}", f"{above:.1f}", f"{above / below:.2f}"]
    return cells


async def _grown(database: Database, settings: Settings, size: int, folder: Path) -> GrownCrawl:
    queue = Queue(database, settings)
    asked = await request_crawl(queue, crawl_options({"urls": [start_url(size)]}))
    worker_id = new_id()
    [job] = await queue.claim(worker_id, kinds=["crawl"], only=asked.job.id)
    lease = Lease(job.id, job.lease, worker_id)
    context = JobContext(job, lease, database, settings)
    await _insert_state(context, job.id)
    writer = await GenerationWriter.open(
        context, base_url=start_url(size), extractor_version=EXTRACTOR_VERSION
    )
    crawl = GrownCrawl(context, writer, size, folder / f"archive-{size}")
    await crawl.fill()
    return crawl


async def _insert_state(context: JobContext, job_id: UUID) -> None:
    async with context.commit() as connection:
        await state_rows.start_over(connection, job_id)


async def _checkpoint(database: Database) -> None:
    """Finish the checkpoint after filling, so that it does not disturb the measurement."""
    async with database.connection() as connection:
        await connection.execute("CHECKPOINT")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500, help="commits to each crawl")
    parser.add_argument("--sizes", default=SIZES, help="settled URLs, with commas")
    options = parser.parse_args()
    load_kinds()
    report = Report("Cost of a commit")
    report.text("Generated by `python -m benchmarks.bench_commit`.")
    sizes = [int(size) for size in options.sizes.split(",")]
    asyncio.run(measure(options.rounds, sizes, report))
    print(report.write("commit.md"))


if __name__ == "__main__":
    main()
