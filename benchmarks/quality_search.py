"""Quality of search on real documentation: python -m benchmarks.quality_search QUERIES

QUERIES is a JSON file: per site, keywords and questions, each with a pattern of the URLs that
answer it. Sites are Debian packages; they are crawled once into the folder SEARCH_BENCH_CACHE
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
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.machine import describe_machine
from benchmarks.report import Report
from benchmarks.search_sites import (
    BLIND,
    BLIND_AGAIN,
    DEVELOPMENT,
    FINAL,
    FRESH,
    FURTHER,
    HELD_OUT,
    LAST,
    LATER,
    PUBLIC,
    UNSEEN,
    UNSEEN_HELD_OUT,
    DocumentationSite,
    prepare,
)
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.documents.search import SearchRequest, ranking, rerank, search
from forager.documents.search.embedding import Embedder, static_model
from forager.documents.search.semantic import Embedding
from forager.logs import configure_logs
from forager.settings import Settings

CACHE = Path(os.environ.get("SEARCH_BENCH_CACHE", "/var/tmp/forager-search"))
OWN_QUERIES = [
    Path(__file__).parent / name
    for name in (
        "search_queries.json",
        "unseen_queries.json",
        "blind_queries.json",
        "fresh_queries.json",
        "later_queries.json",
        "last_queries.json",
    )
]
DEPTH = 10
# notes below the tables
HISTORY = (
    "Before ranking was rewritten, the development sites had 60 % first and 72 % in the first"
    " three for keywords, 46 % and 58 % for questions. The first measurement of the held-out"
    " sites, by words, was 84 % and 97 % for keywords, 62 % and 72 % for questions. Two signals"
    " were added after the misses had been inspected: pages that are entirely indexes (keywords 86"
    " % and 99 %), and inbound links (90 % and 99 %)."
)
FUSION = (
    "Rankings by words and by meaning were first fused by reciprocal ranks. Now each ranking is"
    " scaled from 0 to 1 and the scores of a page are added; meaning counts half for queries"
    ' without common words such as "how" or "the", which 97 % of the questions and 22 % of the'
    " longer keyword queries have. Scaling was chosen on the development sites. It gained for"
    " questions: on the development sites from 62 % to 67 % first and from 75 % to 83 % in the"
    " first three (MRR .700 to .769), on the held-out sites from 62 % to 70 % first (MRR .750 to"
    " .786). It lost on the held-out sites: questions in the first three from 85 % to 82 %, and"
    " keywords from 90 % to 88 % first and from 99 % to 97 % in the first three. The half weight"
    " was added because of these keywords, so it is not blind: it regained 90 % first, but the"
    " first three stay at 97 %. Tried and rejected in separate runs over 22 and 39 questions,"
    " because the held-out sites lost as many questions in the first three as the development"
    " sites gained, or more: equal weights of title, heading and text in the vector of a section"
    " (3 gained, 3 lost), weights of tokens by their frequency (2 and 3), other constants of"
    " reciprocal rank fusion (1 and 2). The chosen method gained 2 and lost 1 of all 24 and 40"
    " questions. Query vectors without common words, other weights of the signals below, and a"
    " lower weight of words if no section matches well did not help on the development sites."
    " The best page with all words comes before pages that were found only by meaning, as readers"
    " expect: questions on the development sites gained (67 % to 71 % first, MRR .769 to .779), the"
    " held-out sites stayed the same. With all such pages first, the held-out sites lost one"
    " question in the first three (80 %)."
)
KINDS = ("keywords", "questions")
HEAD = ("queries", "number", "first", "first three", "MRR", "median ms", "p90 ms")

Queries = dict[str, dict[str, list[list[str]]]]
Group = tuple[str, Sequence[DocumentationSite]]
GROUPS: dict[str, Sequence[DocumentationSite]] = {
    "Development": DEVELOPMENT,
    "Held-out": HELD_OUT,
    "Blind": BLIND,
    "Further": FURTHER,
    "Other generators, tuned on": UNSEEN,
    "Other generators, held-out": UNSEEN_HELD_OUT,
    "Other generators, blind": BLIND_AGAIN,
    "Fresh": FRESH,
    "Later": LATER,
    "Last": LAST,
    "Final": FINAL,
    "Like the public evaluation": PUBLIC,
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A query and the rank of its answer: from 1, or 0 if not found."""

    site: str
    kind: str
    query: str
    place: int
    milliseconds: float
    first: str


