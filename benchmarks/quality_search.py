"""How good search is on real documentation: python -m benchmarks.quality_search QUERIES

QUERIES is a JSON file: per site, keywords and questions, each with a pattern of the URLs that
answer it. Sites are Debian packages; they are crawled once into the folder FORAGER_SEARCH_BENCH
(`/var/tmp/forager-search` by default), which later runs use again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop

from benchmarks.report import Report
from benchmarks.search_sites import DEVELOPMENT, HELD_OUT, DocumentationSite, prepare
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.documents.search import SearchRequest, search
from forager.logs import configure_logs

CACHE = Path(os.environ.get("FORAGER_SEARCH_BENCH", "/var/tmp/forager-search"))
OWN_QUERIES = Path(__file__).parent / "search_queries.json"
DEPTH = 10


@dataclass(frozen=True, slots=True)
class Judged:
    """A query, and at which place its answer was found: from 1, or 0 if not."""

    site: str
    kind: str
    query: str
    place: int
    milliseconds: float
    first: str


async def judge(
    database: Database, queries: dict[str, dict[str, list[list[str]]]], sites: Sequence[str]
) -> list[Judged]:
    judged = []
    for site in sites:
        for kind in ("keywords", "questions"):
            for query, pattern in queries[site][kind]:
                page = await search(database, SearchRequest(query=query, source=site, limit=DEPTH))
                urls = [hit.url for hit in page.items]
                place = next((n for n, url in enumerate(urls, 1) if re.search(pattern, url)), 0)
                judged.append(
                    Judged(site, kind, query, place, page.took * 1000, " ".join(urls[:3]))
                )
    return judged


def summary(judged: Sequence[Judged]) -> list[str]:
    """Queries, hit@1, hit@3, MRR, median and p90 of the time."""
    count = max(1, len(judged))
    times = [each.milliseconds for each in judged]
    p90 = statistics.quantiles(times, n=10, method="inclusive")[-1]
    return [
        str(len(judged)),
        f"{100 * sum(each.place == 1 for each in judged) / count:.0f} %",
        f"{100 * sum(1 <= each.place <= 3 for each in judged) / count:.0f} %",
        f"{sum(1 / each.place for each in judged if each.place) / count:.3f}",
        f"{statistics.median(times):.0f}",
        f"{p90:.0f}",
    ]


HEAD = ("queries", "number", "first", "first three", "MRR", "median ms", "p90 ms")


def rows_of(name: str, judged: Sequence[Judged]) -> Iterator[list[str]]:
    for kind in ("keywords", "questions"):
        if chosen := [each for each in judged if each.kind == kind]:
            yield [f"{name}, {kind}", *summary(chosen)]


async def run(url: str, options: argparse.Namespace, report: Report) -> None:
    queries = json.loads(options.queries.read_text(encoding="utf-8"))
    queries |= json.loads(OWN_QUERIES.read_text(encoding="utf-8"))
    async with Database(url, name="quality-search", max_size=1) as database:
        for name, sites in groups(options):
            report.heading(f"{name} sites")
            judged = await judge(database, queries, [site.name for site in sites])
            rows = [*rows_of("all", judged)]
            for site in sites:
                rows += rows_of(site.name, [each for each in judged if each.site == site.name])
            report.table(HEAD, rows)
            for each in judged:
                if options.misses and each.place != 1:
                    print(f"{each.site} {each.place} {each.query!r} {each.first}", file=sys.stderr)


def groups(options: argparse.Namespace) -> list[tuple[str, Sequence[DocumentationSite]]]:
    every = [("Development", DEVELOPMENT), ("Held-out", HELD_OUT)]
    return [(name, sites) for name, sites in every if options.only in (None, name)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--only", choices=("Development", "Held-out"))
    parser.add_argument("--misses", action="store_true", help="list what was not found first")
    options = parser.parse_args()
    configure_logs("critical")
    home = prepare(CACHE, [site for _, sites in groups(options) for site in sites])
    report = Report("Quality of search")
    with join_server(home) as server:
        uvloop.run(run(server.url, options, report))
    print(report.write("quality-search.md"), end="")


if __name__ == "__main__":
    main()
