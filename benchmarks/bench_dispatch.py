"""Speed of dispatching tasks to workers: with Celery on RabbitMQ, and with PostgreSQL alone.

    python -m benchmarks.bench_dispatch --broker amqp://... [--idle 10000] [--real 1200]

Runs a separate embedded PostgreSQL in a temporary folder, prints a report and writes it to
`benchmarks/results/dispatch.md`. The broker must run already: `scripts/services start rabbitmq`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import uvloop
from kombu import Connection
from pydantic import SecretStr

from benchmarks.machine import describe_machine
from benchmarks.report import Report
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.dispatch.broker import Broker
from forager.dispatch.message import Band, Route, TaskMessage, routes_of
from forager.dispatch.relay import BATCH, Relay
from forager.logs import configure_logs
from forager.services.supervisor import running
from forager.settings import Dispatch, Settings
from forager.tasks.hints import send_hints
from forager.tasks.store.stages import notify_workers

WORKERS = (1, 2, 4)
DOMAINS = 50
SHOPS = 4
LIMIT = 300.0
GOAL = 5_000

MAKE_DOMAINS = """
    INSERT INTO domains (domain_name, base_url, allow_private, max_concurrent_requests,
                         crawl_delay_seconds)
    SELECT name, 'http://' || name || '/', true, 1000, 0 FROM unnest(%s::text[]) AS name
    ON CONFLICT (domain_name) DO NOTHING
"""
MAKE_TASKS = """
    WITH numbered AS (
        SELECT id, domain_name, row_number() OVER (ORDER BY id) - 1 AS nth,
               count(*) OVER () AS domains
          FROM domains
    )
    INSERT INTO crawl_tasks (domain_id, url, url_hash, status)
    SELECT d.id, 'http://' || d.domain_name || '/p/' || n, sha256((d.id || '/' || n)::bytea),
           'queued'
      FROM generate_series(1, %(tasks)s) AS n JOIN numbered d ON d.nth = n %% d.domains
    RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Bench:
    """The addresses of all servers."""

    url: str
    broker: str
    home: Path

    def settings(self, dispatch: Dispatch) -> Settings:
        return Settings(
            home=self.home,
            database_url=SecretStr(self.url),
            dispatch=dispatch,
            broker_url=SecretStr(self.broker),
            images=False,
            poll_interval=0.2,
            recrawl_every=86400,
            log_level="critical",
        )

    def environment(self, dispatch: Dispatch) -> dict[str, str]:
        return os.environ | {
            "FORAGER_HOME": str(self.home),
            "FORAGER_DATABASE_URL": self.url,
            "FORAGER_DISPATCH": dispatch.value,
            "FORAGER_BROKER_URL": self.broker,
            "FORAGER_IMAGES": "false",
            "FORAGER_POLL_INTERVAL": "0.2",
            "FORAGER_LOG_LEVEL": "critical",
        }

    def clean(self, domains: list[str]) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("TRUNCATE domains, crawl_tasks, outbox, workers CASCADE")
            connection.execute(MAKE_DOMAINS, (domains,))
            connection.execute("VACUUM ANALYZE crawl_tasks, outbox")
        with Connection(self.broker) as connection:
            channel = connection.default_channel
            for route in routes_of(None):
                channel.queue_purge(route.queue)


# --- the relay -----------------------------------------------------------------------------------


async def relay_rate(bench: Bench, messages: int) -> float:
    """Messages of one task each, from the outbox into the broker, confirmed and deleted."""
    bench.clean([f"d{n}.example" for n in range(DOMAINS)])
    async with Database(bench.url, name="bench") as database:
        async with database.connection() as connection:
            await connection.execute(
                """
                INSERT INTO outbox (topic, lane, ref_id, payload)
                SELECT 'crawl', 1 + n %% 3, d.first + n %% %s, ARRAY[n]
                  FROM generate_series(1, %s) AS n, (SELECT min(id) AS first FROM domains) AS d
                """,
                (DOMAINS, messages),
            )
        relay = Relay(database, bench.settings(Dispatch.CELERY))
        try:
            began = time.perf_counter()
            while await relay.run_once() == BATCH:
                pass
            return messages / (time.perf_counter() - began)
        finally:
            relay.close()


