"""Throughput and fairness of one worker over many hosts, at one request per second per host.

    python -m benchmarks.bench_hosts [--hosts 500,5000] [--seconds 60] [--note TEXT]

Runs a separate embedded PostgreSQL in a temporary folder, prints a report and writes it to
`benchmarks/results/hosts.md`. Every host is a loopback address.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from benchmarks.machine import describe_machine
from benchmarks.many_shops import addresses
from benchmarks.report import Report
from benchmarks.usage import tree_cpu
from forager.db import schema
from forager.db.embedded import join_server
from forager.logs import configure_logs

DELAY = 1.0
MAKE_DOMAINS = """
    INSERT INTO domains (domain_name, base_url, allow_private, crawl_delay_seconds)
    SELECT name, 'http://' || name || '/', true, %s FROM unnest(%s::text[]) AS name
"""
MAKE_TASKS = """
    INSERT INTO crawl_tasks (domain_id, url, url_hash)
    SELECT d.id, 'http://' || d.domain_name || '/p/' || n, sha256((d.id || '/' || n)::bytea)
      FROM domains d, generate_series(1, %s) AS n
"""
VISITS = """
    SELECT count(a.id) AS visits
      FROM domains d
      LEFT JOIN crawl_tasks t ON t.domain_id = d.id
      LEFT JOIN task_attempts a ON a.task_id = t.id AND a.stage = 'download' AND a.outcome = 'ok'
     GROUP BY d.id
"""


@dataclass(frozen=True, slots=True)
class Run:
    """What one worker did: visits per host, seconds, processor time and memory by part."""

    visits: list[int]
    seconds: float
    worker_cpu: float
    database_cpu: float
    peak_mb: float

    def row(self, hosts: int) -> list[str]:
        total = sum(self.visits)
        low, *_, high = statistics.quantiles(self.visits, n=20, method="inclusive")
        return [
            f"{hosts:,}",
            f"{total / self.seconds:,.0f}",
            f"{min(hosts / DELAY, total / self.seconds) / (hosts / DELAY):.0%}",
            f"{min(self.visits)}, {low:.0f}, {statistics.median(self.visits):.0f}, {high:.0f}",
            f"{1000 * self.worker_cpu / max(1, total):.1f}",
            f"{1000 * self.database_cpu / max(1, total):.1f}",
            f"{self.peak_mb:,.0f}",
        ]


@contextmanager
def shop(count: int) -> Iterator[int]:
    command = [sys.executable, "-m", "benchmarks.many_shops", str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def fill(url: str, hosts: list[str], tasks: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE domains, crawl_tasks, task_attempts, workers CASCADE")
        connection.execute(MAKE_DOMAINS, (DELAY, hosts))
        connection.execute(MAKE_TASKS, (tasks,))
        connection.execute("VACUUM ANALYZE domains, crawl_tasks")


def measure(url: str, server: int, home: Path, hosts: int, seconds: float) -> Run:
    with shop(hosts) as port:
        fill(url, [f"{address}:{port}" for address in addresses(hosts)], int(seconds) + 5)
        environment = os.environ | {
            "FORAGER_HOME": str(home),
            "FORAGER_DATABASE_URL": url,
            "FORAGER_IMAGES": "false",
            "FORAGER_LOG_LEVEL": "critical",
        }
        command = [str(Path(sys.executable).parent / "forager"), "worker", "--no-jobs"]
        before = tree_cpu(server)
        worker = subprocess.Popen(command, env=environment)
        try:
            began, peak = time.monotonic(), 0.0
            while time.monotonic() - began < seconds:
                time.sleep(1)
                peak = max(peak, memory(worker.pid))
            used = tree_cpu(worker.pid), tree_cpu(server) - before
            with psycopg.connect(url) as connection:
                visits = [row[0] for row in connection.execute(VISITS)]
            elapsed = time.monotonic() - began
        finally:
            worker.terminate()
            worker.wait(120)
    return Run(visits, elapsed, *used, peak)


def memory(pid: int) -> float:
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(process.memory_full_info().pss for process in processes) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", default="500,5000")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--note", default="", help="what else ran on the machine")
    options = parser.parse_args()
    configure_logs("critical")
    report = Report("Many hosts")
    with tempfile.TemporaryDirectory(prefix="forager-bench-") as folder:
        report.text("Generated by `make bench-hosts`.")
        report.table(("machine", ""), describe_machine(Path(folder)))
        rows = []
        with join_server(Path(folder) / "server") as use:
            schema.ensure_current(use.url)
            server = use.pid
            assert server is not None
            for hosts in map(int, options.hosts.split(",")):
                run = measure(use.url, server, Path(folder) / "home", hosts, options.seconds)
                rows.append(run.row(hosts))
                print(" | ".join(rows[-1]), file=sys.stderr)
        report.heading("One worker")
        report.text(
            f"One worker visits products of this many hosts for {options.seconds:.0f} s, including"
            " its start, at one request per second per host. The first visit of a host also"
            " fetches its robots.txt. Visits per host: minimum, 5th percentile, median, 95th"
            f" percentile. The shop runs on the same machine. {options.note}".rstrip()
        )
        head = (
            "hosts", "visits/s", "share of the allowed rate", "visits per host",
            "worker CPU ms/visit", "PostgreSQL CPU ms/visit", "peak MB",
        )  # fmt: skip
        report.table(head, rows)
    print(report.write("hosts.md"), end="")


if __name__ == "__main__":
    main()
