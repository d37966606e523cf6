"""Processor time of a document by step: extraction, writing, publishing and comparing.

    python -m benchmarks.bench_documents [--folder HTML] [--pages 2000] [--rounds 3]

Reads the HTML files of a folder without fetching them, and writes what they say into a separate
embedded PostgreSQL. Processor time, so that other work on the machine counts little. Writes
`benchmarks/results/documents.md`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.bench_search import FOLDER, busy_seconds
from benchmarks.machine import describe_machine
from benchmarks.report import Report
from forager.crawl.extraction.process import Extractor
from forager.crawl.extraction.reading import new_document, pack_document, unpack_document
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.db.ids import new_id
from forager.documents.diff import diff_generations
from forager.documents.page import NewPage
from forager.documents.writer import GenerationWriter
from forager.extract.content.choose import choose_main
from forager.extract.directives import DEFAULT_AGENT
from forager.extract.document import EXTRACTOR_VERSION, extract_reading
from forager.extract.keys import url_key
from forager.extract.markdown.convert import Converter
from forager.extract.markdown.phrasing import Links
from forager.extract.markdown.tokens import tokenize
from forager.extract.page import read_page
from forager.extract.sections import build_sections, join_parts
from forager.jobs.context import JobContext
from forager.jobs.job import Lease, NewJob
from forager.jobs.kinds import load_kinds
from forager.jobs.queue import Queue
from forager.jobs.store.leases import hold_lease
from forager.logs import configure_logs
from forager.settings import Settings

KIND = "selftest"
SOURCE = "docs.example"
BASE = f"https://{SOURCE}/"
BATCH = 50
TYPE = "text/html"


@dataclass(frozen=True, slots=True)
class Page:
    url: str
    body: bytes


def read_pages(folder: Path, most: int) -> list[Page]:
    files = sorted(folder.rglob("*.html"))[:most]
    return [Page(f"{BASE}{file.relative_to(folder)}", file.read_bytes()) for file in files]


# --- reading ---------------------------------------------------------------------------------

FACTS = "facts: decode, parse, links, metadata"
SERIALISE = "serialize the body"
TOKENS = "tags and texts (tokenize)"
MAIN = "main element"
MARKDOWN = "markdown"
SECTIONS = "sections and hash"
NAMES = "identifiers, and packing for the runner"
OTHER = "scope and keys of links, archive record (by difference)"


class _Clock:
    """Splits the processor time of this process between steps."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self._last = time.process_time()

    def charge(self, part: str) -> None:
        now = time.process_time()
        self.spent[part] += now - self._last
        self._last = now


def reading_ms(pages: Sequence[Page], rounds: int) -> dict[str, float]:
    """Milliseconds per page of each step, from the fastest round."""
    runs = [_read_once(pages) for _ in range(rounds)]
    best = min(runs, key=lambda run: sum(run.values()))
    return {part: 1000 * seconds / len(pages) for part, seconds in best.items()}


def _read_once(pages: Sequence[Page]) -> dict[str, float]:
    clock = _Clock()
    extractor = Extractor(
        seeds=[BASE], scope="host", agent=DEFAULT_AGENT, documents=True, products=False
    )
    for page in pages:
        given = (page.body, page.url, TYPE, (), DEFAULT_AGENT)
        clock.charge("")
        _, tree = read_page(*given)
        clock.charge(FACTS)
        html = tree.body.html or "" if tree and not isinstance(tree, str) and tree.body else ""
        clock.charge(SERIALISE)
        _convert(html, page.url, clock)
        clock.charge("")
        reading = extract_reading(*given)
        clock.charge("whole reading")
        pack_document(new_document(reading))
        clock.charge(NAMES)
        extractor.extract(_request(page), page.body)
        clock.charge("whole answer")
    return _by_difference(clock.spent)