async def judge(
    database: Database,
    queries: Queries,
    sites: Sequence[str],
    embedder: Embedder | None = None,
    *,
    is_named: bool = False,
    in_all: bool = False,
) -> list[Judged]:
    """Search in one source or in all, with or without its name after the query."""
    judged = []
    for site, kind in ((site, kind) for site in sites for kind in KINDS):
        for query, pattern in queries[site][kind]:
            asked = f"{query} {site}" if is_named else query
            source = None if is_named or in_all else site
            request = SearchRequest(query=asked, source=source, limit=DEPTH)
            page = await search(database, request, None, embedder)
            urls = [hit.url if hit.source_id == site else "" for hit in page.items]
            place = next((n for n, url in enumerate(urls, 1) if re.search(pattern, url)), 0)
            judged.append(Judged(site, kind, query, place, page.took * 1000, " ".join(urls[:3])))
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


def rows_of(name: str, judged: Sequence[Judged]) -> Iterator[list[str]]:
    for kind in KINDS:
        if chosen := [each for each in judged if each.kind == kind]:
            yield [f"{name}, {kind}", *summary(chosen)]


async def report_group(
    database: Database, queries: Queries, group: Group, report: Report, *, misses: bool
) -> None:
    name, sites = group
    names = [site.name for site in sites]
    report.heading(f"{name} sites")
    by_words = await judge(database, queries, names)
    rows = [*rows_of("by words", by_words)]
    judged = by_words
    if (embedder := static_model()) is not None:
        judged = await judge(database, queries, names, embedder)
        rows += rows_of("by words and meaning", judged)
        named = await judge(database, queries, names, embedder, is_named=True)
        rows += rows_of("the same in all sources, with the name of the source", named)
        unnamed = await judge(database, queries, names, embedder, in_all=True)
        rows += rows_of("the same in all sources, without it", unnamed)
    for site in names:
        rows += rows_of(site, [each for each in judged if each.site == site])
    report.table(HEAD, rows)
    for each in judged:
        if misses and each.place != 1:
            print(f"{each.site} {each.place} {each.query!r} {each.first}", file=sys.stderr)


async def report_signals(
    database: Database, queries: Queries, groups: Sequence[Group], report: Report
) -> None:
    """Measure the contribution of each signal: all queries without it."""
    report.heading("Without one signal")
    report.text("By words and meaning. The first row has every signal.")
    sites = [site.name for _, group in groups for site in group]
    rows = []
    stages: tuple[Any, ...] = (ranking, rerank)
    left_out = [(stage, each.name) for stage in stages for each in fields(stage.WEIGHTS)]
    for module, name in [(stages[0], ""), *left_out]:
        weights = module.WEIGHTS
        module.WEIGHTS = replace(weights, **{name: 0.0}) if name else weights
        judged = await judge(database, queries, sites, static_model())
        module.WEIGHTS = weights
        shown = (summary([each for each in judged if each.kind == kind])[1:4] for kind in KINDS)
        stage = "second stage, " if module is rerank else ""
        label = f"without {stage}{name}" if name else "all"
        rows.append([label, *(cell for row in shown for cell in row)])
        print(*rows[-1], sep=" | ", file=sys.stderr)
    head = [f"{kind} {what}" for kind in KINDS for what in ("first", "first three", "MRR")]
    report.table(("signal", *head), rows)


async def run(url: str, options: argparse.Namespace, report: Report) -> None:
    queries: Queries = json.loads(options.queries.read_text(encoding="utf-8"))
    for file in OWN_QUERIES:
        queries |= json.loads(file.read_text(encoding="utf-8"))
    groups = groups_of(options)
    async with Database(url, name="quality-search", max_size=1) as database:
        await Embedding(database, Settings()).run()
        if options.signals:
            return await report_signals(database, queries, groups, report)
        for group in groups:
            await report_group(database, queries, group, report, misses=options.misses)
        return None


def groups_of(options: argparse.Namespace) -> list[Group]:
    return [(name, sites) for name, sites in GROUPS.items() if name in (options.only or GROUPS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--only", choices=(*GROUPS,), action="append")
    parser.add_argument("--misses", action="store_true", help="list queries not answered first")
    parser.add_argument("--signals", action="store_true", help="only leave out each signal in turn")
    options = parser.parse_args()
    configure_logs("critical")
    home = prepare(CACHE, [site for _, sites in groups_of(options) for site in sites])
    report = Report("Quality of search")
    report.text(
        "Generated by `make quality-search`. A query is answered by the first page whose URL"
        " matches the URL that was expected in advance. Queries for the held-out sites were"
        " written from knowledge of these projects, before the first search; those for the blind"
        " sites after the rules of ranking were final, and none of them was changed afterwards."
    )
    report.text(HISTORY)
    report.text(FUSION)
    report.table(("machine", ""), describe_machine(home))
    with join_server(home) as server:
        uvloop.run(run(server.url, options, report))
    print(report.write("quality-search.md"), end="")


if __name__ == "__main__":
    main()
