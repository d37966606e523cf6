"""Why the full job is not ten times as fast as Scrapy: the processor time of a page, by part."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.measured import Measured, Table, number_in
from benchmarks.report import as_table

AIM = 10
SCRAPY = "Scrapy, JOBDIR, markdown"
FULL = "Forager, full job"
PARTS = ("runner", "extraction", "PostgreSQL")
# components of the largest parts, measured separately: row, column
INSIDE = {
    "extraction": (
        ("facts: decode, parse, links, metadata", "ms per page"),
        ("tags and texts", "ms per page"),
        ("markdown", "ms per page"),
        ("identifiers", "ms per page"),
    ),
    "PostgreSQL": (("of which to_tsvector", "in PostgreSQL"),),
}


def budget_blocks(known: Mapping[str, Measured]) -> list[str]:
    """The goal as a budget of milliseconds per page, and how much of it each part takes."""
    crawl = known.get("crawl")
    rates, parts = _site(crawl) if crawl else (None, None)
    if crawl is None or rates is None or parts is None:
        return []
    scrapy = rates.number(SCRAPY, "pages/s")
    spent = {part: parts.number(FULL, part) or 0.0 for part in PARTS}
    if not scrapy or not all(spent.values()):
        return []
    cores = _cores(crawl)
    budget, total = 1000 * cores / (AIM * scrapy), sum(spent.values())
    if total <= budget:
        # reached, or the machine was too busy for rates to be compared with processor time
        return []
    text = (
        f"Scrapy with `JOBDIR` and markdown crawls {scrapy:,.0f} pages/s of {rates.heading}. {AIM}"
        f" times that leaves {budget:.2f} ms of processor time per page, for all processes"
        f" together, on {cores} cores that are never idle. A page of the full job takes {total:.2f}"
        f" ms, so that {1000 * cores / total:,.0f} pages/s, {1000 * cores / total / scrapy:.1f}"
        " times Scrapy, are the maximum. Each part alone takes a large share of the budget:"
    )
    rows = _rows(spent, known.get("documents"), budget)
    table = as_table(("part of a page", "ms", "share of the budget"), rows)
    return [f"## Why not {AIM} times Scrapy", text, table, _NOTE]


_NOTE = (
    "The parts marked with · were measured individually; they take longer when they run at the same"
    " time on busy cores. [crawl-profile.md](crawl-profile.md) lists the optimizations that were"
    " tried."
)


def _site(crawl: Measured) -> tuple[Table | None, Table | None]:
    """Rates and parts of the first site that has both."""
    rates = crawl.table("pages/s")
    return rates, crawl.table("runner", rates.heading) if rates else None


def _cores(crawl: Measured) -> int:
    return int(number_in(crawl.machine.get("processor", "").rpartition(",")[2]) or 1)


def _rows(spent: Mapping[str, float], documents: Measured | None, budget: float) -> list[list[str]]:
    rows = []
    for part, ms in spent.items():
        rows.append([part, f"{ms:.2f}", f"{ms / budget:.0%}"])
        for row, column in INSIDE.get(part, ()):
            inside = number_in(documents.cell(row, column)) if documents else None
            if inside is not None:
                name = row.removeprefix("of which ")
                rows.append([f"· {name}", f"{inside:.2f}", f"{inside / budget:.0%}"])
    return rows