def _convert(html: str, url: str, clock: _Clock) -> None:
    if not html:
        return
    tokens = tokenize(html)
    clock.charge(TOKENS)
    main = choose_main(tokens)
    clock.charge(MAIN)
    converter = Converter(tokens, Links(url))
    converter.run(main.start, main.end)
    clock.charge(MARKDOWN)
    parts = converter.blocks.parts
    sha256(join_parts(parts).encode())
    build_sections(parts, url)
    clock.charge(SECTIONS)


def _request(page: Page) -> dict[str, Any]:
    return {
        "url": page.url, "content_type": TYPE, "headers": [("Content-Type", TYPE)], "status": 200,
        "reason": "OK", "peer": "127.0.0.1", "protocol": "http/1.1", "at": 1e9, "archive": True,
    }  # fmt: skip


def _by_difference(spent: Mapping[str, float]) -> dict[str, float]:
    known = (FACTS, SERIALISE, TOKENS, MAIN, MARKDOWN, SECTIONS, NAMES)
    parts = {part: spent[part] for part in known}
    # both reuse the results of earlier steps: tags, words, links
    parts[OTHER] = spent["whole answer"] - spent["whole reading"] - spent[NAMES]
    return parts


# --- writing ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Written:
    """Processor time in seconds, here and in PostgreSQL, and the time that passed."""

    ours: float
    server: float
    seconds: float


class Crawl:
    """Write one crawl of the source as a runner does, without fetching."""

    def __init__(self, context: JobContext, queue: Queue, writer: GenerationWriter) -> None:
        self._context = context
        self._queue = queue
        self._writer = writer

    @classmethod
    async def begin(cls, database: Database, settings: Settings) -> Crawl:
        queue = Queue(database, settings)
        await queue.enqueue(NewJob(kind=KIND, payload={}, source_id=SOURCE))
        worker = new_id()
        [job] = await queue.claim(worker, kinds=[KIND])
        context = JobContext(job, Lease(job.id, job.lease, worker), database, settings)
        writer = await GenerationWriter.open(
            context, base_url=BASE, extractor_version=EXTRACTOR_VERSION
        )
        return cls(context, queue, writer)

    async def write(self, pages: Sequence[NewPage]) -> None:
        for start in range(0, len(pages), BATCH):
            batch = pages[start : start + BATCH]
            previous = await self._writer.previous([page.key for page in batch])
            plan = self._writer.plan(batch, previous)
            async with self._context.commit() as connection:
                await self._writer.write(connection, plan)

    async def publish(self) -> None:
        async with self._context.database.transaction() as connection:
            await hold_lease(connection, self._context.lease)
            reason = await self._writer.finish(connection)
            await self._queue.complete(connection, self._context.lease, stop_reason="finished")
        assert reason is None, reason


def new_pages(pages: Sequence[Page], *, changed: int = 0) -> list[NewPage]:
    """Extract the pages; some of them have a changed paragraph."""
    found = []
    for number, page in enumerate(pages):
        body = page.body
        if changed and number % changed == 0:
            body = body.replace(b"</p>", b" and more.</p>", 1)
        reading = extract_reading(body, page.url, TYPE)
        document = unpack_document(pack_document(new_document(reading)))
        found.append(
            NewPage(
                url=page.url, key=url_key(page.url), document=document,
                fetched_at=datetime.now(UTC), outlinks=page.url.encode() * 5,
            )
        )  # fmt: skip
    return found


