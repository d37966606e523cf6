"""Crawl one site of a million pages: only disk usage may grow.

    python -m benchmarks.bench_million [--pages 1000000] [--site FOLDER] [--note TEXT]

Runs `forager up` with an embedded PostgreSQL in a temporary folder (about 30 GB for a million
pages), crawls, pauses, resumes, publishes, refreshes and deletes the source. A small second source
is searched and refreshed at the same time. The report in `benchmarks/results/million.md` is
updated after each phase.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import LiteralString

import psycopg
from psycopg.rows import tuple_row

import forager
from benchmarks.crawls import OF_A_CRAWL, PARTS
from benchmarks.generated import WORDS, generate_site
from benchmarks.machine import describe_machine
from benchmarks.report import Report
from benchmarks.sites import served
from benchmarks.usage import memory_by_part, tree_cpu
from forager.db.embedded import join_server
from forager.logs import configure_logs

LARGE, SMALL = "large", "small"
SMALL_PAGES = 200
ROWS = 10
LOOK = 0.2
PROBE = 20.0
SETTINGS = {"FORAGER_EMBEDDINGS": "off", "FORAGER_BROWSER": "none", "FORAGER_LOG_LEVEL": "error"}
STATE: LiteralString = """
    SELECT j.status, s.total_processed, s.total_pending
      FROM crawl_jobs j LEFT JOIN crawl_states s ON s.job_id = j.id WHERE j.id = %s
