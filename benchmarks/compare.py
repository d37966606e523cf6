"""Two checkouts beside each other: the quick benchmarks of each in turn, and what got slower.

python -m benchmarks.compare OTHER [--parts queue,commit] [--rounds 5]

OTHER is a checkout of another commit (`git worktree add OTHER COMMIT`). Both run in this
environment, so its dependencies must fit both.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import describe_machine
from benchmarks.parts import chosen
from benchmarks.report import Report

ROOT = Path(__file__).parent.parent
# of a normal distribution: about one in twenty numbers lies outside by chance
DEVIATIONS = 1.96
_NUMBER = re.compile(r"^[\d,]+(?:\.\d+)?")

Numbers = dict[str, float]


def measured(checkout: Path, parts: str) -> Numbers:
    """Every number of a quick run, by report, heading, row and column."""
    with tempfile.TemporaryDirectory() as results:
        for part in chosen(parts):
            subprocess.run(
                [sys.executable, "-m", f"benchmarks.{part.module}", *part.quick],
                cwd=checkout,
                env=os.environ | {"PYTHONPATH": f"{checkout / 'src'}", "BENCH_RESULTS": results},
                stdout=subprocess.DEVNULL,
                check=True,
            )
        files = sorted((Path(results) / "data").glob("*.json"))
        return dict(pair for file in files for pair in _numbers(json.loads(file.read_text())))


def _numbers(report: dict[str, object]) -> list[tuple[str, float]]:
    found = []
    tables = report.get("tables")
    assert isinstance(tables, list)
    for table in tables:
        for first, *cells in table["rows"]:
            for column, cell in zip(table["head"][1:], cells, strict=True):
                if number := _NUMBER.match(cell):
                    name = f"{report['title']}: {table['heading']}: {first}: {column}"
                    found.append((name, float(number[0].replace(",", ""))))
    return found


def compared(here: list[Numbers], other: list[Numbers]) -> list[list[str]]:
    """For each number: how many times the other one it is, with the bounds of that."""
    rows = []
    names = set.intersection(*(set(run) for run in (*here, *other)))
    for name in [name for name in here[0] if name in names]:
        ratios = [
            math.log(mine[name] / theirs[name])
            for mine, theirs in zip(here, other, strict=True)
            if mine[name] > 0 and theirs[name] > 0
        ]
        if len(ratios) < 2:
            continue
        error = DEVIATIONS * statistics.stdev(ratios) / math.sqrt(len(ratios))
        middle = statistics.mean(ratios)
        low, high = math.exp(middle - error), math.exp(middle + error)
        verdict = "same" if low <= 1 <= high else "lower" if high < 1 else "higher"
        rows.append([name, f"{math.exp(middle):.2f}", f"{low:.2f} to {high:.2f}", verdict])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--parts", default="queue,commit")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    report = Report("Two commits beside each other")
    report.text(f"Made by `make bench-compare`: {options.rounds} quick rounds of each, in turn.")
    report.table(("machine", ""), describe_machine(ROOT))
    here: list[Numbers] = []
    other: list[Numbers] = []
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
        here.append(measured(ROOT, options.parts))
        other.append(measured(options.other.absolute(), options.parts))
    report.heading("This checkout against the other one")
    report.text("1.10 is ten percent more than the other commit has; 95 % confidence intervals.")
    report.table(("number", "ratio", "interval", "verdict"), compared(here, other))
    print(report.write("compare.md"))


if __name__ == "__main__":
    main()