async def writing(url: str, pages: Sequence[Page]) -> tuple[dict[str, Written], float]:
    """The rows and seconds of crawls, and the share of `to_tsvector`."""
    settings = Settings(log_level="critical")
    costs: dict[str, Written] = {}
    async with Database(url, name="bench", max_size=1) as database:
        async with database.connection() as connection:
            pid = connection.info.backend_pid
        for name, changed in (("all new", 0), ("none changed", 0), ("a tenth changed", 10)):
            found = new_pages(pages, changed=changed)
            crawl = await Crawl.begin(database, settings)
            costs[name] = await _costing(pid, crawl.write(found))
            costs[f"publish ({name})"] = await _costing(pid, crawl.publish())
        costs["diff (a tenth changed)"] = await _costing(pid, diff_generations(database, SOURCE))
        before = busy_seconds(pid) - time.process_time()
        async with database.connection() as connection:
            await connection.execute("SET max_parallel_workers_per_gather = 0")
            await connection.execute(
                """
                SELECT count(to_tsvector('english', s.content))
                  FROM sections s
                  JOIN generation_documents m USING (document_id)
                 WHERE m.generation_id = (SELECT min(id) FROM generations)
                """
            )
        vectors = busy_seconds(pid) - time.process_time() - before
    return costs, vectors


async def _costing(pid: int, work: Any) -> Written:
    ours, both, began = time.process_time(), busy_seconds(pid), time.perf_counter()
    await work
    spent = time.process_time() - ours
    return Written(spent, busy_seconds(pid) - both - spent, time.perf_counter() - began)


# --- the report ------------------------------------------------------------------------------


def report_reading(report: Report, pages: Sequence[Page], parts: dict[str, float]) -> None:
    size = sum(len(page.body) for page in pages) / len(pages)
    report.heading("Reading a page")
    report.text(
        f"Processor time for {len(pages):,} pages of {size / 1000:.1f} kB on average, in one"
        " process. An extraction process does the same work for each page."
    )
    rows = [[part, f"{ms:.3f}", f"{ms / sum(parts.values()):.0%}"] for part, ms in parts.items()]
    report.table(
        ("part", "ms per page", "share"), [*rows, ["all", f"{sum(parts.values()):.3f}", ""]]
    )


def report_writing(report: Report, count: int, costs: dict[str, Written], vectors: float) -> None:
    report.heading("Writing a generation")
    report.text(
        f"{count:,} documents in commits of {BATCH}: documents, sections, search rows, links and"
        " manifest, planned and written by the code that crawls use. No search row is created for"
        " an unchanged page: `to_tsvector` runs once for each new section, regardless of the"
        " number of generations that share it."
    )
    rows = [
        [name, *(f"{1000 * value / count:.3f}" for value in (cost.ours, cost.server)),
         f"{count / cost.seconds:,.0f}"]
        for name, cost in costs.items()
        if " (" not in name
    ]  # fmt: skip
    rows.insert(1, ["of which to_tsvector", "", f"{1000 * vectors / count:.3f}", ""])
    report.table(("pages", "CPU ms per page here", "in PostgreSQL", "pages/s"), rows)
    report.text("The cost of `to_tsvector` was measured separately.")
    report.heading("Publishing and comparing")
    report.table(
        ("what", "ms"),
        [[name, f"{1000 * cost.seconds:.1f}"] for name, cost in costs.items() if " (" in name],
    )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="HTML files to read")
    parser.add_argument("--pages", type=int, default=2_000, help="maximum number of pages")
    parser.add_argument("--rounds", type=int, default=3, help="how often all pages are read")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    pages = read_pages(options.folder, options.pages)
    if not pages:
        sys.exit(f"{options.folder} holds no HTML files; give a folder that does: --folder")
    configure_logs("critical")
    load_kinds()
    report = Report("Documents, measured")
    with tempfile.TemporaryDirectory(prefix="forager-bench-") as folder:
        report.text("Generated by `python -m benchmarks.bench_documents`.")
        report.table(("machine", ""), describe_machine(Path(folder)))
        report_reading(report, pages, reading_ms(pages, options.rounds))
        print("read; now writing", file=sys.stderr)
        with join_server(Path(folder)) as use:
            schema.upgrade(use.url)
            report_writing(report, len(pages), *uvloop.run(writing(use.url, pages)))
    print(report.write("documents.md"), end="")


if __name__ == "__main__":
    main()
