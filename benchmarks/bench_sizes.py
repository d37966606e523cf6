"""Speed and memory of a crawl against the size of its site.

    python -m benchmarks.bench_sizes [--sizes 1000,10000,30000,100000] [--full 30000]

Generated pages of about 2 kB behind nginx on loopback, 64 connections, no delay. Writes
`benchmarks/results/sizes.md`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.crawls import (
    ARCHIVE_ONLY,
    OF_A_CRAWL,
    Crawl,
    crawl_with_forager,
    crawl_with_peer,
    install_peers,
)
from benchmarks.generated import generate_site
from benchmarks.machine import describe_machine
from benchmarks.report import Report
from benchmarks.sites import nginx, served

ARCHIVE = "archive and ledger"
FULL = "full job"
SCRAPY = "Scrapy, JOBDIR"
LIMIT = "the limit"

Results = dict[str, dict[int, Crawl]]


def measure(sizes: list[int], largest: dict[str, int], folder: Path) -> Results:
    results: Results = {}
    for size in sizes:
        with TemporaryDirectory(dir=folder) as root, served(generate_site(Path(root), size)) as url:
            for name, crawl in crawls(url, folder).items():
                if size > largest.get(name, size):
                    continue
                done = crawl()
                # Scrapy fetches its first page again when another one links to it
                assert size <= done.pages <= size + 1, f"{name} found {done.pages:,} of {size:,}"
                results.setdefault(name, {})[size] = done
                print(f"{size:,} pages, {name}: {done.rate:,.0f} pages/s", file=sys.stderr)
    return results


def crawls(url: str, folder: Path) -> dict[str, Callable[[], Crawl]]:
    def forager(options: tuple[str, ...]) -> Crawl:
        with TemporaryDirectory(dir=folder) as home:
            return crawl_with_forager(url, Path(home), options)

    return {
        ARCHIVE: lambda: forager(ARCHIVE_ONLY),
        FULL: lambda: forager(()),
        LIMIT: lambda: crawl_with_peer("memory_limit.py", (), url, folder),
        SCRAPY: lambda: crawl_with_peer("scrapy_jobdir.py", (), url, folder),
    }


# --- the report ------------------------------------------------------------------------------


def report_speed(report: Report, results: Results) -> None:
    report.heading("Pages per second")
    report.text(
        "From the first request to the last write, one crawl each. A dash: not crawled, it would"
        " take too long. Every crawler found every page, or there would be no report."
    )
    sizes = sorted(results[ARCHIVE])
    report.table(
        ("pages", *results),
        [
            [f"{size:,}", *(_rate(crawls.get(size)) for crawls in results.values())]
            for size in sizes
        ],
    )


def _rate(crawl: Crawl | None) -> str:
    return f"{crawl.rate:,.0f}" if crawl else "-"


def report_memory(report: Report, name: str, crawls: dict[int, Crawl]) -> None:
    report.heading(f"Peak memory in MB, {name}")
    rows = []
    for size, crawl in sorted(crawls.items()):
        parts = [f"{crawl.usage.memory[part]:.0f}" for part in OF_A_CRAWL]
        rows.append([f"{size:,}", *parts, f"{crawl.usage.peak_mb:.0f}"])
    report.table(("pages", *OF_A_CRAWL, "all at once, with the command"), rows)


def report_processor(report: Report, name: str, crawls: dict[int, Crawl]) -> None:
    report.heading(f"Processor time in ms per page, {name}")
    parts = (*OF_A_CRAWL, "command")
    report.table(
        ("pages", *parts),
        [
            [f"{size:,}", *(f"{crawl.ms_per_page(part):.2f}" for part in parts)]
            for size, crawl in sorted(crawls.items())
        ],
    )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000,30000,100000", help="pages, with commas")
    parser.add_argument("--full", type=int, default=30_000, help="largest site for full jobs")
    parser.add_argument("--peers", type=int, default=10_000, help="largest site for Scrapy")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    if nginx() is None:
        raise SystemExit("needed for this benchmark: apt-get install nginx-light")
    install_peers()
    report = Report("Growth: crawls of larger and larger sites")
    with TemporaryDirectory(prefix="forager-bench-") as folder:
        report.text("Made by `python -m benchmarks.bench_sizes`.")
        report.table(("machine", ""), describe_machine(Path(folder)))
        sizes = [int(size) for size in options.sizes.split(",")]
        results = measure(sizes, {FULL: options.full, SCRAPY: options.peers}, Path(folder))
    report_speed(report, results)
    report.text(
        "Memory is proportional (PSS): pages that processes share are shared out. Each part has its"
        " own peak. PostgreSQL's includes the shared buffers it has touched, up to its setting;"
        " extraction is all its processes together."
    )
    for name in (ARCHIVE, FULL):
        report_memory(report, name, results[name])
        report_processor(report, name, results[name])
    print(report.write("sizes.md"))


if __name__ == "__main__":
    main()
