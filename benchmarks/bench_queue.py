"""Throughput of the queue, and its latency from enqueue to claim and after crashes.

    python -m benchmarks.bench_queue [--rows 1000000] [--rounds 7]

Runs a separate embedded PostgreSQL in a temporary folder, prints a report and writes it to
`benchmarks/results/queue.md`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psycopg
import uvloop
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.machine import describe_machine
from benchmarks.queue_store import (
    BATCH,
    CLAIMERS,
    Beats,
    Table,
    beat,
    claim_rate,
    copy_without_waiting,
    enqueue_rate,
    load_table,
)
from benchmarks.queue_worker import Recovery, running_worker
from benchmarks.report import Report
from forager.db.embedded import join_server
from forager.jobs.kinds import load_kinds
from forager.logs import configure_logs
from forager.settings import Settings

SMALL = 1_000
# lengths of the queues between the small and the large one
LENGTHS = (10_000, 100_000)
JOBS = 800
BEAT_WORKERS = 50
BEAT_ROUNDS = 60
BEAT_RUNS = 7
LATENCY_SAMPLES = 60
DEATH_SAMPLES = 9

Sample = TypeVar("Sample")


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table of rates."""

    name: str
    rate: Callable[[Table], Awaitable[float]]


RATES = [
    Measure("claim one by one", lambda t: claim_rate(t, JOBS, limit=1, claimers=1)),
    Measure(f"claim {BATCH} at a time", lambda t: claim_rate(t, JOBS, limit=BATCH, claimers=1)),
    Measure(
        f"claim one by one, {CLAIMERS} workers",
        lambda t: claim_rate(t, JOBS, limit=1, claimers=CLAIMERS),
    ),
    Measure(
        f"claim {BATCH} at a time, {CLAIMERS} workers",
        lambda t: claim_rate(t, JOBS, limit=BATCH, claimers=CLAIMERS),
    ),
    Measure("enqueue one by one", lambda t: enqueue_rate(t, JOBS, batch=1)),
    Measure(f"enqueue {BATCH} at a time", lambda t: enqueue_rate(t, JOBS, batch=BATCH)),
]


