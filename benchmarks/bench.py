"""Run all benchmarks, and write one page of results.

    python -m benchmarks.bench [--parts queue,crawl] [--quick] [--page]

`make bench` calls it. Each part runs in a separate process. If a part fails or takes too long, the
others still run, and the page keeps its earlier numbers with their date. A quick run only proves
that everything works: its sizes are too small to be quoted, so it writes to build/bench.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from benchmarks.overview import write_overview
from benchmarks.parts import Part, chosen

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
QUICK_RESULTS = ROOT / "build" / "bench"
TIME_LIMIT_FACTOR = 5  # time limit of a part, as a multiple of its expected duration
GRACE = 60.0  # seconds for a stopped part to shut down its database
LOOK = 2.0  # seconds for which the load of the machine is measured before a part starts


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a part."""

    date: str
    minutes: float
    load_before: float
    busy_before: float  # percentage of all cores that other processes used
    load_after: float
    failed: str = ""


def run_part(part: Part, results: Path, *, quick: bool) -> Run:
    """Run a part with the standard streams of this process."""
    began, date = time.monotonic(), f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    load, busy = os.getloadavg()[0], psutil.cpu_percent(LOOK)
    options = part.quick if quick else part.options
    command = [sys.executable, "-m", f"benchmarks.{part.module}", *options]
    environment = {**os.environ, "BENCH_RESULTS": str(results)}
    failed = _wait(command, environment, 60 * TIME_LIMIT_FACTOR * part.minutes)
    minutes = round((time.monotonic() - began) / 60, 1)
    return Run(date, minutes, round(load, 1), round(busy), round(os.getloadavg()[0], 1), failed)


def _wait(command: list[str], environment: dict[str, str], seconds: float) -> str:
    """Return why it failed, or an empty text. Stop all processes that it started."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"took longer than {seconds / 60:.0f} minutes"
    finally:
        _end(process)
    return f"ended with code {code}" if code else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let it stop its database first, then kill the remaining processes."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def remember(results: Path, name: str, run: Run) -> None:
    """Add the run to the earlier ones, so that a partial run keeps the others."""
    path = results / "data" / "runs.json"
    runs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**runs, name: asdict(run)}, indent=1) + "\n", encoding="utf-8")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="", help="run only these parts, separated by commas")
    parser.add_argument("--quick", action="store_true", help="small sizes, written to build/bench")
    parser.add_argument("--page", action="store_true", help="only regenerate the page")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    results = QUICK_RESULTS if options.quick else RESULTS
    parts = [] if options.page else chosen(options.parts)
    failures = []
    for number, part in enumerate(parts, 1):
        expected = "" if options.quick else f", about {part.minutes:g} minutes"
        _say(f"[{number}/{len(parts)}] {part.name}{expected}")
        run = run_part(part, results, quick=options.quick)
        remember(results, part.name, run)
        if run.failed:
            failures.append(part.name)
        _say(f"[{number}/{len(parts)}] {part.name}: {run.failed or 'done'}, {run.minutes} minutes")
    _say(f"written: {write_overview(results, quick=options.quick)}")
    if failures:
        raise SystemExit(f"failed: {', '.join(failures)}; the page shows their older numbers")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
