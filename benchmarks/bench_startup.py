"""Time from a command to its first effect: help, a list, and the first request of a crawl.

python -m benchmarks.bench_startup [--runs 5] [--source FOLDER]

`--source` also measures the package of another checkout, in turn with this one.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.machine import describe_machine
from benchmarks.report import Report
from forager.db.embedded import join_server, stop_lingering

FORAGER = Path(sys.executable).parent / "forager"
PAGE = b"<!doctype html><title>Start</title><h1>Start</h1><p>The only page."
LIMIT = 120


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds until the expected effect, and processor seconds of the whole command."""

    wall: float
    cpu: float


class FirstRequest(ThreadingHTTPServer):
    """A site of one page that records the time of its first request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _OnePage)
        self.at: float | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class _OnePage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, FirstRequest)
        self.server.at = self.server.at or time.perf_counter()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Installation:
    """The package of one checkout; a server of `home` is up."""

    name: str
    source: Path
    home: Path

    def run(self, *arguments: str, home: Path | None = None) -> Run:
        began, before = time.perf_counter(), _children()
        subprocess.run(
            [FORAGER, *arguments],
            env=os.environ
            | {"PYTHONPATH": str(self.source), "FORAGER_HOME": str(home or self.home)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT,
            check=True,
        )
        return Run(time.perf_counter() - began, _children() - before)

    def first_request(self, home: Path | None = None) -> Run:
        with _served() as site:
            began = time.perf_counter()
            run = self.run("crawl", site.url, "--allow-private", home=home)
            assert site.at is not None
            return Run(site.at - began, run.cpu)

    def first_request_in_new_home(self) -> Run:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            try:
                return self.first_request(Path(home))
            finally:
                stop_lingering(Path(home))


@contextmanager
def _served() -> Iterator[FirstRequest]:
    with FirstRequest() as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield site
        site.shutdown()


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


CASES: dict[str, tuple[float | None, Callable[[Installation], Run]]] = {
    "`forager --help`": (0.3, lambda each: each.run("--help")),
    "`forager jobs list`, server up": (0.5, lambda each: each.run("jobs", "list")),
    "`forager crawl` to first request, server up": (0.7, lambda each: each.first_request()),
    "`forager crawl` to first request, new home": (
        2.5,
        lambda each: each.first_request_in_new_home(),
    ),
}


def measure(installations: list[Installation], runs: int, report: Report) -> None:
    for each in installations:  # creates the home, and warms the caches of the machine
        each.run("jobs", "list")
    rows = []
    for case, (target, run) in CASES.items():
        found: dict[str, list[Run]] = {each.name: [] for each in installations}
        for _ in range(runs):
            for each in installations:
                found[each.name].append(run(each))
        for name, measured in found.items():
            rows.append([case, name, "-" if target is None else f"{target:.1f}", *_cells(measured)])
    head = ("command", "checkout", "target", "median", "fastest", "processor time")
    report.heading("Seconds from the command to its effect")
    report.text(
        f"{runs} runs of each checkout, in turn. The effect is the end of the command, or the"
        " first request that the crawled site receives. Processor time is that of the command and"
        " its child processes until they exit, without PostgreSQL; on a busy machine it is more"
        " reliable than elapsed time."
    )
    report.table(head, rows)


def _cells(runs: list[Run]) -> list[str]:
    walls = [run.wall for run in runs]
    cpu = min(run.cpu for run in runs)
    return [f"{statistics.median(walls):.2f}", f"{min(walls):.2f}", f"{cpu:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--source", type=Path, help="`src` of another checkout, to compare with")
    options = parser.parse_args()
    report = Report("Start-up")
    report.text("Generated by `make bench-startup`.")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        report.table(("machine", ""), describe_machine(Path(folder)))
        source = Path(__file__).parent.parent / "src"
        sources = {"this": source} | ({"other": options.source} if options.source else {})
        installations = [
            Installation(name, source.absolute(), Path(folder) / name)
            for name, source in sources.items()
        ]
        with ExitStack() as servers:
            for each in installations:  # up, as after another command
                servers.enter_context(join_server(each.home))
            measure(installations, options.runs, report)
    print(report.write("startup.md"))


if __name__ == "__main__":
    main()