class Bench:
    """All measurements, one after the other; progress goes to standard error."""

    def __init__(self, server: str, options: argparse.Namespace, progress: Progress) -> None:
        self._server = server
        self._rows: int = options.rows
        self._rounds: int = options.rounds
        self._progress = progress

    def load(self) -> list[Table]:
        """A small table, a large one, and the large one without waiting for the disk."""
        task = self._progress.add_task(f"loading {self._rows:,} rows", total=3)
        small = load_table(self._server, SMALL)
        self._progress.advance(task)
        large = load_table(self._server, self._rows)
        self._progress.advance(task)
        unsafe = copy_without_waiting(self._server, large)
        self._progress.advance(task)
        return [small, large, unsafe]

    async def rates(self, tables: Sequence[Table]) -> dict[tuple[str, Table], float]:
        """Medians. The tables are measured in turn, so that other load affects all of them."""
        samples: dict[tuple[str, Table], list[float]] = {}
        for _ in self._progress.track(range(self._rounds), description="claims and enqueues"):
            for measure in RATES:
                for table in tables:
                    rate = await measure.rate(table)
                    samples.setdefault((measure.name, table), []).append(rate)
        return {key: statistics.median(values) for key, values in samples.items()}

    async def claims(self, tables: Sequence[Table]) -> dict[Table, tuple[float, float]]:
        """Milliseconds of one claim, of one job and of a batch, by the length of the queue."""
        samples: dict[Table, list[tuple[float, float]]] = {table: [] for table in tables}
        for _ in self._progress.track(range(self._rounds), description="claims by length"):
            for table in tables:
                one = await claim_rate(table, JOBS // 4, limit=1, claimers=1)
                batch = await claim_rate(table, JOBS, limit=BATCH, claimers=1)
                samples[table].append((1000 / one, 1000 * BATCH / batch))
        return {
            table: (statistics.median(a for a, _ in found), statistics.median(b for _, b in found))
            for table, found in samples.items()
        }

    def lengths(self, tables: Sequence[Table]) -> list[Table]:
        """The small queue, some lengths between, and the large one."""
        small, large, _ = tables
        between = [load_table(self._server, rows) for rows in LENGTHS if rows < large.rows]
        return [small, *between, large]

    async def beats(self, table: Table) -> list[Beats]:
        runs = []
        for _ in self._progress.track(range(BEAT_RUNS), description="heartbeats"):
            beats = await beat(table, workers=BEAT_WORKERS, rounds=BEAT_ROUNDS)
            assert beats.updates == BEAT_WORKERS * BATCH * BEAT_ROUNDS
            runs.append(beats)
        return runs

    async def worker(self) -> tuple[list[float], list[Recovery]]:
        table = load_table(self._server, 0)
        latency = self._progress.add_task("enqueue to claim", total=LATENCY_SAMPLES)
        death = self._progress.add_task("runners killed", total=DEATH_SAMPLES)
        latencies, recoveries = [], []
        async with running_worker(table.url, Settings(log_level="critical")) as worker:
            async for seconds in worker.enqueue_to_claim(LATENCY_SAMPLES):
                latencies.append(seconds)
                self._progress.advance(latency)
            async for recovery in worker.death_to_running(DEATH_SAMPLES):
                recoveries.append(recovery)
                self._progress.advance(death)
        return latencies, recoveries


# --- the report ------------------------------------------------------------------------------


async def measure_all(bench: Bench, report: Report) -> None:
    tables = bench.load()
    report_rates(report, tables, await bench.rates(tables))
    report_claims(report, await bench.claims(bench.lengths(tables)))
    report_beats(report, tables[1], await bench.beats(tables[1]))
    report_worker(report, *await bench.worker())


def report_rates(
    report: Report, tables: Sequence[Table], rates: dict[tuple[str, Table], float]
) -> None:
    small, large, unsafe = tables
    rows = []
    for measure in RATES:
        few, many, fast = (rates[measure.name, table] for table in (small, large, unsafe))
        cells = (f"{few:,.0f}", f"{many:,.0f}", f"{many / few:.2f}", f"{fast:,.0f}")
        rows.append((measure.name, *cells))
    report.heading("Jobs per second")
    report.text(
        f"Medians of the rounds, with {JOBS} jobs in each; the tables are measured in turn. All"
        f" rows are pending and due. The {CLAIMERS} workers are asyncio tasks of one process, with"
        " one connection each. In the last column, a commit does not wait for the disk"
        " (`synchronous_commit = off`, which Forager never sets): the difference is the time spent"
        " waiting for the disk."
    )
    head = (
        "what",
        f"{small.rows:,} rows",
        f"{large.rows:,} rows",
        "ratio",
        f"{unsafe.rows:,} rows, no wait",
    )
    report.table(head, rows)


def report_claims(report: Report, claims: dict[Table, tuple[float, float]]) -> None:
    report.heading("A claim against the length of the queue, in milliseconds")
    report.text("One worker, medians of the rounds; the tables are measured in turn.")
    report.table(
        ("pending jobs", "one job", f"{BATCH} jobs"),
        [(f"{table.rows:,}", *(f"{ms:.2f}" for ms in claims[table])) for table in claims],
    )


def report_beats(report: Report, table: Table, runs: list[Beats]) -> None:
    ratios = [100 * run.hot / run.updates for run in runs]
    report.heading("Heartbeats")
    report.text(
        f"{BEAT_WORKERS} workers with {BATCH} jobs each renew their leases {BEAT_ROUNDS} times, as"
        f" fast as they can, in the table of {table.rows:,} rows. HOT ratio (goal: above 95 %):"
        f" median **{statistics.median(ratios):.1f} %**, lowest {min(ratios):.1f} %. The last"
        " column counts automatic VACUUM and ANALYZE runs on the table that ended during the run."
    )
    rows = [
        (
            str(number),
            f"{run.updates:,}",
            f"{run.hot:,}",
            f"{ratio:.1f} %",
            f"{run.updates / run.seconds:,.0f}",
            str(run.cleanups),
        )
        for number, (run, ratio) in enumerate(zip(runs, ratios, strict=True), start=1)
    ]
    report.table(("run", "heartbeats", "HOT updates", "ratio", "per second", "cleanups"), rows)


def report_worker(report: Report, latencies: list[float], recoveries: list[Recovery]) -> None:
    report.heading("A worker with default settings")
    report.text(
        f"From enqueue to claim: {len(latencies)} jobs, one at a time, at random moments, with an"
        " idle worker that listens and polls every second; measured by the clock of the database"
        f" from the events of each job. Recovery: {len(recoveries)} jobs whose runner is killed"
        " with SIGKILL; the times include the random delay before the first retry (0.5 to 1 s) and"
        " the start of a new Python process."
    )
    claimed = [recovery.claimed for recovery in recoveries]
    committed = [recovery.committed for recovery in recoveries]
    rows = [
        ("enqueue to claim (goal: median under 50 ms)", *spread(latencies, 1000, "ms")),
        ("runner killed to job claimed again", *spread(claimed, 1, "s")),
        ("runner killed to first new commit (goal: under 5 s)", *spread(committed, 1, "s")),
    ]
    report.table(("what", "median", "p90", "worst"), rows)


def spread(seconds: Sequence[float], factor: float, unit: str) -> list[str]:
    p90 = statistics.quantiles(seconds, n=10, method="inclusive")[-1]
    values = (statistics.median(seconds), p90, max(seconds))
    return [f"{value * factor:.{1 if unit == 'ms' else 2}f} {unit}" for value in values]


def server_version(server: str) -> str:
    with psycopg.connect(server) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    return str(row[0]) if row else "unknown"


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the large table")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of claims and enqueues")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    configure_logs("critical")
    load_kinds()
    report = Report("The queue, measured")
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with tempfile.TemporaryDirectory(prefix="forager-bench-") as folder:
        machine = describe_machine(Path(folder))
        with (
            join_server(Path(folder)) as use,
            Progress(*columns, console=Console(stderr=True)) as progress,
        ):
            machine.append(("PostgreSQL", f"{server_version(use.url)}, embedded, its own settings"))
            report.text(
                "Generated by `make bench-queue`. Ratios are more reliable than absolute numbers."
            )
            report.table(("machine", ""), machine)
            uvloop.run(measure_all(Bench(use.url, options, progress), report))
    print(report.write("queue.md"), end="")


if __name__ == "__main__":
    main()