"""


@dataclass
class Probe:
    """Searches and refreshes of the small source, by the phase of the large one."""

    phase: str = "before"
    searches: dict[str, list[float]] = field(default_factory=dict)
    refreshes: dict[str, list[float]] = field(default_factory=dict)

    def run(self, home: Path, over: threading.Event) -> None:
        with forager.open(home=home) as store:
            number = 0
            while not over.wait(PROBE / 10):
                number += 1
                query = f"{WORDS[number % len(WORDS)]} {WORDS[number * 7 % len(WORDS)]}"
                timed(self.searches, self.phase, lambda q=query: store.search(q, source=SMALL))  # type: ignore[misc]
                if number % 10 == 0:
                    timed(self.refreshes, self.phase, lambda: refresh(store))


def refresh(store: forager.Forager) -> None:
    job = store.refresh(SMALL).job.id
    while store.report(job).job.status in {"pending", "processing"}:
        time.sleep(LOOK / 4)


def timed(seconds: dict[str, list[float]], phase: str, work: Callable[[], object]) -> None:
    started = time.monotonic()
    work()
    seconds.setdefault(phase, []).append(time.monotonic() - started)


@dataclass
class Installation:
    """`forager up` and its embedded server, with their resource usage."""

    home: Path
    url: str
    server: int
    up: subprocess.Popen[bytes]

    def call(self, *words: str) -> str:
        command = [program(), "--home", str(self.home), *words]
        done = subprocess.run(
            command, env=environment(), stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout

    def job(self, *words: str) -> str:
        """Run a command that enqueues a crawl; return the id of its job."""
        answer = json.loads(self.call(*words, "--json"))
        return str(answer.get("id") or answer["job_id"])

    def state(self, job: str) -> tuple[str, int, int]:
        with psycopg.connect(self.url, row_factory=tuple_row) as connection:
            row = connection.execute(STATE, (job,)).fetchone()
        assert row is not None
        return row[0], row[1] or 0, row[2] or 0

    def wait(self, job: str, until: Callable[[str, int, int], bool]) -> tuple[str, int, int]:
        while not until(*(state := self.state(job))):
            assert state[0] not in {"failed", "cancelled"}, state
            time.sleep(LOOK)
        return state

    def count(self, statement: LiteralString) -> int:
        with psycopg.connect(self.url) as connection:
            row = connection.execute(statement).fetchone()
        assert row is not None
        return int(row[0])

    def used(self) -> dict[str, float]:
        """Memory by part in MB, disk in bytes, processor time in seconds."""
        memory = memory_by_part(self.up.pid, PARTS, also=self.server)
        return {
            **memory,
            "database": self.count("SELECT pg_database_size(current_database())"),
            "wal": self.count("SELECT coalesce(sum(size), 0) FROM pg_ls_waldir()"),
            "archive": folder_size(self.home / "archive"),
            "cpu": tree_cpu(self.server) + tree_cpu(self.up.pid),
        }


def program() -> str:
    return str(Path(sys.executable).parent / "forager")


def environment() -> dict[str, str]:
    return {**os.environ, **SETTINGS}


def folder_size(folder: Path) -> int:
    return sum(
        (Path(at) / name).stat().st_blocks * 512
        for at, _, names in os.walk(folder)
        for name in names
    )


@contextmanager
def installed(home: Path) -> Iterator[Installation]:
    with join_server(home) as server:
        assert server.pid is not None
        command = [program(), "--home", str(home), "up", "--no-api", "--capacity", "2"]
        up = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
        try:
            yield Installation(home, server.url, server.pid, up)
        finally:
            up.terminate()
            up.wait(120)


def reached(pages: int) -> Callable[[str, int, int], bool]:
    """Whether this number of pages is reached, or the crawl has ended."""
    return lambda _, done, pending: done >= pages or (done > 0 and pending == 0)


class Run:
    """The phases, each with its rows for the report."""

    def __init__(self, install: Installation, probe: Probe, pages: int) -> None:
        self.install = install
        self.probe = probe
        self.pages = pages
        self.growth: list[list[str]] = []
        self.times: list[list[str]] = []

    def note(self, what: str, seconds: float, remark: str = "") -> None:
        self.times.append([what, f"{seconds:,.1f}", remark])
        print(f"{what}: {seconds:,.1f} s {remark}", file=sys.stderr)

    def crawl(self, url: str) -> None:
        self.probe.phase = "crawl"
        job = self.install.job(
            "crawl", url, "--source", LARGE, "--detach", "--concurrency", "64", "--delay", "0",
            "--allow-private",
        )  # fmt: skip
        self._follow(job, "crawl", pause_after=3)
        self._publish(job, "publish")

    def refresh(self) -> None:
        self.probe.phase = "refresh"
        started = time.monotonic()
        job = self.install.job("sources", "refresh", LARGE)
        self._follow(job, "refresh")
        self._publish(job, "publish the refresh")
        changed = self.install.count(
            "SELECT added + changed + removed FROM generations ORDER BY id DESC LIMIT 1"
        )
        remark = f"{changed:,} pages added, changed or removed"
        self.note("refresh with nothing changed", time.monotonic() - started, remark)

    def delete(self) -> None:
        self.probe.phase = "delete"
        started = time.monotonic()
        self.install.call("sources", "delete", LARGE, "--yes")
        self.note("delete the source: until the command ends", time.monotonic() - started)
        while self.install.count(
            f"SELECT count(*) FROM (SELECT FROM documents WHERE source_id = '{LARGE}' LIMIT 1) d"
        ):
            time.sleep(5 * LOOK)
        self.note("delete the source: until its rows are gone", time.monotonic() - started)

    def _publish(self, job: str, name: str) -> None:
        """Seconds from the last page until readers see the generation."""
        self.probe.phase = name
        started = time.monotonic()
        self.install.wait(job, lambda status, *_: status == "completed")
        self.note(name, time.monotonic() - started)

    def _follow(self, job: str, name: str, pause_after: int = 0) -> None:
        install = self.install
        before, started, seen = install.used(), time.monotonic(), 0
        for row in range(1, ROWS + 1):
            _, done, _ = install.wait(job, reached(self.pages * row // ROWS))
            after, now = install.used(), time.monotonic()
            self._row(name, done, done - seen, now - started, before, after)
            before, started, seen = after, now, done
            if row == pause_after:
                seen = self._pause(job)
                before, started = install.used(), time.monotonic()

    def _row(
        self,
        name: str,
        done: int,
        pages: int,
        seconds: float,
        before: Mapping[str, float],
        after: Mapping[str, float],
    ) -> None:
        used = [f"{after.get(part, 0):,.0f}" for part in (*OF_A_CRAWL, "command")]
        disk = [f"{after[part] / max(1, done) / 1000:.1f}" for part in ("database", "archive")]
        row = [
            f"{name}, {done:,}",
            f"{pages / seconds:,.0f}",
            f"{1000 * (after['cpu'] - before['cpu']) / max(1, pages):.1f}",
            *used,
            *disk,
            f"{after['wal'] / 1e6:,.0f}",
        ]
        self.growth.append(row)
        print(" | ".join(row), file=sys.stderr)

    def _pause(self, job: str) -> int:
        """Pause and resume; return the number of pages at that time."""
        started = time.monotonic()
        self.install.call("jobs", "pause", job)
        _, done, _ = self.install.wait(job, lambda status, *_: status == "paused")
        self.note("pause: command to the last commit", time.monotonic() - started)
        started = time.monotonic()
        self.install.call("jobs", "resume", job)
        _, resumed, _ = self.install.wait(job, lambda *state: state[1] > done)
        self.note("resume: command to the next commit", time.monotonic() - started)
        return resumed


def write_report(run: Run, machine: list[tuple[str, str]], note: str) -> None:
    report = Report(f"A site of {run.pages:,} pages")
    report.text(
        "Generated by `make bench-million`: generated pages of about 2 kB behind nginx on loopback,"
        " 64 connections, no delay, a full job with documents and search, no embeddings, under"
        " `forager up`."
    )
    report.table(("machine", ""), machine)
    report.heading("Growth")
    report.text(
        "Rates and processor time (all processes, the database included) are of the pages since the"
        " row above; memory (PSS) is that of the moment. kB per page is the total size divided by"
        " the pages crawled so far; during a refresh, by the pages refreshed so far, although both"
        " generations are stored."
    )
    parts = [f"{part}, MB" for part in (*OF_A_CRAWL, "other processes")]
    report.table(
        ("after pages", "pages/s", "CPU ms/page", *parts, "database kB/page", "archive kB/page",
         "WAL, MB"),
        run.growth,
    )  # fmt: skip
    if note:
        report.text(note)
    report.heading("Seconds")
    report.table(("what", "seconds", "remark"), run.times)
    report.heading("Another source meanwhile")
    report.text(
        f"A source of {SMALL_PAGES} pages is searched every {PROBE / 10:.0f} s and refreshed every"
        f" {PROBE:.0f} s by the same installation. The longest refresh bounds how long anything"
        " blocked it."
    )
    phases = [*dict.fromkeys([*run.probe.searches, *run.probe.refreshes])]
    report.table(
        ("phase", "searches", "median, ms", "longest, ms", "refreshes", "median, s", "longest, s"),
        [[phase, *_spread(run.probe.searches.get(phase, []), 1000),
          *_spread(run.probe.refreshes.get(phase, []), 1)] for phase in phases],
    )  # fmt: skip
    report.write("million.md")


def _spread(seconds: list[float], unit: int) -> list[str]:
    if not seconds:
        return ["0", "-", "-"]
    shown = [
        f"{unit * value:,.{0 if unit > 1 else 1}f}"
        for value in (statistics.median(seconds), max(seconds))
    ]
    return [str(len(seconds)), *shown]


def measure(folder: Path, site: Path, pages: int, note: str) -> None:
    sites = [generate_site(site, pages), generate_site(folder / "small", SMALL_PAGES)]
    machine = describe_machine(folder)
    print("site written", file=sys.stderr)
    probe, over = Probe(), threading.Event()
    with (
        served(sites[0]) as large,
        served(sites[1]) as small,
        installed(folder / "home") as install,
    ):
        first = install.job("crawl", small, "--source", SMALL, "--detach", "--allow-private")
        install.wait(first, lambda status, *_: status == "completed")
        prober = threading.Thread(target=probe.run, args=(install.home, over))
        prober.start()
        run = Run(install, probe, pages)
        try:
            time.sleep(2 * PROBE)
            phases: list[Callable[[], None]] = [partial(run.crawl, large), run.refresh, run.delete]
            for phase in phases:
                phase()
                write_report(run, machine, note)
        finally:
            over.set()
            prober.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--site", type=Path, help="keep the generated site here for the next run")
    parser.add_argument("--note", default="", help="other load on the machine, for the report")
    options = parser.parse_args()
    configure_logs("error")
    with TemporaryDirectory(prefix="forager-bench-") as folder:
        site = options.site or Path(folder) / "site"
        measure(Path(folder), site, options.pages, options.note)


if __name__ == "__main__":
    main()
