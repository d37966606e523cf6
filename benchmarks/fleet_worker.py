"""One worker over a database of its own until all jobs are done, and the resources it used."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from benchmarks.many_shops import addresses
from benchmarks.usage import tree_cpu
from forager.crawl.options import crawl_options
from forager.crawl.service import request_crawl
from forager.db.database import Database
from forager.jobs.queue import Queue
from forager.settings import Settings

LOOK = 0.5
# reading the memory of all processes takes time itself
MEMORY_EVERY = 2.0
# a run that takes longer is ended, and its row shows how far it came
LIMIT = 240.0
STOP_LIMIT = 60.0
# statements are counted in the log of the server for a part of a run
COUNT_AFTER = 10.0
COUNT_FOR = 8.0
STATEMENT = re.compile(rb"LOG:  duration: [\d.]+ ms  (?:execute|statement)")

# the start URLs and the delay of a crawl
Crawl = tuple[Sequence[str], float]

STATE = """
    SELECT count(*) FILTER (WHERE status IN ('pending', 'processing')),
           count(*) FILTER (WHERE status = 'failed'),
           (SELECT coalesce(sum(fetched), 0)::int FROM crawl_states),
           (SELECT count(*) FROM pg_stat_activity
             WHERE application_name LIKE 'forager%' AND datname = current_database()),
           (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())
      FROM crawl_jobs
"""
LAST_COMPLETED = """
    SELECT extract(epoch FROM clock_timestamp() - max(completed_at))::float8
      FROM crawl_jobs
"""
# by the delay of crawls: seconds from the first start to the last end
TIMES = """
    SELECT (payload ->> 'delay')::float8,
           extract(epoch FROM max(completed_at) - min(started_at))::float8
      FROM crawl_jobs
     WHERE status = 'completed'
     GROUP BY 1
