"""Speed of indexing sections in a search engine, and of searches with it.

    python -m benchmarks.bench_index --url http://127.0.0.1:9200 [--folder HTML] [--rows 300000]

Runs a separate embedded PostgreSQL in a temporary folder (about 2 GB), prints a report and
writes it to `benchmarks/results/index.md`. The engine must run already, as after
`scripts/services start opensearch`. The text comes from the HTML files of a folder. The
indexes are deleted at the end.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import uvloop

from benchmarks.bench_search import FOLDER
from benchmarks.machine import describe_machine
from benchmarks.report import Report
from benchmarks.search_load import SECTIONS_PER_PAGE, RealText, load, read_folder
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.documents.search import SearchRequest, search
from forager.documents.search.indexing import INDEXED_SECTIONS
from forager.index import engine
from forager.index.client import EngineClient
from forager.index.engine import SearchEngine
from forager.index.feeder import Feeder
from forager.index.reindex import Reindexer
from forager.logs import configure_logs

GOAL = 2_000
TIME_LIMIT = 9.0
# documents that are sent from the outbox in one round
SENT = 4_000


@asynccontextmanager
async def own_indexes(url: str) -> AsyncIterator[tuple[EngineClient, str]]:
    prefix = f"bench{uuid4().hex[:8]}"
    async with EngineClient(url) as client:
        yield client, prefix
        await client.request("DELETE", f"{prefix}-*")
        await client.request("DELETE", f"_index_template/{prefix}-*")


@dataclass(frozen=True, slots=True)
class Round:
    """Sections per second, and processor time per section, here and in the engine."""

    rate: float
    own_us: float
    engine_us: float


async def timed(
    client: EngineClient, sections: int, work: Callable[[], Awaitable[object]]
) -> Round:
    engine_cpu, local, began = (
        await engine_seconds(client),
        time.process_time(),
        time.perf_counter(),
    )
    await work()
    seconds, local = time.perf_counter() - began, time.process_time() - local
    engine_cpu = await engine_seconds(client) - engine_cpu
    return Round(sections / seconds, local / sections * 1e6, engine_cpu / sections * 1e6)


async def engine_seconds(client: EngineClient) -> float:
    """The processor time of the engine so far."""
    answer = await client.request("GET", "_nodes/stats/process")
    nodes = answer["nodes"].values()
    return float(sum(node["process"]["cpu"]["total_in_millis"] for node in nodes)) / 1000


async def reindex(database: Database, client: EngineClient, prefix: str) -> None:
    await Reindexer(database, client, prefix, grace=0).run(INDEXED_SECTIONS)


async def feed(database: Database, client: EngineClient, prefix: str) -> None:
    """Send sections from the outbox: indexed, refreshed, and deleted from the outbox."""
    feeder = Feeder(database, client, prefix, [INDEXED_SECTIONS])
    while await feeder.run_once():
        pass


async def tell(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO outbox (topic, ref_id)"
            " SELECT 'sections', id FROM documents WHERE id > 0 ORDER BY id LIMIT %s",
            (SENT,),
        )


async def search_rows(
    database: Database, used: SearchEngine, text: RealText, count: int
) -> list[list[str]]:
    chance = random.Random(1)
    pairs = text.two_words(count, chance)
    kinds = {
        "two words": pairs,
        "two words as a phrase": [f'"{pair}"' for pair in pairs],
        "one word": [pair.split()[0] for pair in pairs],
        "an identifier": text.names(count, chance),
    }
    rows = []
    for name, queries in kinds.items():
        row = [name]
        for asked in (None, used):
            times = []
            for query in [*queries[::3], *queries]:  # the first third warms up
                page = await search(database, SearchRequest(query=query), asked)
                assert page.note is None or "PostgreSQL" not in page.note, page.note
                times.append(page.took * 1000)
            times = times[-len(queries) :]
            p90 = statistics.quantiles(times, n=10, method="inclusive")[-1]
            row += [f"{statistics.median(times):.1f}", f"{p90:.1f}"]
        rows.append(row)
        print(" | ".join(row), file=sys.stderr)
    return rows


async def measure(options: argparse.Namespace, url: str, text: RealText, report: Report) -> None:
    async with (
        Database(url, name="bench", max_size=4) as database,
        own_indexes(options.url) as (client, prefix),
    ):
        filled = await timed(client, options.rows, lambda: reindex(database, client, prefix))
        print("filled:", filled, file=sys.stderr)
        fed = []
        for _ in range(options.rounds):
            await tell(database)
            sent = SENT * SECTIONS_PER_PAGE
            fed.append(await timed(client, sent, lambda: feed(database, client, prefix)))
        print("fed:", fed, file=sys.stderr)
        characters = sum(map(len, text.texts)) // len(text.texts)
        report.heading("Indexing")
        report.text(
            f"{options.rows:,} sections of {characters:,} characters on average,"
            f" {SECTIONS_PER_PAGE} per page, sent by one process. *From the outbox* includes every"
            f" step: claim, read, send in bulk, refresh, delete; {SENT * SECTIONS_PER_PAGE:,}"
            f" sections in each of {options.rounds} rounds replace sections that the engine already"
            " has. The engine is one node with a heap of 512 MB, on the same machine as PostgreSQL"
            f" and Python. The goal is {GOAL:,}. CPU is the processor time per section in"
            " microseconds, which excludes other work on the machine."
        )
        head = ("sections per second", "median", "slowest", "fastest", "CPU here", "CPU engine")
        report.table(
            head, [_spread("filled by a reindex", [filled]), _spread("from the outbox", fed)]
        )
        report.heading("Searching with it, in milliseconds")
        report.text(
            "Time of the whole search, including snippets, one search at a time, with a warm"
            " cache. The engine ranks, and PostgreSQL checks the generation"
            " of each result. Three fifths of the sections are published. Other work on the"
            " machine affects these times."
        )
        report.table(
            ("what", "PostgreSQL", "p90", "with the engine", "p90"),
            await search_rows(database, SearchEngine(client), text, options.queries),
        )


def _spread(name: str, rounds: list[Round]) -> list[str]:
    rates = [each.rate for each in rounds]
    numbers = (
        statistics.median(rates),
        min(rates),
        max(rates),
        statistics.median(each.own_us for each in rounds),
        statistics.median(each.engine_us for each in rounds),
    )
    return [name, *(f"{number:,.0f}" for number in numbers)]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--url", default=os.environ.get("FORAGER_OPENSEARCH_URL"), help="the engine"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="HTML files to take text from")
    parser.add_argument("--rows", type=int, default=300_000, help="sections in all")
    parser.add_argument("--queries", type=int, default=100, help="searches of each kind")
    parser.add_argument("--rounds", type=int, default=3, help="of feeding")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    if not options.url:
        sys.exit("which search engine? --url, or FORAGER_OPENSEARCH_URL")
    if not options.folder.is_dir():
        sys.exit(f"{options.folder} is not a folder; give one with HTML files: --folder")
    configure_logs("critical")
    # slow first searches on a busy machine must not end the measurement
    engine.ANSWER_LIMIT = TIME_LIMIT
    report = Report("A search engine in addition to PostgreSQL, measured")
    with tempfile.TemporaryDirectory(prefix="forager-bench-") as folder:
        machine = describe_machine(Path(folder))
        with join_server(Path(folder)) as use:
            report.text(
                "Generated by `make bench-index`. Ratios are more reliable than absolute numbers."
            )
            report.table(("machine", ""), machine)
            schema.upgrade(use.url)
            text = read_folder(options.folder)
            with psycopg.connect(use.url, autocommit=True) as connection:
                for step in load(connection, text, options.rows):
                    print(f"loading: {step}", file=sys.stderr)
            uvloop.run(measure(options, use.url, text, report))
    print(report.write("index.md"), end="")


if __name__ == "__main__":
    main()
