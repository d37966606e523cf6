"""How fast crawls were: exact while they are small, estimated from a fair sample when not."""

from __future__ import annotations

import time
from uuid import UUID

import pytest

from forager.crawl.reports import report as pace
from forager.db.database import Database
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue

START = time.time() - 600


async def settled(database: Database, queue: Queue, count: int) -> UUID:
    """A job that settled this many URLs evenly over a hundred seconds; every tenth failed."""
    job = (await queue.enqueue(NewJob(kind="selftest"))).job
    async with database.connection() as connection:
        await connection.execute(
            """
            INSERT INTO crawl_states (job_id, discovered, fetched, failed, reasons)
            VALUES (%(id)s, %(n)s, %(n)s - %(n)s / 10, %(n)s / 10,
                    jsonb_build_object('failed', jsonb_build_object('http_404', %(n)s / 10)))
            """,
            {"id": job.id, "n": count},
        )
        await connection.execute(
            """
            INSERT INTO crawl_visited (job_id, url_hash, url, outcome, depth, via, settled_at)
            SELECT %(id)s, substring(sha256(k::text::bytea) FOR 16), 'https://a.example/' || k,
                   CASE WHEN k %% 10 = 0 THEN 'failed' ELSE 'fetched' END, 0, 'link',
                   to_timestamp(%(start)s + 100.0 * (k - 0.5) / %(n)s)
              FROM generate_series(1, %(n)s::int) AS k
            """,
            {"id": job.id, "n": count, "start": START},
        )
    return job.id


async def test_a_small_crawl_is_counted(database: Database, queue: Queue) -> None:
    jobs = [await settled(database, queue, 100), await settled(database, queue, 100)]
    found = await pace.pace_of(database, jobs, since=START, until=START + 100, intervals=10)
    assert found.settled == [20] * 10
    assert sum(found.failed) == 20
    assert found.per_second == [2.0] * 10
    assert not found.estimated


async def test_a_large_crawl_is_estimated(
    database: Database, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "MAX_SAMPLE", 500)
    job = await settled(database, queue, 5000)
    found = await pace.pace_of(database, [job], since=START, until=START + 100, intervals=4)
    assert found.estimated
    assert sum(found.settled) == pytest.approx(5000)
    assert all(900 < count < 1600 for count in found.settled)


async def test_what_was_before_is_left_out(database: Database, queue: Queue) -> None:
    job = await settled(database, queue, 100)
    found = await pace.pace_of(database, [job], since=START + 50, until=START + 150, intervals=2)
    assert found.settled == [50, 0]
    nothing = await pace.pace_of(database, [], since=START, until=START + 10, intervals=3)
    assert nothing.settled == [0, 0, 0]


async def test_failures_are_summed_by_reason(database: Database, queue: Queue) -> None:
    jobs = [await settled(database, queue, 100), await settled(database, queue, 200)]
    assert await pace.failures_of(database, jobs) == [("http_404", 30)]
    assert await pace.failures_of(database, []) == []
