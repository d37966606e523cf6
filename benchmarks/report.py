"""A report: printed and saved as markdown, and saved as data."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# another folder for quick runs
RESULTS = Path(os.environ.get("BENCH_RESULTS") or Path(__file__).parent / "results")
DATA = RESULTS / "data"
MACHINE = "machine"

Row = Sequence[str]


class Report:
    """Headings, sentences and tables, in the order they were added."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts = [f"# {title}"]
        self._heading = ""
        self._machine: dict[str, str] = {}
        self._tables: list[dict[str, Any]] = []

    def heading(self, text: str) -> None:
        self._heading = text
        self._parts.append(f"## {text}")

    def text(self, text: str) -> None:
        self._parts.append(text)

    def table(self, head: Row, rows: Sequence[Row]) -> None:
        """The first column is text, the others are numbers."""
        self._parts.append(as_table(head, rows))
        if head[0] == MACHINE:
            self._machine = {row[0]: row[1] for row in rows}
        else:
            self._tables.append(
                {"heading": self._heading, "head": [*head], "rows": [*map(list, rows)]}
            )

    def write(self, name: str) -> str:
        """Save the report under a name, and its tables as data; return its text."""
        text = "\n\n".join(self._parts) + "\n"
        DATA.mkdir(parents=True, exist_ok=True)
        (RESULTS / name).write_text(text, encoding="utf-8")
        kept = {"title": self._title, "page": name, MACHINE: self._machine, "tables": self._tables}
        lines = json.dumps(kept, indent=1, ensure_ascii=False)
        (DATA / name).with_suffix(".json").write_text(lines + "\n", encoding="utf-8")
        return text


def as_table(head: Row, rows: Sequence[Row]) -> str:
    """A markdown table that is also readable as text."""
    widths = [max(3, *(len(row[column]) for row in (head, *rows))) for column in range(len(head))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(_line(row, widths) for row in (head, rule, *rows))


def _line(cells: Row, widths: Sequence[int]) -> str:
    first, *others = cells
    padded = [first.ljust(widths[0])]
    padded += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
    return f"| {' | '.join(padded)} |"
