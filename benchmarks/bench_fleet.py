"""Many polite crawls on one worker, compared with Scrapy in the same run.

    python -m benchmarks.bench_fleet [--rows fleet,large,hosts,fast,memory] [--sites 100]
        [--large 1000] [--capacity N] [--no-peers] [--note TEXT]

Runs a separate embedded PostgreSQL in a temporary folder, prints a report and writes it to
`benchmarks/results/fleet.md`. Every site is a loopback address that gets one request per second.
All rows together take about 10 minutes: a run that takes longer than 4 minutes is ended, and Scrapy
is ended after 2.5. A row that fails is reported as failed, and the others are measured.
`make bench-fleet OTHER=folder` also compares one crawl alone with another checkout.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.crawls import FOLDER, PEERS, install_peers
from benchmarks.fleet_worker import HEAD, Fleet, Run, many_sites
from benchmarks.machine import describe_machine
from benchmarks.report import Report
from benchmarks.sites import SITES, missing_packages, served
from benchmarks.usage import run_measured
from forager.db import schema
from forager.db.embedded import join_server
from forager.logs import configure_logs

DELAY = 1.0
FLEET_PAGES = 30
LARGE_PAGES = 20
SCRAPY_LIMIT = 150
IDLE_CRAWLS = (40, 200)
ROWS = ("fleet", "large", "hosts", "fast", "memory")


# name of a row of aims, what it aims at, and what was measured
Aim = tuple[str, str, str]


def sentence(text: str) -> list[str]:
    """A row without numbers."""
    return [text, *[""] * (len(HEAD) - 1)]


def scrapy_row(urls: Sequence[str], name: str, ideal: float) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="forager-scrapy-") as folder:
        script = str(FOLDER / "contenders" / "scrapy_fleet.py")
        usage = run_measured([str(PEERS / "bin/python"), script, folder, str(SCRAPY_LIMIT), *urls])
    found = json.loads(usage.output.splitlines()[-1])
    ended = f" (ended after {SCRAPY_LIMIT} s)" if found["was_ended"] else ""
    return [
        f"{name}, Scrapy{ended}", f"{found['pages']:,}", f"{usage.seconds:.1f}",
        f"{usage.seconds / ideal:.2f}", f"{usage.peak_mb:,.0f}", "1", "",
        f"{1000 * usage.cpu_seconds / max(1, found['pages']):.1f}", "", "", "",
    ]  # fmt: skip


class Rows:
    """The rows of the report; each measures one kind of work."""

    def __init__(self, fleet: Fleet, options: argparse.Namespace) -> None:
        self._fleet = fleet
        self._options = options
        # runs of a number of sites with a number of pages
        self._polite: dict[tuple[int, int], Run] = {}
        self.aims: list[Aim] = []

    def measure(self, name: str) -> Iterator[list[str]]:
        """The rows of one kind; its failure does not cost the others."""
        try:
            yield from getattr(self, name)()
        except (Exception, SystemExit) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split()).replace("|", "/")
            yield sentence(f"{name}: failed with {reason[:300]}")

    def fleet(self) -> Iterator[list[str]]:
        yield from self._polite_rows(self._options.sites, FLEET_PAGES)

    def large(self) -> Iterator[list[str]]:
        yield from self._polite_rows(self._options.large, LARGE_PAGES)

    def _polite_rows(self, sites: int, pages: int) -> Iterator[list[str]]:
        name = f"{sites:,} sites x {pages} pages"
        with many_sites(sites, pages) as urls:
            run = self._polite[sites, pages] = self._fleet.run([([url], DELAY) for url in urls])
            yield run.row(f"{name}, one crawl each", pages * DELAY)
            times = run.seconds / (pages * DELAY)
            is_large = sites > self._options.sites
            self._aim(name, f"at most {3 if is_large else 1.4} times the ideal", f"{times:.2f}")
            limit = "1,536" if is_large else "600"
            self._aim(name, f"at most {limit} MB", f"{run.peak_mb:,.0f}")
            if not is_large:
                used = f"{run.processes}, {run.connections}"
                self._aim(name, "at most 10 processes and 30 connections", used)
            if self._options.peers:
                row = scrapy_row(urls, name, pages * DELAY)
                yield row
                if not is_large:
                    self._aim(name, "faster than Scrapy", f"{run.seconds:.1f} s, Scrapy {row[2]} s")

    def _aim(self, *aim: str) -> None:
        work, wanted, measured = aim
        self.aims.append((work, wanted, measured))

    def hosts(self) -> Iterator[list[str]]:
        hosts, pages = min(60, self._options.sites), FLEET_PAGES
        name = f"{hosts} hosts x {pages} pages"
        with many_sites(hosts, pages) as urls:
            run = self._fleet.run([(urls, DELAY)])
            yield run.row(f"one crawl, {name}", pages * DELAY)
            times = run.seconds / (pages * DELAY)
            self._aim(f"one crawl, {name}", "at most 1.4 times the ideal", f"{times:.2f}")
            if self._options.peers:
                yield scrapy_row(urls, name, pages * DELAY)

    def fast(self) -> Iterator[list[str]]:
        """One crawl without a delay, alone and beside polite ones."""
        if missing := missing_packages(SITES[:1]):
            yield sentence(f"not measured: needs {' '.join(missing)}")
            return
        sites, pages = self._options.sites, FLEET_PAGES
        with served(SITES[0]) as manual, many_sites(sites, pages) as urls:
            polite_crawls = [([url], DELAY) for url in urls]
            alone = self._fleet.run([([manual], 0.0)])
            polite = self._polite.get((sites, pages)) or self._fleet.run(polite_crawls)
            both = self._fleet.run([([manual], 0.0), *polite_crawls])
        yield alone.row("PostgreSQL manual alone", alone.seconds)
        yield both.row(f"PostgreSQL manual beside {sites} sites x {pages} pages", pages * DELAY)
        speed, pace = _kept(alone, both, 0.0), _kept(polite, both, DELAY)
        yield sentence(f"of it: the fast crawl keeps {speed} of its speed, the polite ones {pace}")
        self._aim("one fast crawl beside polite ones", "at least 70% of its speed", speed)
        self._aim("polite crawls beside a fast one", "at least 90% of their pace", pace)

    def memory(self) -> Iterator[list[str]]:
        """The memory of one more crawl: idle in a runner, and as the difference of two runs."""
        fewest, most = IDLE_CRAWLS
        count = max(fewest, min(most, self._options.large))
        command = [sys.executable, "-m", "benchmarks.fleet_memory", str(count)]
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        per_crawl = next(line for line in found.splitlines() if line.startswith("one more"))
        yield sentence(f"memory of a runner, {per_crawl} (idle, the {count}th)")
        size = per_crawl.rpartition(": ")[2]
        self._aim("one more idle crawl", "at most 1 MB of memory", size)
        few = self._polite.get((self._options.sites, FLEET_PAGES))
        many = self._polite.get((self._options.large, LARGE_PAGES))
        # otherwise the difference is chance
        if few and many and many.crawls > 2 * few.crawls:
            kb = 1024 * (many.peak_mb - few.peak_mb) / (many.crawls - few.crawls)
            yield sentence(f"memory of the worker, one more active crawl: {kb:.0f} KB")


def _kept(alone: Run, both: Run, delay: float) -> str:
    """The share of their speed that crawls with a delay keep beside others."""
    before, after = alone.by_delay.get(delay), both.by_delay.get(delay)
    return f"{before / after:.0%}" if before and after else "an unknown part"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--sites", type=int, default=100)
    parser.add_argument("--large", type=int, default=1_000)
    parser.add_argument("--capacity", type=int, help="other than the default of the setting")
    parser.add_argument("--no-peers", dest="peers", action="store_false")
    parser.add_argument("--note", default="", help="what else ran on the machine")
    options = parser.parse_args()
    configure_logs("critical")
    if options.peers:
        install_peers()
    report = Report("Many polite crawls")
    with tempfile.TemporaryDirectory(prefix="forager-bench-") as folder, ExitStack() as stack:
        report.text("Generated by `make bench-fleet`.")
        report.table(("machine", ""), describe_machine(Path(folder)))
        use = stack.enter_context(join_server(Path(folder) / "server"))
        schema.ensure_current(use.url)
        assert use.pid is not None
        measured = Rows(Fleet(use.url, use.pid, Path(folder), options.capacity), options)
        rows = []
        for name in options.rows.split(","):
            for row in measured.measure(name):
                rows.append(row)
                print(" | ".join(row), file=sys.stderr, flush=True)
        report.heading("One worker")
        report.text(
            "One worker with default settings, from its start to its last completed job; each site"
            " allows one request per second, so that the ideal is one second per page. Memory is"
            " the proportional set size (PSS) of the worker and all its processes, without"
            " PostgreSQL. Connections are those of the worker and its processes. Statements are"
            " counted in the log of the server for 8 seconds of a run. Scrapy runs in one"
            " process with one slot per host and a delay of one second, with its queue on disk."
            " The sites run on the same machine. `make bench-compare OTHER=folder PARTS=crawl`"
            f" compares one crawl alone with another checkout. {options.note}".rstrip()
        )
        report.table(HEAD, rows)
        report.heading("Aims")
        report.table(("work", "aim", "measured"), measured.aims)
    print(report.write("fleet.md"), end="")


if __name__ == "__main__":
    main()
