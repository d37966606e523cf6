"""Memory of a runner that knows many URLs: bench_memory.py [COUNT], ten million by default.

Fills the data structures that a resumed crawl loads from its tables: known URLs, rejected URLs
that may be accepted later, URL patterns, content hashes, and a full window of the frontier.
"""

from __future__ import annotations

import hashlib
import resource
import sys
import time
from pathlib import Path

import psutil

from benchmarks.machine import describe_machine
from benchmarks.report import Report
from forager.crawl import job  # the modules of a runner count as well
from forager.crawl.frontier.discovery import NOFOLLOW, Discovery
from forager.crawl.frontier.entry import FrontierEntry, Via
from forager.crawl.frontier.scope import CrawlScope
from forager.crawl.frontier.window import CAPACITY
from forager.crawl.ledger import Ledger
from forager.crawl.visit.content_filter import ContentFilter
from forager.extract.urls import NormalizedUrl

# one in this many URLs was rejected as nofollow
NOFOLLOWED = 20


def main(count: int) -> None:
    report = Report("Memory of a runner")
    report.table(("machine", ""), describe_machine(Path()))
    rows = [("imports", *_memory(0.0))]
    began = time.perf_counter()
    discovery = Discovery(CrawlScope([NormalizedUrl("https://docs.example/")]), Ledger())
    discovery.reserve(count)
    contents = ContentFilter()
    for number in range(count):
        url = f"https://docs.example/section-{number % 5000}/{number}/page.html"
        digest = hashlib.sha256(url.encode()).digest()
        discovery.remember(digest[:16], url, NOFOLLOW if number % NOFOLLOWED == 0 else None)
        contents.add(digest)
    rows.append((f"{count:,} known URLs", *_memory(time.perf_counter() - began)))
    window = [_entry(number) for number in range(2 * CAPACITY)]
    rows.append((f"{len(window):,} entries of the frontier", *_memory(0.0)))
    report.table(("after", "resident MB", "seconds"), rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report.text(
        f"Peak of the process: {peak:.0f} MB. Crawl jobs (`{job.__name__}`) run in such a process."
    )
    print(report.write("memory.md"))


def _entry(number: int) -> FrontierEntry:
    url = NormalizedUrl(f"https://docs.example/section-{number % 5000}/{number}/page.html")
    key = hashlib.sha256(url.encode()).digest()[:16]
    return FrontierEntry(depth=3, seq=number, key=key, url=url, via=Via.LINK, parent=key)


def _memory(seconds: float) -> tuple[str, str]:
    resident = psutil.Process().memory_info().rss / 2**20
    return f"{resident:.0f}", f"{seconds:.1f}" if seconds else ""


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