"""


@dataclass(slots=True)
class Run:
    """One run of a worker."""

    crawls: int
    seconds: float = 0.0
    pages: int = 0
    failed: int = 0
    unfinished: int = 0
    peak_mb: float = 0.0
    processes: int = 0
    connections: int = 0
    commits: int = 0
    statements: float = 0.0
    worker_cpu: float = 0.0
    database_cpu: float = 0.0
    by_delay: dict[float, float] = field(default_factory=dict)

    def row(self, name: str, ideal: float) -> list[str]:
        return [
            name + self._complaint(),
            f"{self.pages:,}",
            f"{self.seconds:.1f}",
            f"{self.seconds / ideal:.2f}",
            f"{self.peak_mb:,.0f}",
            str(self.processes),
            str(self.connections),
            f"{1000 * self.worker_cpu / max(1, self.pages):.1f}",
            f"{1000 * self.database_cpu / max(1, self.pages):.1f}",
            f"{self.statements:.0f}",
            f"{self.commits / self.seconds:.1f}",
        ]

    def _complaint(self) -> str:
        if self.unfinished:
            return f" (ended after {self.seconds:.0f} s with {self.unfinished} crawls unfinished)"
        return f" ({self.failed} crawls failed)" if self.failed else ""


HEAD = (
    "work", "pages", "seconds", "times the ideal", "peak MB", "processes", "connections",
    "worker CPU ms/page", "PostgreSQL CPU ms/page", "statements/s", "commits/s",
)  # fmt: skip


@contextmanager
def many_sites(count: int, pages: int) -> Iterator[list[str]]:
    """The start URLs of this many sites."""
    command = [sys.executable, "-m", "benchmarks.many_sites", str(count), str(pages)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield [f"http://{address}:{port}/" for address in addresses(count)]
    finally:
        process.kill()
        process.communicate()


async def enqueue(url: str, crawls: Sequence[Crawl]) -> None:
    """Request crawls of these URLs with these delays."""
    async with Database(url, name="benchmark") as database:
        queue = Queue(database, Settings())
        for number, (urls, delay) in enumerate(crawls):
            given = {"urls": list(urls), "allow_private": True, "delay": delay}
            if not delay:
                given["concurrency"] = 64
            await request_crawl(queue, crawl_options(given), source=f"source {number}")


class Fleet:
    """Runs workers, each with a new database and a new home."""

    def __init__(self, url: str, server: int, folder: Path, capacity: int | None = None) -> None:
        """`url`: a database with the schema, which is copied. `server`: its process."""
        self._url = url
        self._server = server
        self._folder = folder
        self._capacity = capacity
        self._numbers = count(1)

    def run(self, crawls: Sequence[Crawl]) -> Run:
        """Crawl everything with one worker, with default settings."""
        name = f"run_{next(self._numbers)}"
        home = self._folder / name
        with self._database(name) as url:
            asyncio.run(enqueue(url, crawls))
            before = tree_cpu(self._server)
            worker = subprocess.Popen(
                [str(Path(sys.executable).parent / "forager"), "worker"],
                env=self._environment(url, home),
            )
            try:
                run = self._watch(Run(len(crawls)), worker, url)
                run.database_cpu = tree_cpu(self._server) - before
            finally:
                _end(worker)
        shutil.rmtree(home, ignore_errors=True)
        return run

    def _environment(self, url: str, home: Path) -> dict[str, str]:
        environment = os.environ | {
            "FORAGER_HOME": str(home),
            "FORAGER_DATABASE_URL": url,
            "FORAGER_LOG_LEVEL": "critical",
        }
        if self._capacity is not None:
            environment["FORAGER_WORKER_CAPACITY"] = str(self._capacity)
        return environment

    @contextmanager
    def _database(self, name: str) -> Iterator[str]:
        template = sql.Identifier(str(conninfo_to_dict(self._url)["dbname"]))
        administration = _with_database(self._url, "postgres")
        with psycopg.connect(administration, autocommit=True) as connection:
            new = sql.Identifier(name)
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(new, template))
            try:
                yield _with_database(self._url, name)
            finally:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(new))

    def _watch(self, run: Run, worker: subprocess.Popen[bytes], url: str) -> Run:
        began, first, measured = time.monotonic(), None, 0.0
        with psycopg.connect(url, autocommit=True) as connection:
            statements = StatementCount(connection)
            while (seconds := time.monotonic() - began) < LIMIT:
                time.sleep(LOOK)
                row = connection.execute(STATE).fetchone()
                assert row is not None
                run.unfinished, run.failed, run.pages, connections, commits = row
                first = commits if first is None else first
                run.commits = commits - first
                run.connections = max(run.connections, connections)
                run.seconds = time.monotonic() - began
                if worker.poll() is not None:
                    raise SystemExit(f"the worker ended with code {worker.returncode}")
                run.worker_cpu = tree_cpu(worker.pid)
                if not run.unfinished:
                    run.seconds -= _seconds_since_last(connection)
                    break
                statements.look(seconds)
                if seconds - measured >= MEMORY_EVERY:
                    measured = seconds
                    _measure(run, worker.pid)
            run.statements = statements.end()
            run.by_delay = dict(connection.execute(TIMES).fetchall())
        return run


def _seconds_since_last(connection: psycopg.Connection) -> float:
    row = connection.execute(LAST_COMPLETED).fetchone()
    assert row is not None
    return float(row[0])


def _with_database(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()


class StatementCount:
    """Counts statements per second in the log of the server, in the middle of a run."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        self._log = next(Path(row[0]).parent.glob("*.log"), None)
        self._began: float | None = None
        self._offset = 0
        self._rate: float | None = None

    def look(self, seconds: float) -> None:
        if self._log is None or self._rate is not None or seconds < COUNT_AFTER:
            return
        if self._began is None:
            self._began = seconds
            self._offset = self._log.stat().st_size
            self._set("0")
        elif seconds - self._began >= COUNT_FOR:
            self._finish(seconds)

    def end(self) -> float:
        """Statements per second; 0 for a run that was too short to count."""
        if self._began is not None and self._rate is None:
            self._set("-1")
        return self._rate or 0.0

    def _finish(self, seconds: float) -> None:
        assert self._log is not None
        assert self._began is not None
        self._set("-1")
        with self._log.open("rb") as log:
            log.seek(self._offset)
            found = sum(1 for line in log if STATEMENT.search(line))
        self._rate = found / (seconds - self._began)

    def _set(self, milliseconds: str) -> None:
        connection = self._connection
        connection.execute(f"ALTER SYSTEM SET log_min_duration_statement = {milliseconds}")
        connection.execute("SELECT pg_reload_conf()")


def _measure(run: Run, pid: int) -> None:
    size, processes = 0, [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    for process in processes:
        try:
            size += process.memory_full_info().pss
        except psutil.Error:  # it has ended
            continue
    run.peak_mb = max(run.peak_mb, size / 2**20)
    run.processes = max(run.processes, len(processes))


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.terminate()
    try:
        worker.wait(STOP_LIMIT)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
