"""Write one page with all results: headline numbers, ratios, growth charts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.budget import budget_blocks
from benchmarks.crawls import LOCK
from benchmarks.curve import Curve, Line
from benchmarks.measured import Measured, Table, number_in, read_measured
from benchmarks.parts import PARTS
from benchmarks.report import Row, as_table

PAGE = "README.md"
# the crawlers that Forager is compared with
PEERS = ("Scrapy, JOBDIR", "Scrapy, JOBDIR, markdown", "Crawlee, files", "the limit")
RATE = "pages/s"


@dataclass(frozen=True, slots=True)
class Headline:
    """A headline number, and the cell that it comes from."""

    what: str
    report: str
    row: str
    columns: tuple[str, ...]
    unit: str = ""
    heading: str = ""


HEADLINES = (
    Headline("claims of one job at a time, 1,000,000 pending", "queue", "claim one by one",
             ("1,000,000 rows",), "/s"),
    Headline("claims of 20 at a time, 1,000,000 pending", "queue", "claim 20 at a time",
             ("1,000,000 rows",), "/s"),
    Headline("from enqueue to claim, median / p90", "queue", "enqueue to claim",
             ("median", "p90")),
    Headline("from a runner's SIGKILL to the next commit of its job, median", "queue",
             "runner killed to first new commit", ("median",)),
    Headline("reading a page into sections, processor time", "documents", "all",
             ("ms per page",), " ms"),
    Headline("writing a new document, processor time in PostgreSQL", "documents", "all new",
             ("in PostgreSQL",), " ms"),
    Headline("a commit of 50 pages with 1,000,000 URLs, against 10,000 (mean)", "commit",
             "1,000,000", ("mean, against the first",), " times"),
    Headline("products written, all of them new", "products", "all new",
             ("products/s",), "/s", "Writing"),
    Headline("search of products, two words, median / p95", "products", "search: two words",
             ("median", "p95"), " ms"),
    Headline("a tick of the scheduler, tasks pending, median / longest", "scheduler", "pending",
             ("median", "longest"), " s"),
    Headline("search of sections, two words, median / p90", "search", "two words (",
             ("median", "p90"), " ms"),
    Headline("search of sections, an identifier, median / p90", "search", "an identifier",
             ("median", "p90"), " ms"),
    Headline("crawls accepted by the API", "api", "", ("requests/s",), "/s", "POST"),
    Headline("dashboard, the overview, median / p90", "api", "`/`", ("median", "p90"), " ms"),
    Headline("API, search, median / p90", "api", "`/api/v1/search`", ("median", "p90"), " ms"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawing:
    """A growth curve: columns of one table of a report."""

    file: str
    report: str
    heading: str
    lines: Mapping[str, str]  # column: name of the line
    title: str
    x: str
    y: str


_PARTS = {"runner": "runner", "extraction": "extraction", "PostgreSQL": "PostgreSQL"}
DRAWINGS = (
    Drawing("speed.svg", "sizes", "Pages per second",
            {"archive and ledger": "Forager, archive and ledger", "full job": "Forager, full job",
             "Scrapy, JOBDIR": "Scrapy, JOBDIR"},
            "Speed against the size of the site", "pages of the site", "pages per second"),
    Drawing("memory.svg", "sizes", "Peak memory in MB, archive and ledger", _PARTS,
            "Peak memory against the size of the site, archive and ledger", "pages of the site",
            "MB (PSS)"),
    Drawing("memory-documents.svg", "sizes", "Peak memory in MB, full job", _PARTS,
            "Peak memory against the size of the site, full job", "pages of the site", "MB (PSS)"),
    Drawing("commit.svg", "commit", "A commit against", {"median": "median", "mean": "mean"},
            "Cost of a commit against visited URLs", "visited URLs, and as many pending",
            "ms for 50 pages and 250 new URLs"),
    Drawing("claim.svg", "queue", "A claim against", {"one job": "one job", "20 jobs": "20 jobs"},
            "Cost of a claim against the length of the queue", "pending jobs", "ms per claim"),
)  # fmt: skip


def write_overview(results: Path, *, quick: bool = False) -> Path:
    """Write the page and its charts from all results so far."""
    data = results / "data"
    found = {part.report: read_measured(data, part.report) for part in PARTS}
    known = {name: measured for name, measured in found.items() if measured is not None}
    runs = _runs(data)
    blocks = ["# Results", _QUICK if quick else _INTRODUCTION, *_machine(known)]
    blocks += [block for block in _crawl_blocks(known) if block]
    blocks += budget_blocks(known)
    blocks += _headline_blocks(known)
    blocks += _curve_blocks(known, results)
    blocks += ["## When each part was measured", _dates(known, runs)]
    page = results / PAGE
    results.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return page


_INTRODUCTION = (
    "Generated by `make bench` from the files in [data](data). `PARTS=queue,crawl` runs only some"
    " parts, and `QUICK=1` tries all of them with small sizes."
    " [crawl-profile.md](crawl-profile.md) shows where the time of a crawl is spent, and why"
    " Forager is not ten times as fast as Scrapy. Ratios are more reliable than absolute numbers."
    " A part that was not run again keeps its numbers and its date."
)


_QUICK = (
    "Generated by `make bench QUICK=1`: the sizes are so small that these numbers say nothing"
    " except that every part runs. The actual results are in benchmarks/results."
)


def _machine(known: Mapping[str, Measured]) -> Iterator[str]:
    if not known:
        return
    newest = max(known.values(), key=lambda measured: measured.date)
    machine = {**newest.machine, "PostgreSQL": _postgresql(known)}
    rows = [[name, value] for name, value in machine.items() if value and "load" not in name]
    rows += [[name, version] for name, version in _peer_versions().items()]
    yield as_table(("machine of the latest part", ""), rows)


def _postgresql(known: Mapping[str, Measured]) -> str:
    """The version of PostgreSQL, which only the queue report has."""
    return known["queue"].machine.get("PostgreSQL", "") if "queue" in known else ""


def _peer_versions() -> dict[str, str]:
    lock = LOCK.read_text(encoding="utf-8")
    found = dict(re.findall(r"^(scrapy|crawlee)==(\S+)", lock, re.MULTILINE))
    return {name.capitalize(): found[name] for name in sorted(found)}


# --- crawls ----------------------------------------------------------------------------------


def _crawl_blocks(known: Mapping[str, Measured]) -> Iterator[str]:
    if (crawl := known.get("crawl")) is None:
        return
    yield "## Comparison with other crawlers"
    yield (
        "Pages per second, and the ratio to each peer, on the same site behind nginx on loopback,"
        f" with 64 connections and no delay ([report]({crawl.page})). The limit is a program that"
        " fetches pages and reads links in one process and stores nothing."
    )
    for table in crawl.tables:
        if RATE in table.head:
            yield f"**{table.heading}**"
            yield _ratios(table)


def _ratios(table: Table) -> str:
    """One row per crawler, with the ratios to Forager."""
    rates = {row[0]: number_in(table.cell(row[0], RATE)) for row in table.rows}
    peers = [(peer, _exact(rates, peer)) for peer in PEERS]
    rows: list[Row] = []
    for name, rate in rates.items():
        ours = name.startswith("Forager") and rate is not None
        cells = [_times(rate, peer) if ours else "" for _, peer in peers]
        rows.append([name, f"{rate or 0:,.0f}", *cells])
    return as_table(("crawler", RATE, *(f"/ {peer}" for peer, _ in peers)), rows)


def _exact(rates: Mapping[str, float | None], peer: str) -> float | None:
    """Compare the name with or without its explanation."""
    return next(
        (rate for name, rate in rates.items() if name == peer or name.startswith(f"{peer} (")), None
    )


def _times(rate: float | None, peer: float | None) -> str:
    return f"{rate / peer:.2f}x" if rate and peer else ""


# --- the rest --------------------------------------------------------------------------------


def _headline_blocks(known: Mapping[str, Measured]) -> list[str]:
    rows = []
    for line in HEADLINES:
        measured = known.get(line.report)
        values = _values(measured, line) if measured else []
        if measured and values:
            rows.append(
                [line.what, " / ".join(values) + line.unit, f"[{line.report}]({measured.page})"]
            )
    return ["## Other results", as_table(("what", "measured", "report"), rows)] if rows else []


def _values(measured: Measured, line: Headline) -> list[str]:
    cells = [measured.cell(line.row, column, line.heading) for column in line.columns]
    return [cell for cell in cells if cell]


def _curve_blocks(known: Mapping[str, Measured], results: Path) -> list[str]:
    blocks = []
    for drawing in DRAWINGS:
        lines = _lines(known.get(drawing.report), drawing)
        if not lines:
            continue
        curve = Curve(drawing.title, drawing.x, drawing.y, lines)
        (results / drawing.file).write_text(curve.svg(), encoding="utf-8")
        blocks.append(f"![{drawing.title}]({drawing.file})")
    return ["## Growth", *blocks] if blocks else []


def _lines(measured: Measured | None, drawing: Drawing) -> list[Line]:
    if measured is None:
        return []
    table = next((t for t in measured.tables if t.heading.startswith(drawing.heading)), None)
    if table is None:
        return []
    lines = [Line(name, table.points(column)) for column, name in drawing.lines.items()]
    return [line for line in lines if line.points]


def _dates(known: Mapping[str, Measured], runs: Mapping[str, dict[str, Any]]) -> str:
    rows = []
    for part in PARTS:
        measured, run = known.get(part.report), runs.get(part.name, {})
        if measured is None and not run:
            continue
        # a failed run has no numbers
        good = run if run and not run["failed"] else {}
        rows.append([
            f"[{part.name}]({measured.page})" if measured else part.name,
            measured.date if measured else "never",
            str(good.get("minutes", "")),
            measured.machine.get("load average at the start", "") if measured else "",
            f"{good['busy_before']:g} %" if good else "",
            str(good.get("load_after", "")),
            f"{run['failed']} ({run['date']})" if run and run["failed"] else "",
        ])  # fmt: skip
    head = ("part", "date", "minutes", "load before", "busy before", "load after", "last failure")
    return as_table(head, rows)


def _runs(data: Path) -> dict[str, dict[str, Any]]:
    try:
        runs: dict[str, dict[str, Any]] = json.loads(
            (data / "runs.json").read_text(encoding="utf-8")
        )
    except FileNotFoundError:
        return {}
    return runs