def publish_rate(bench: Bench, messages: int) -> float:
    """The same number of messages without the database."""
    broker = Broker(bench.broker)
    route = Route("crawl", Band.NORMAL)
    broker.publish([TaskMessage(route, [1])])
    began = time.perf_counter()
    for _ in range(messages // BATCH):
        broker.publish([TaskMessage(route, [number]) for number in range(1, BATCH + 1)])
    rate = messages / (time.perf_counter() - began)
    broker.close()
    return rate


# --- tasks ---------------------------------------------------------------------------------------


@contextmanager
def processes(number: int, *command: str, environment: dict[str, str]) -> Iterator[None]:
    running = [subprocess.Popen(command, env=environment) for _ in range(number)]
    try:
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(60)


@asynccontextmanager
async def relaying(database: Database, settings: Settings) -> AsyncIterator[None]:
    if settings.dispatch is not Dispatch.CELERY:
        yield
        return
    async with running([Relay(database, settings).service()]):
        yield


async def until(database: Database, query: Any, wanted: int) -> None:
    async with asyncio.timeout(LIMIT):
        while True:
            async with database.connection() as connection:
                row = await (await connection.execute(query)).fetchone()
            if row is not None and row[0] >= wanted:
                return
            await asyncio.sleep(0.02)


async def task_rate(bench: Bench, dispatch: Dispatch, workers: int, tasks: int) -> float:
    """Seconds from the commit that queues all tasks to the completion of the last."""
    settings = bench.settings(dispatch)
    async with Database(bench.url, name="bench") as database, relaying(database, settings):
        await until(database, "SELECT count(*) FROM workers WHERE role = 'tasks'", workers)
        async with database.transaction() as connection:
            cursor = await connection.execute(MAKE_TASKS, {"tasks": tasks})
            await send_hints(connection, settings, [row[0] for row in await cursor.fetchall()])
            await notify_workers(connection)
        began = time.perf_counter()
        query = "SELECT count(*) FROM crawl_tasks WHERE status = 'completed'"
        await until(database, query, tasks)
        return tasks / (time.perf_counter() - began)


async def idle_rate(bench: Bench, dispatch: Dispatch, workers: int, tasks: int) -> float:
    bench.clean([f"d{n}.example" for n in range(DOMAINS)])
    command = (sys.executable, "-m", "benchmarks.dispatch_worker")
    with processes(workers, *command, environment=bench.environment(dispatch)):
        return await task_rate(bench, dispatch, workers, tasks)


async def real_rate(
    bench: Bench, dispatch: Dispatch, workers: int, tasks: int, shops: list[str]
) -> float:
    bench.clean(shops)
    flag = "--celery" if dispatch is Dispatch.CELERY else "--no-celery"
    command = (str(Path(sys.executable).parent / "forager"), "worker", "--no-jobs", flag)
    with processes(workers, *command, environment=bench.environment(dispatch)):
        return await task_rate(bench, dispatch, workers, tasks)


@contextmanager
def open_shops() -> Iterator[list[str]]:
    with ExitStack() as stack:
        hosts = []
        for _ in range(SHOPS):
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.dispatch_shop"], stdout=subprocess.PIPE
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            assert process.stdout is not None
            stack.callback(process.stdout.close)
            hosts.append(f"127.0.0.1:{int(process.stdout.readline())}")
        yield hosts


# --- the report ----------------------------------------------------------------------------------


def print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure_relay(bench: Bench, options: argparse.Namespace, report: Report) -> None:
    relayed, published = [], []
    for _ in range(options.rounds):
        relayed.append(uvloop.run(relay_rate(bench, options.messages)))
        published.append(publish_rate(bench, options.messages))
        print_progress(f"relay {relayed[-1]:,.0f}/s, broker alone {published[-1]:,.0f}/s")
    report.heading("The relay, in messages per second")
    report.text(
        f"{options.messages:,} messages of one task each, in batches of {BATCH}, to durable quorum"
        f" queues; median of {options.rounds} rounds. Goal: over {GOAL:,}."
    )
    rows = [
        ["from the outbox: read, sent, confirmed, deleted", f"{statistics.median(relayed):,.0f}"],
        ["the broker alone: sent, confirmed", f"{statistics.median(published):,.0f}"],
    ]
    report.table(("", "messages/s"), rows)


def measure_tasks(bench: Bench, options: argparse.Namespace, report: Report) -> None:
    rows = []
    with open_shops() as shops:
        for workers in WORKERS:
            row = [str(workers)]
            for dispatch in (Dispatch.POSTGRES, Dispatch.CELERY):
                rate = uvloop.run(idle_rate(bench, dispatch, workers, options.idle))
                row.append(f"{rate:,.0f}")
            for dispatch in (Dispatch.POSTGRES, Dispatch.CELERY):
                rate = uvloop.run(real_rate(bench, dispatch, workers, options.real, shops))
                row.append(f"{rate:,.0f}")
            print_progress(f"workers, no-op and real, PostgreSQL and Celery: {row}")
            rows.append(row)
    report.heading("Tasks per second")
    report.text(
        "Measured from the commit that queues all tasks to the completion of the last one. No-op:"
        f" a task is claimed and settled without further work ({options.idle:,} tasks of {DOMAINS}"
        f" domains). Real: a page is downloaded from one of {SHOPS} small shops on loopback,"
        f" archived, parsed and written ({options.real:,} tasks). Workers, broker, database and"
        " shops share one machine, so more workers than cores only compete for the cores."
    )
    head = ("workers", "no-op, PostgreSQL", "no-op, Celery", "real, PostgreSQL", "real, Celery")
    report.table(head, rows)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", default=os.environ.get("FORAGER_BROKER_URL"))
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--real", type=int, default=1_200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not options.broker:
        parser.error("--broker or FORAGER_BROKER_URL must say where RabbitMQ is")
    return options


def main() -> None:
    options = parse_options()
    configure_logs("critical")
    report = Report("Dispatch, measured")
    with tempfile.TemporaryDirectory(prefix="forager-bench-") as folder:
        machine = describe_machine(Path(folder))
        with join_server(Path(folder) / "server") as use:
            report.text("Generated by `make bench-dispatch`.")
            report.table(("machine", ""), machine)
            schema.upgrade(use.url)
            bench = Bench(use.url, options.broker, Path(folder) / "home")
            Broker(options.broker).depths(route.queue for route in routes_of(None))
            measure_relay(bench, options, report)
            measure_tasks(bench, options, report)
    print(report.write("dispatch.md"), end="")


if __name__ == "__main__":
    main()
