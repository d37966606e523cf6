"""How fast a search engine is told of sections, and how fast searches are with it.

    python -m benchmarks.bench_index --url http://127.0.0.1:9200 [--folder HTML] [--sections 40000]

Runs an embedded PostgreSQL of its own in a temporary folder, prints a report and writes it to
`benchmarks/results/index.md`. The engine must run already: `scripts/services start opensearch`.
The text comes from the HTML files of a folder; indexes of its own are deleted in the end.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import uvloop

from benchmarks.bench_search import FOLDER, OneSection
from benchmarks.machine import describe_machine
from benchmarks.report import Report
from benchmarks.search_load import CONFIG, RealText, read_folder
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.db.ids import new_id
from forager.documents import publication, store
from forager.documents.page import NewPage
from forager.documents.plan import ManifestPage
from forager.documents.search import SearchRequest, search
from forager.documents.search.indexing import INDEXED_SECTIONS
from forager.index.client import EngineClient
from forager.index.engine import Engine
from forager.index.feeder import Feeder
from forager.index.reindex import Reindexer
from forager.logs import configure_logs

PER_PAGE = 8
BATCH = 100
SOURCE = "bench.example"
GOAL = 2_000


class Page:
    """A document of several sections."""

    language = None
    extractor_version = "1"

    def __init__(self, text: RealText, number: int) -> None:
        places = [(number * PER_PAGE + n) % len(text.texts) for n in range(PER_PAGE)]
        self.title = f"Page {number}"
        self.content_hash = sha256(str(number).encode()).digest()
        self.sections = [
            OneSection(text.headings[at], text.texts[at], b"", position=position)
            for position, at in enumerate(places)
        ]


def new_page(text: RealText, number: int) -> NewPage:
    url = f"https://{SOURCE}/{number}"
    return NewPage(
        url=url,
        key=sha256(url.encode()).digest(),
        document=Page(text, number),
        fetched_at=datetime.now(UTC),
    )


async def fill(database: Database, text: RealText, pages: int) -> None:
    """One published generation of so many pages."""
    async with database.transaction() as connection:
        number, _, _ = await store.upsert_source(
            connection,
            SOURCE,
            base_url=f"https://{SOURCE}/",
            user_id=None,
            kind="crawl",
            payload={},
        )
        await store.set_config(connection, SOURCE, CONFIG)
        generation = await store.insert_generation(connection, SOURCE, new_id(), None)
    for first in range(0, pages, BATCH):
        batch = [new_page(text, n) for n in range(first, min(first + BATCH, pages))]
        async with database.transaction() as connection:
            await store.insert_documents(connection, SOURCE, number, CONFIG, batch)
            listed = [ManifestPage(page, None) for page in batch]
            await store.list_new_pages(connection, SOURCE, generation, listed)
    async with database.connection() as connection:
        await connection.execute("UPDATE generations SET state = 'retired'")
    await publication.publish(database, SOURCE)


@asynccontextmanager
async def own_indexes(url: str) -> AsyncIterator[tuple[EngineClient, str]]:
    prefix = f"bench{uuid4().hex[:8]}"
    async with EngineClient(url) as client:
        yield client, prefix
        await client.ask("DELETE", f"{prefix}-*")
        await client.ask("DELETE", f"_index_template/{prefix}-*")


async def sections_of(database: Database) -> int:
    async with database.connection() as connection:
        row = await (await connection.execute("SELECT count(*) FROM sections")).fetchone()
    return 0 if row is None else int(row[0])


@dataclass(frozen=True, slots=True)
class Round:
    """How many sections in a second, and what each cost a processor, here and in the engine."""

    rate: float
    own_us: float
    engine_us: float


async def timed(
    database: Database, client: EngineClient, work: Callable[[], Awaitable[object]]
) -> Round:
    engine, own, began = await engine_seconds(client), time.process_time(), time.perf_counter()
    await work()
    seconds, own = time.perf_counter() - began, time.process_time() - own
    engine = await engine_seconds(client) - engine
    sections = await sections_of(database)
    return Round(sections / seconds, own / sections * 1e6, engine / sections * 1e6)


async def engine_seconds(client: EngineClient) -> float:
    """What processors have done for the engine so far."""
    answer = await client.ask("GET", "_nodes/stats/process")
    nodes = answer["nodes"].values()
    return float(sum(node["process"]["cpu"]["total_in_millis"] for node in nodes)) / 1000


async def reindex(database: Database, client: EngineClient, prefix: str) -> None:
    await Reindexer(database, client, prefix, grace=0).run(INDEXED_SECTIONS)


async def feed(database: Database, client: EngineClient, prefix: str) -> None:
    """From the outbox: told, kept, shown to searches, and crossed out."""
    feeder = Feeder(database, client, prefix, [INDEXED_SECTIONS])
    while await feeder.run_once():
        pass


async def tell_all(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO index_outbox (kind, ref_id) SELECT 'sections', id FROM documents"
        )


async def search_rows(
    database: Database, engine: Engine, text: RealText, count: int
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
        for asked in (None, engine):
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


async def measure(options: argparse.Namespace, url: str, report: Report) -> None:
    text = read_folder(options.folder)
    async with (
        Database(url, name="bench", max_size=4) as database,
        own_indexes(options.url) as (client, prefix),
    ):
        print("writing pages ...", file=sys.stderr)
        await fill(database, text, options.sections // PER_PAGE)
        sections = await sections_of(database)
        characters = sum(map(len, text.texts)) // len(text.texts)
        rounds = range(options.rounds)
        filled = [
            await timed(database, client, lambda: reindex(database, client, prefix)) for _ in rounds
        ]
        print("filled:", filled, file=sys.stderr)
        fed = []
        for _ in rounds:
            await tell_all(database)
            fed.append(await timed(database, client, lambda: feed(database, client, prefix)))
        print("fed:", fed, file=sys.stderr)
        report.heading("Telling a search engine")
        report.text(
            f"{sections:,} sections of {characters:,} characters on average, {PER_PAGE} to a page,"
            " from one process, through one connection after the other. *From the outbox* is all of"
            " it: claimed, read, sent in bulk, refreshed, deleted. The engine is one node with a"
            " heap of 512 MB on the same machine, which PostgreSQL and Python share with it."
            f" The goal is {GOAL:,}. {options.rounds} rounds. What is told from the outbox is in"
            " the engine already, and replaces what is there. CPU is what a section costs, in"
            " microseconds: other work on the machine does not count there."
        )
        head = ("sections per second", "median", "slowest", "fastest", "CPU here", "CPU engine")
        report.table(
            head, [_spread("filled by a reindex", filled), _spread("from the outbox", fed)]
        )
        report.heading("Searching with it, in milliseconds")
        report.text(
            "The whole search, snippets included, one at a time. With an engine it offers"
            " candidates, and PostgreSQL looks at each: generation, words, rank. On a store as"
            " small as this one PostgreSQL alone is as quick; see `search.md` for a million."
        )
        report.table(
            ("what", "PostgreSQL", "p90", "with the engine", "p90"),
            await search_rows(database, Engine(client), text, options.queries),
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
    parser.add_argument("--sections", type=int, default=40_000, help="in all")
    parser.add_argument("--queries", type=int, default=100, help="searches of each kind")
    parser.add_argument("--rounds", type=int, default=3, help="of filling and of feeding")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    if not options.url:
        sys.exit("which search engine? --url, or FORAGER_OPENSEARCH_URL")
    if not options.folder.is_dir():
        sys.exit(f"{options.folder} is not a folder; give one with HTML files: --folder")
    configure_logs("critical")
    report = Report("A search engine beside PostgreSQL, measured")
    with tempfile.TemporaryDirectory(prefix="forager-bench-") as folder:
        machine = describe_machine(Path(folder))
        with join_server(Path(folder)) as use:
            report.text("Made by `make bench-index`. Ratios hold better.")
            report.table(("machine", ""), machine)
            schema.upgrade(use.url)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(measure(options, use.url, report))
    print(report.write("index.md"), end="")


if __name__ == "__main__":
    main()
