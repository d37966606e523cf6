"""Run crawls in a test, and read the outcome of every URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
import zstandard

from forager.crawl.batch import Batch, Committer
from forager.crawl.options import crawl_options
from forager.crawl.reports.report import crawl_report
from forager.crawl.service import CRAWL, request_crawl
from forager.db.database import Database
from forager.db.ids import new_id
from forager.jobs.context import JobContext
from forager.jobs.job import Job, Lease
from forager.jobs.queue import Queue
from forager.jobs.runner import Runner
from forager.jobs.shared import SharedServices
from forager.settings import Settings
from support.sql import execute

Ledger = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """The outcome of one URL."""

    url: str
    outcome: str
    reason: str | None
    detail: str | None
    duplicate_of: str | None
    http_status: int | None
    depth: int
    via: str
    attempts: int
    title: str | None
    outlinks: frozenset[str]


@dataclass(frozen=True)
class Crawled:
    """A crawl that ended or paused: job, report, settled and pending URLs."""

    job: Job
    report: dict[str, Any]
    visited: dict[str, Row]
    pending: dict[str, int]

    @property
    def ledger(self) -> Ledger:
        ledger: Ledger = self.report["ledger"]
        return ledger

    def outcomes(self, origin: str) -> dict[str, str]:
        """Path -> outcome and reason, as `failed:http_404`."""
        return {
            url.removeprefix(origin): row.outcome + (f":{row.reason}" if row.reason else "")
            for url, row in self.visited.items()
        }

    def pages(self, origin: str = "") -> set[str]:
        return {
            url.removeprefix(origin)
            for url, row in self.visited.items()
            if row.outcome == "fetched"
        }


class Crawls:
    """Requests crawls, and runs them in this process under a lease, as a worker does."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.settings = settings
        self.queue = Queue(database, settings)
        self.context: JobContext | None = None

    async def ask(
        self, *urls: str, max_retries: int = 3, source: str | None = None, **options: Any
    ) -> UUID:
        """A crawl of a new source without earlier generations, unless a source is named."""
        given = {
            "urls": urls,
            "allow_private": True,
            "concurrency": 8,
            "retries": 1,
            "retry_delay": 0.05,
            **options,
        }
        wanted = crawl_options(given)
        asked = await request_crawl(
            self.queue, wanted, source=source or f"crawl {new_id()}", max_retries=max_retries
        )
        return asked.job.id

    async def run(self, *urls: str, **options: Any) -> Crawled:
        """Request a crawl and run it."""
        return await self.go_on(await self.ask(*urls, **options))

    async def go_on(self, job_id: UUID, *, renders: bool = False, alone: bool = True) -> Crawled:
        """Claim a job and run it until it ends, pauses or is released."""
        worker_id = new_id()
        [job] = await self.queue.claim(worker_id, kinds=["crawl"], only=job_id, renders=renders)
        lease = Lease(job.id, job.lease, worker_id)
        async with SharedServices() as shared:
            self.context = JobContext(
                job, lease, self.database, self.settings, shared=shared, alone=alone
            )
            await Runner(self.context, CRAWL, self.queue).run()
        return await self.look(job_id)

    async def look(self, job_id: UUID) -> Crawled:
        report = await crawl_report(self.database, self.queue, job_id)
        rows = await self.sql(
            """
            SELECT url, outcome, reason, detail, duplicate_of, http_status, depth, via, attempts,
                   title, outlinks
              FROM crawl_visited WHERE job_id = %s
            """,
            job_id,
        )
        pending = await self.sql("SELECT url, depth FROM crawl_frontier WHERE job_id = %s", job_id)
        await check_ledger(self.database, job_id)
        return Crawled(
            await self.queue.get(job_id),
            report.as_json(),
            {row[0]: _row(row) for row in rows},
            dict(pending),
        )

    async def sql(self, statement: Any, *values: object) -> list[Any]:
        return await execute(self.database, statement, *values)


def _row(values: Sequence[Any]) -> Row:
    fields = list(values)
    fields[-1] = _unpacked(fields[-1])
    return Row(*fields)


def _unpacked(outlinks: bytes | None) -> frozenset[str]:
    if not outlinks:
        return frozenset()
    return frozenset(zstandard.decompress(outlinks).decode().split())


# --- the ledger is checked against the tables, at every commit -----------------------------------


def check_every_commit(monkeypatch: pytest.MonkeyPatch, database: Database) -> None:
    write = Committer.write

    async def write_and_check(self: Committer, batch: Batch) -> None:
        await write(self, batch)
        await check_ledger(database, self.context.lease.job_id)

    monkeypatch.setattr(Committer, "write", write_and_check)


async def check_ledger(database: Database, job_id: UUID) -> None:
    """The counters of a crawl are what its tables hold, outcome by outcome, reason by reason."""
    async with database.transaction() as connection:
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor = await connection.execute(
            """
            SELECT discovered, total_pending, reasons, ARRAY[fetched, unchanged, duplicate, failed,
                   excluded]
              FROM crawl_states WHERE job_id = %s AND discovered IS NOT NULL
            """,
            (job_id,),
        )
        state = await cursor.fetchone()
        cursor = await connection.execute(
            """
            SELECT outcome, reason, count(*) FILTER (WHERE carried_over), count(*)
              FROM crawl_visited WHERE job_id = %s
             GROUP BY outcome, reason
            """,
            (job_id,),
        )
        visited = await cursor.fetchall()
        cursor = await connection.execute(
            "SELECT count(*), count(DISTINCT url_hash) FROM crawl_frontier WHERE job_id = %s",
            (job_id,),
        )
        frontier = await cursor.fetchone()
        cursor = await connection.execute(
            """
            SELECT f.url FROM crawl_frontier f JOIN crawl_visited v USING (job_id, url_hash)
             WHERE job_id = %s
            """,
            (job_id,),
        )
        assert await cursor.fetchall() == [], "both pending and settled"
    if state is None:
        assert not visited
        return
    discovered, pending, reasons, settled = state
    names = ["fetched", "unchanged", "duplicate", "failed", "excluded"]
    assert frontier == (pending, pending)
    assert settled == [sum(n for o, _, _, n in visited if o == name) for name in names]
    assert discovered == pending + sum(settled)
    counted = {(o, r): n for o, r, _, n in visited if r is not None}
    assert counted == {(o, r): n for o in names for r, n in reasons.get(o, {}).items()}
    carried = {r: n for o, r, n, _ in visited if o == "failed" and n}
    assert carried == reasons.get("carried_over", {})
    assert not any(n for o, _, n, _ in visited if o != "failed")
