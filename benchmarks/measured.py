"""Read the data of a report, for the overview and the charts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Table:
    """One table as its report shows it."""

    heading: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def row(self, name: str) -> Sequence[str] | None:
        """The first row whose name starts with the text; a goal may follow."""
        return next((row for row in self.rows if row[0].startswith(name)), None)

    def cell(self, name: str, column: str) -> str | None:
        row = self.row(name)
        return row[self.head.index(column)] if row and column in self.head else None

    def number(self, name: str, column: str) -> float | None:
        return number_in(self.cell(name, column))

    def points(self, column: str) -> list[tuple[float, float]]:
        """The numbers of the first column and of another one."""
        found = []
        for row in self.rows:
            x, y = number_in(row[0]), number_in(self.cell(row[0], column))
            if x is not None and y is not None:
                found.append((x, y))
        return found


@dataclass(frozen=True, slots=True)
class Measured:
    """One report."""

    title: str
    page: str
    machine: dict[str, str]
    tables: Sequence[Table]

    @property
    def date(self) -> str:
        return self.machine.get("date", "unknown")

    def table(self, column: str, heading: str = "") -> Table | None:
        """The first table with this column below a heading that starts with the text."""
        return next(
            (t for t in self.tables if t.heading.startswith(heading) and column in t.head), None
        )

    def cell(self, name: str, column: str, heading: str = "") -> str | None:
        """The first cell with this name in any table below the heading."""
        for table in self.tables:
            if table.heading.startswith(heading) and (found := table.cell(name, column)):
                return found
        return None


def number_in(text: str | None) -> float | None:
    """The first number of a cell: `1,168`, `2.85x`, `1.6 ms`."""
    found = _NUMBER.search(text or "")
    return float(found[0].replace(",", "")) if found else None


def read_measured(data: Path, name: str) -> Measured | None:
    """The data of a report, or None if it never ran."""
    try:
        kept: dict[str, Any] = json.loads((data / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    tables = [Table(each["heading"], each["head"], each["rows"]) for each in kept["tables"]]
    return Measured(kept["title"], kept["page"], kept["machine"], tables)
