"""Rates of the queue's statements: claims, enqueues and heartbeats on a table of a given size."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import LiteralString
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import psycopg
from psycopg import sql

from forager.db import schema
from forager.db.database import Database
from forager.db.ids import new_id
from forager.jobs.job import Job, Lease, NewJob
from forager.jobs.queue import Queue
from forager.settings import Settings

KIND = "selftest"
PAYLOAD = {"steps": 0, "seconds": 0.0}
BATCH = 20
CLAIMERS = 4
# the owner of all jobs that a measurement adds, so that they can be removed
BENCH_USER = UUID(int=7)

# every row is due, so the index that claims read is as large as it can be
LOAD: LiteralString = """
    INSERT INTO crawl_jobs (id, kind, payload, priority, created_at, run_after)
    SELECT uuidv7(), 'selftest', '{"steps": 0, "seconds": 0}', mod(n, 3),
           now() - (%(rows)s - n) * interval '10 ms', now() - interval '1 hour'
      FROM generate_series(1, %(rows)s) AS n
"""
GIVE_BACK: LiteralString = """
    UPDATE crawl_jobs SET status = 'pending', worker_id = NULL WHERE worker_id IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A separate database with pending jobs."""

    rows: int
    url: str


@dataclass(frozen=True, slots=True)
class Beats:
    """The effect of heartbeats on the table."""

    updates: int
    hot: int
    cleanups: int
    seconds: float


def load_table(server: str, rows: int) -> Table:
    """Create a database with this number of rows."""
    table = _create(server, f"queue_{rows}", rows, sql.SQL(""))
    schema.upgrade(table.url)
    _execute(table, LOAD, {"rows": rows})
    _execute(table, "VACUUM (ANALYZE)")
    # write everything to disk before the measurement
    _execute(table, "CHECKPOINT")
    return table


def copy_without_waiting(server: str, table: Table) -> Table:
    """A copy of the rows in a database whose commits do not wait for the disk."""
    name = urlsplit(table.url).path.strip("/")
    source = sql.SQL("TEMPLATE {} STRATEGY file_copy").format(sql.Identifier(name))
    copy = _create(server, f"{name}_unsafe", table.rows, source)
    text = sql.SQL("ALTER DATABASE {} SET synchronous_commit = off")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(text.format(sql.Identifier(f"{name}_unsafe")))
    return copy


def _create(server: str, name: str, rows: int, source: sql.Composable) -> Table:
    text = sql.SQL("CREATE DATABASE {} {}").format(sql.Identifier(name), source)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(text)
    return Table(rows, urlunsplit(urlsplit(server)._replace(path=f"/{name}")))


@asynccontextmanager
async def opened_queue(table: Table, *, sessions: int = 1) -> AsyncIterator[Queue]:
    """A queue whose connections are open before the measurement starts."""
    async with Database(table.url, max_size=sessions) as database:
        async with AsyncExitStack() as stack:
            for _ in range(sessions):
                await stack.enter_async_context(database.connection())
        yield Queue(database, Settings())


# --- claims ----------------------------------------------------------------------------------


async def claim_rate(table: Table, jobs: int, *, limit: int, claimers: int) -> float:
    """Claims per second of several workers that claim up to `limit` jobs at a time."""
    calls = jobs // limit // claimers
    async with opened_queue(table, sessions=claimers) as queue:
        start = time.perf_counter()
        claimed = await asyncio.gather(*(_claim(queue, calls, limit) for _ in range(claimers)))
        seconds = time.perf_counter() - start
    ids = [job.id for part in claimed for job in part]
    assert len(ids) == calls * limit * claimers, "a claim came back with too few jobs"
    assert len(set(ids)) == len(ids), "a job was claimed twice"
    _execute(table, GIVE_BACK)
    return len(ids) / seconds


async def _claim(queue: Queue, calls: int, limit: int) -> list[Job]:
    worker = new_id()
    claimed: list[Job] = []
    for _ in range(calls):
        claimed += await queue.claim(worker, kinds=[KIND], limit=limit)
    return claimed


# --- enqueues --------------------------------------------------------------------------------


async def enqueue_rate(table: Table, jobs: int, *, batch: int) -> float:
    """Enqueued jobs per second, several per call."""
    new = NewJob(kind=KIND, payload=PAYLOAD, user_id=BENCH_USER)
    async with opened_queue(table) as queue:
        start = time.perf_counter()
        for _ in range(jobs // batch):
            if batch == 1:
                await queue.enqueue(new, actor="bench")
            else:
                await queue.enqueue_many([new] * batch, actor="bench")
        seconds = time.perf_counter() - start
    _execute(table, "DELETE FROM crawl_jobs WHERE user_id = %(user)s", {"user": BENCH_USER})
    return jobs / seconds


# --- heartbeats ------------------------------------------------------------------------------


async def beat(table: Table, *, workers: int, rounds: int) -> Beats:
    """Let workers with twenty jobs each renew their leases repeatedly."""
    async with opened_queue(table) as queue:
        leased = [await _claim_leases(queue) for _ in range(workers)]
    before = await _counts(table)
    async with opened_queue(table) as queue:
        start = time.perf_counter()
        for _ in range(rounds):
            for leases in leased:
                renewed = await queue.heartbeat(leases)
                assert len(renewed) == BATCH, "a heartbeat was refused"
        seconds = time.perf_counter() - start
    after = await _counts(table)
    _execute(table, GIVE_BACK)
    updates, hot, cleanups = (late - early for early, late in zip(before, after, strict=True))
    return Beats(updates, hot, cleanups, seconds)


async def _claim_leases(queue: Queue) -> list[Lease]:
    worker = new_id()
    jobs = await queue.claim(worker, kinds=[KIND], limit=BATCH)
    return [Lease(job.id, job.lease, worker) for job in jobs]


async def _counts(table: Table) -> tuple[int, int, int]:
    """Updates, HOT updates, cleanups. Sessions report theirs at the latest when they end."""
    async with Database(table.url, max_size=1) as database, database.connection() as connection:
        async with asyncio.timeout(10):
            while await _other_sessions(connection):
                await asyncio.sleep(0.05)
        cursor = await connection.execute(
            """
            SELECT n_tup_upd, n_tup_hot_upd, autovacuum_count + autoanalyze_count
              FROM pg_stat_user_tables
             WHERE relname = 'crawl_jobs'
            """
        )
        row = await cursor.fetchone()
    assert row is not None
    return row[0], row[1], row[2]


async def _other_sessions(connection: psycopg.AsyncConnection[tuple[int, ...]]) -> int:
    cursor = await connection.execute(
        """
        SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND backend_type = 'client backend'
           AND pid <> pg_backend_pid()
        """
    )
    row = await cursor.fetchone()
    return row[0] if row else 0


def _execute(
    table: Table, statement: LiteralString, values: dict[str, object] | None = None
) -> None:
    with psycopg.connect(table.url, autocommit=True) as connection:
        connection.execute(statement, values)
