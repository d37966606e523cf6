"""How long a tick of the scheduler takes over a million tasks, a tenth of them due.

    python -m benchmarks.bench_scheduler [--tasks 1000000] [--due 100000] [--domains 1000]

Runs a separate embedded PostgreSQL in a temporary folder (about 1 GB), prints a report and
writes it to `benchmarks/results/scheduler.md`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg
import uvloop

from benchmarks.machine import describe_machine
from benchmarks.report import Report
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.logs import configure_logs
from forager.settings import Settings
from forager.tasks.scheduler import TASKS_PER_TICK, Scheduler, SchedulerTick

FEWEST_TICKS = 7
DOMAINS = """
    INSERT INTO domains (domain_name, base_url, next_slot_at)
    SELECT 'shop' || n || '.example', 'https://shop' || n || '.example/', now() - interval '1 day'
      FROM generate_series(1, %s) AS n
"""
# Due tasks are scattered over the table, as in an older installation.
TASKS = """
    INSERT INTO crawl_tasks (domain_id, url, url_hash, status, priority, popularity, scheduled_at,
                             completed_at, next_crawl_at, segment, segment_offset, segment_length)
    SELECT d.first + n %% %(domains)s,
           'https://shop' || n %% %(domains)s || '.example/product/' || n,
           sha256(n::text::bytea),
           CASE WHEN due AND %(state)s = 'pending' THEN 'pending' ELSE 'completed' END,
           1 + (n / 7) %% 10,
           n %% 100,
           now() - (n %% 86400) * interval '1 second',
           now() - interval '1 day',
           CASE
               WHEN NOT due THEN now() + (3600 + n %% 86400) * interval '1 second'
               WHEN %(state)s = 'completed' THEN now() - (n %% 86400) * interval '1 second'
           END,
           'task-' || n %% 500, n, 20000
      FROM generate_series(1, %(tasks)s) AS n,
           (SELECT min(id) AS first FROM domains) AS d,
           LATERAL (SELECT hashint4(n) & 1048575 < 1048576.0 * %(due)s / %(tasks)s AS due) AS chosen
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Ticks until all due tasks were woken: the result of the first, and the seconds of each."""

    name: str
    first: SchedulerTick
    seconds: list[float]


def load(url: str, options: argparse.Namespace, state: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE domains, crawl_tasks CASCADE")
        connection.execute(DOMAINS, (options.domains,))
        connection.execute(
            TASKS,
            {
                "state": state,
                "tasks": options.tasks,
                "due": options.due,
                "domains": options.domains,
            },
        )
        connection.execute("VACUUM ANALYZE domains, crawl_tasks")
        connection.execute("CHECKPOINT")


async def measure(url: str, name: str) -> Measured:
    """Run ticks one after the other; all queued tasks are completed between them."""
    ticks: list[SchedulerTick] = []
    seconds: list[float] = []
    async with Database(url, name="bench") as database:
        scheduler = Scheduler(database, Settings())
        while len(ticks) < FEWEST_TICKS or ticks[-1].woken:
            began = time.perf_counter()
            ticks.append(await scheduler.run_once())
            seconds.append(time.perf_counter() - began)
            print(f"{name}: {ticks[-1]} in {seconds[-1]:.2f} s", file=sys.stderr)
            async with database.connection() as connection:
                await connection.execute(
                    """
                    UPDATE crawl_tasks
                       SET status = 'completed', next_crawl_at = now() + interval '1 day'
                     WHERE status = 'queued'
                    """
                )
    return Measured(name, ticks[0], seconds)


def row(measured: Measured) -> list[str]:
    first = measured.first
    return [
        measured.name,
        f"{first.woken:,}",
        f"{first.queued:,}",
        f"{measured.seconds[0]:.2f}",
        f"{statistics.median(measured.seconds):.2f}",
        f"{max(measured.seconds):.2f}",
        f"{len(measured.seconds)} in {sum(measured.seconds):.1f} s",
    ]


def run(options: argparse.Namespace, url: str, report: Report) -> None:
    schema.upgrade(url)
    rows = []
    for state, name in (
        ("pending", "pending, now due"),
        ("completed", "completed, next visit due"),
    ):
        load(url, options, state)
        rows.append(row(uvloop.run(measure(url, name))))
    report.heading("One tick, in seconds")
    report.text(
        f"{options.tasks:,} tasks of {options.domains:,} domains with the default budget (one"
        f" request per second, five connections), about {options.due:,} of them due. Between two"
        " ticks, all queued tasks are completed. Goal: under 2 s. A tick processes one batch: it"
        f" wakes at most {TASKS_PER_TICK:,} tasks and queues at most {TASKS_PER_TICK:,}, and the"
        " next tick follows immediately while more tasks are due. A single tick does not process"
        " all due tasks; the last column shows how many ticks that took when all tasks had to be"
        " woken. The first tick runs just after a checkpoint, when PostgreSQL logs full pages."
    )
    head = (
        "due tasks",
        "woken by the first tick",
        "queued by the first tick",
        "first tick",
        "median",
        "longest",
        "ticks",
    )
    report.table(head, rows)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--due", type=int, default=100_000)
    parser.add_argument("--domains", type=int, default=1_000)
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    configure_logs("critical")
    report = Report("The scheduler, measured")
    with tempfile.TemporaryDirectory(prefix="forager-bench-") as folder:
        machine = describe_machine(Path(folder))
        with join_server(Path(folder)) as use:
            report.text("Generated by `python -m benchmarks.bench_scheduler`.")
            report.table(("machine", ""), machine)
            run(options, use.url, report)
    print(report.write("scheduler.md"), end="")


if __name__ == "__main__":
    main()
