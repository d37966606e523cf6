"""Crawl real sites with Forager and with its peers, one after the other, and compare.

All obey robots.txt, use 64 connections without delay, and store the page; only "the limit"
stores nothing. Run it with `make bench-crawl`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.crawls import (
    ARCHIVE_ONLY,
    DATABASE,
    OF_A_CRAWL,
    Crawl,
    build_peers,
    crawl_with_forager,
    crawl_with_peer,
    install_peers,
)
from benchmarks.machine import describe_machine
from benchmarks.report import Report
from benchmarks.sites import SITES, Site, missing_packages, served

FULL = "Forager, full job (sections, generation, search index)"
REFRESH = "Forager, refresh of an unchanged site"
PAGES = "Forager, archive and ledger only"
FORAGERS: dict[str, tuple[str, ...]] = {FULL: (), PAGES: ARCHIVE_ONLY}

SCRAPY = "Scrapy, JOBDIR, markdown"
SAME_WORK = "Scrapy, JOBDIR; markdown, sections, search index in PostgreSQL"
CONTENDERS: dict[str, tuple[str, ...]] = {
    "the limit (in memory, nothing stored)": ("memory_limit.py",),
    "Scrapy, JOBDIR": ("scrapy_jobdir.py",),
    SCRAPY: ("scrapy_jobdir.py", "markdown"),
    SAME_WORK: ("scrapy_postgres.py", DATABASE),
    "Crawlee, files": ("crawlee_files.py",),
    "Colly (Go), files": ("colly_files",),
    "spider (Rust), files": ("spider_files",),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds")
    parser.add_argument("--sites", type=int, default=len(SITES), help="only the first sites")
    options = parser.parse_args()
    rounds: int = options.rounds
    missing = missing_packages(SITES[: options.sites])
    if missing:
        raise SystemExit(f"needed for this benchmark: apt-get install {' '.join(missing)}")
    install_peers()
    missing_peers = build_peers()
    for peer, reason in missing_peers.items():
        CONTENDERS.pop(_name_of(peer))
        _say(f"{peer} is left out: {reason}")
    report = Report("Crawling: Forager and its peers")
    with TemporaryDirectory(prefix="forager-bench-") as folder:
        report.table(["machine", ""], describe_machine(Path(folder)))
        for number, site in enumerate(SITES[: options.sites]):
            # the other sites are larger, and vary less
            _compare(site, Path(folder), report, max(1, rounds // 3) if number else rounds)
    _explain(report, rounds)
    for peer, reason in missing_peers.items():
        report.text(f"Not measured: {peer}; {reason}.")
    print(report.write("crawl.md"))


def _name_of(peer: str) -> str:
    return next(name for name, (script, *_) in CONTENDERS.items() if script == peer)


def _compare(site: Site, folder: Path, report: Report, rounds: int) -> None:
    results: dict[str, list[Crawl]] = {}
    with served(site) as url:
        for number in range(rounds):
            _say(f"{site.package}, round {number + 1} of {rounds}")
            for name, options in FORAGERS.items():
                # a new home: without earlier pages, nothing can be unchanged
                with TemporaryDirectory(dir=folder) as home:
                    results.setdefault(name, []).append(
                        crawl_with_forager(url, Path(home), options)
                    )
            for name, (script, *words) in CONTENDERS.items():
                results.setdefault(name, []).append(crawl_with_peer(script, words, url, folder))
            with TemporaryDirectory(dir=folder) as home:
                crawl_with_forager(url, Path(home), ())
                results.setdefault(REFRESH, []).append(crawl_with_forager(url, Path(home), ()))
    report.heading(f"{site.package}")
    report.table(
        [
            "crawler",
            "pages",
            "pages/s",
            "full job is",
            "archive only is",
            "CPU ms/page",
            "peak MB",
            "whole command s",
        ],
        _rows(results),
    )
    _say_parts(report, results)


def _say_parts(report: Report, results: dict[str, list[Crawl]]) -> None:
    """Where the processor time of Forager's crawls goes, in milliseconds per page."""
    names = [*OF_A_CRAWL, "command"]
    shares = {
        crawl: {
            name: statistics.median(result.ms_per_page(name) for result in results[crawl])
            for name in names
        }
        for crawl in (FULL, PAGES, REFRESH)
    }
    report.text("Processor time by part, in ms per page:")
    report.table(
        ["crawl", *names],
        [[crawl, *(f"{ms:.2f}" for ms in parts.values())] for crawl, parts in shares.items()],
    )
    first, refresh = (sum(shares[crawl][name] for name in OF_A_CRAWL) for crawl in (FULL, REFRESH))
    report.text(
        f"Runner, extraction and PostgreSQL of the refresh together took {refresh / first:.0%} of "
        "the processor time of the first crawl."
    )
    report.text(_what_ten_times_means(results, first))


def _what_ten_times_means(results: dict[str, list[Crawl]], ms: float) -> str:
    """Compare the goal with the processor time that a page takes."""
    cores = os.cpu_count() or 1
    goal = 10 * statistics.median(result.rate for result in results[SCRAPY])
    return (
        f"A page of the full job takes {ms:.2f} ms, so {cores} cores that are never idle "
        f"reach {1000 * cores / ms:,.0f} pages/s at most. Ten times Scrapy with markdown would be "
        f"{goal:,.0f} pages/s, or {1000 * cores / goal:.2f} ms per page for everything."
    )


def _rows(results: dict[str, list[Crawl]]) -> list[list[str]]:
    full, pages = (
        statistics.median(result.rate for result in results[name]) for name in (FULL, PAGES)
    )
    rows = []
    for name, rounds in results.items():
        rate = statistics.median(result.rate for result in rounds)
        middle = sorted(rounds, key=lambda result: result.rate)[len(rounds) // 2]
        rows.append(
            [
                name,
                f"{middle.pages:,}",
                f"{rate:,.0f}",
                f"{full / rate:.2f}x",
                f"{pages / rate:.2f}x",
                f"{1000 * middle.usage.cpu_seconds / middle.pages:.2f}",
                f"{middle.usage.peak_mb:.0f}",
                f"{middle.usage.seconds:.1f}",
            ]
        )
    return rows


def _explain(report: Report, rounds: int) -> None:
    report.heading("How to read this")
    report.text(
        f"Rounds: {rounds}, of the larger site {max(1, rounds // 3)}; the median is shown, and the "
        "crawlers run in turn. pages/s covers the crawl itself as each crawler measures it, from "
        "its first request to its last write; the last column includes starting and stopping the "
        "command. The columns *full job is* and *archive only is* show how many times as fast "
        "Forager is as the crawler in the row. CPU counts all processes, including PostgreSQL for "
        "Forager. Memory is the proportional set size (PSS), summed over all processes, and for "
        "Forager includes PostgreSQL's shared buffers."
    )
    report.text(
        "A Forager page counts only when it is durable: its response is in a synced WARC segment, "
        "and its outlinks, ledger entry and frontier change are in one committed transaction. Of "
        "the peers, only Scrapy has a queue that survives its process; Colly and spider write one "
        "file per page and keep everything else in memory. Scrapy with PostgreSQL does the same "
        "work as the full job, in batches, without an archive of responses and without "
        "generations; its PostgreSQL has the same configuration and is counted, too."
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
