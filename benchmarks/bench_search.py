"""Speed of search over a million sections, and the cost of indexing them.

    python -m benchmarks.bench_search [--folder HTML] [--rows 1000000] [--queries 300]

Runs a separate embedded PostgreSQL in a temporary folder (a few GB), prints a report and writes
it to `benchmarks/results/search.md`. The text comes from the HTML files of a folder.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import psycopg
import uvloop
from mcp.client.client import Client

from benchmarks.machine import describe_machine
from benchmarks.report import Report
from benchmarks.search_load import CONFIG, RealText, load, read_folder
from forager.access.caller import LOCAL
from forager.api.services import Services
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.documents.names import new_sections, section_names
from forager.documents.page import IndexedDocument, NewPage
from forager.documents.search import SearchPage, SearchRequest, search
from forager.documents.search.store import select_published
from forager.documents.store import words
from forager.documents.store.words import count_words
from forager.extract.sections import Section
from forager.logs import configure_logs
from forager.mcp.call import Host
from forager.mcp.server import create_server
from forager.settings import load_settings

FOLDER = Path("/usr/share/doc/postgresql-doc-15/html")
# a section in an answer of search_docs
_HIT_URL = re.compile(r"https?://[^\s\\#]+#[^\s\\]+")
BATCH = 500
BATCHES = 6


@dataclass(frozen=True, slots=True)
class Kind:
    """Searches of one kind."""

    name: str
    requests: list[SearchRequest]


def kinds(text: RealText, count: int) -> list[Kind]:
    chance = random.Random(1)
    pairs = text.two_words(count, chance)
    few = pairs[: count // 3]
    words = [pair.split()[0] for pair in few]
    return [
        Kind("two words (goal: 50 ms)", [SearchRequest(query=pair) for pair in pairs]),
        Kind("two words, one source", [SearchRequest(query=q, source="source2") for q in few]),
        Kind("two words, below a path", [SearchRequest(query=q, path="/api/") for q in few]),
        Kind("two words as a phrase", [SearchRequest(query=f'"{pair}"') for pair in few]),
        Kind("an identifier", [SearchRequest(query=q) for q in text.names(count // 3, chance)]),
        Kind("one word", [SearchRequest(query=word) for word in words]),
    ]


@dataclass(frozen=True, slots=True)
class Timed:
    """The time of a search, and its processor time in client and server."""

    page: SearchPage
    cpu: float


async def measure(database: Database, pid: int, kind: Kind) -> list[Timed]:
    timed = []
    for request in kind.requests:
        before = busy_seconds(pid)
        page = await search(database, request)
        timed.append(Timed(page, busy_seconds(pid) - before))
    return timed


def busy_seconds(server_pid: int) -> float:
    """Processor time of this process and the server so far, which other load hardly affects."""
    ours = time.process_time()
    try:
        on_cpu = Path(f"/proc/{server_pid}/schedstat").read_text(encoding="ascii").split()[0]
    except OSError:
        return ours
    return ours + int(on_cpu) / 1e9


async def warm_up(database: Database, kind: Kind) -> None:
    """Run some queries first, to warm the cache of the server."""
    for request in kind.requests[::3]:
        await search(database, request)


async def count_all_words(url: str) -> None:
    """Count words, as at the end of a crawl."""
    async with (
        Database(url, name="bench", max_size=1) as database,
        database.transaction() as connection,
    ):
        for generation in await select_published(connection, None, None):
            await count_words(connection, generation.id)


async def search_rows(url: str, text: RealText, count: int) -> list[list[str]]:
    rows = []
    async with Database(url, name="bench", max_size=1) as database:
        async with database.connection() as connection:
            pid = connection.info.backend_pid
        for kind in kinds(text, count):
            await warm_up(database, kind)
            if timed := await measure(database, pid, kind):
                rows.append([kind.name, *_row(timed)])
                print(" | ".join(rows[-1]), file=sys.stderr)
    return rows


def _row(timed: Sequence[Timed]) -> list[str]:
    pages = [search.page for search in timed]
    times = [*_spread([page.took for page in pages]), *_spread([search.cpu for search in timed])]
    return [*times, str(len(pages)), str(sum(not page.items for page in pages)),
            str(sum(page.capped for page in pages))]  # fmt: skip


def _spread(seconds: Sequence[float]) -> list[str]:
    p90 = statistics.quantiles(seconds, n=10, method="inclusive")[-1]
    return [f"{value * 1000:.1f}" for value in (statistics.median(seconds), p90)]


async def tool_rows(url: str, text: RealText, count: int) -> list[list[str]]:
    """The tools of the MCP server through its client, in this process."""
    queries = [{"query": pair} for pair in text.two_words(count, random.Random(2))]
    async with Database(url, name="bench") as database:
        host = Host(Services(database, load_settings()), lambda _: LOCAL)
        async with Client(create_server(host)) as client:
            found = await timed_calls(client, "search_docs", queries)
            urls = [match[0] for answer, _ in found if (match := _HIT_URL.search(answer))]
            read = await timed_calls(client, "read_section", [{"url": each} for each in urls])
    return [
        [name, *_spread([seconds for _, seconds in calls]), str(len(calls))]
        for name, calls in (("search_docs", found), ("read_section", read))
        if calls
    ]


async def timed_calls(
    client: Client, tool: str, arguments: Sequence[dict[str, str]]
) -> list[tuple[str, float]]:
    calls = []
    for each in arguments:
        began = time.perf_counter()
        result = await client.call_tool(tool, each)
        seconds = time.perf_counter() - began
        assert not result.is_error, result.content
        calls.append((str(result.content[0]), seconds))
    return calls


# --- what indexing costs -----------------------------------------------------------------------


def new_page(text: RealText, number: int) -> NewPage:
    at = number % len(text.texts)
    key = sha256(str(number).encode()).digest()
    sections = [Section(text.headings[at], 1, None, text.texts[at], 0, None)]
    names = section_names(None, sections)
    document = IndexedDocument(None, None, sections, key, "1", names)
    url = f"https://source1.example/new/{number}"
    return NewPage(url=url, key=key, document=document, fetched_at=datetime.now(UTC))


async def indexing_ms(url: str, text: RealText) -> tuple[float, float]:
    """Milliseconds per section and per 10,000 characters, inside a commit."""
    seconds = 0.0
    async with Database(url, name="bench") as database:
        for batch in range(BATCHES):
            numbers = range(10**9 + batch * BATCH, 10**9 + (batch + 1) * BATCH)
            pages = [new_page(text, number) for number in numbers]
            began = time.perf_counter()
            async with database.transaction() as connection:
                sections = [new_sections(page) for page in pages]
                await words.insert_documents(connection, "source1", 1, CONFIG, pages, sections)
            seconds += time.perf_counter() - began
    rows = BATCH * BATCHES
    characters = sum(len(text.texts[(10**9 + n) % len(text.texts)]) for n in range(rows))
    return seconds * 1000 / rows, seconds * 1000 / characters * 10_000


def sizes(url: str) -> list[list[str]]:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            """
            SELECT relname, greatest(reltuples, 0)::bigint, pg_table_size(oid), pg_indexes_size(oid)
              FROM pg_class
             WHERE relname IN ('section_search', 'sections', 'documents', 'generation_documents')
             ORDER BY relname
            """
        ).fetchall()
    return [[n, f"{rows:,}", f"{t / 2**20:,.0f}", f"{i / 2**20:,.0f}"] for n, rows, t, i in found]


# --- the report ------------------------------------------------------------------------------


def run(options: argparse.Namespace, url: str, report: Report) -> None:
    text = read_folder(options.folder)
    print(f"{len(text.texts):,} real sections", file=sys.stderr)
    schema.upgrade(url)
    with psycopg.connect(url, autocommit=True) as connection:
        for step in load(connection, text, options.rows):
            print(f"loading: {step}", file=sys.stderr)
    uvloop.run(count_all_words(url))
    rows = uvloop.run(search_rows(url, text, options.queries))
    report.heading("Searches, in milliseconds")
    report.text(
        f"{options.rows:,} sections in three generations of four sources. Each refresh found a"
        " third of the pages changed, so that three fifths of the sections are published. Headings"
        f" and texts come from {len(text.texts):,} real sections and are combined at random. The"
        " search words are adjacent words of these sections, half from headings and half from"
        " texts. Times are for the whole search, including snippets, one search at a time, with a"
        " warm cache. CPU is the processor time of server and client together, which excludes"
        " other work on the machine."
    )
    head = ("what", "median", "p90", "CPU", "CPU p90", "searches", "without a hit", "capped")
    report.table(head, rows)
    report.heading("Tools of the MCP server, in milliseconds")
    report.text(
        "`search_docs` searches for two words, and `read_section` reads the best hit; the client"
        " runs in the same process."
    )
    tools = asyncio.run(tool_rows(url, text, options.queries))
    report.table(("tool", "median", "p90", "calls"), tools)
    per_section, per_text = uvloop.run(indexing_ms(url, text))
    report.heading("Cost of making sections searchable")
    report.text(
        f"Documents with one section each are written in transactions of {BATCH}, into the full"
        f" tables, with all related rows: **{per_section:.2f} ms** per section, {per_text:.2f} ms"
        " per 10,000 characters."
    )
    report.heading("Sizes, in MB")
    report.table(("table", "rows", "table", "indexes"), sizes(url))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="HTML files to take text from")
    parser.add_argument("--rows", type=int, default=1_000_000, help="sections in all")
    parser.add_argument("--queries", type=int, default=300, help="searches of two words")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    if not options.folder.is_dir():
        sys.exit(f"{options.folder} is not a folder; give one with HTML files: --folder")
    configure_logs("critical")
    report = Report("Search, measured")
    with tempfile.TemporaryDirectory(prefix="forager-bench-") as folder:
        machine = describe_machine(Path(folder))
        with join_server(Path(folder)) as use:
            report.text(
                "Generated by `python -m benchmarks.bench_search`."
                " Ratios are more reliable than absolute numbers."
            )
            report.table(("machine", ""), machine)
            run(options, use.url, report)
    print(report.write("search.md"), end="")


if __name__ == "__main__":
    main()
