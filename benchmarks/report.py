"""A report: printed and saved as markdown, and saved as data."""

from __future__ import annotations

import json
import os
import re
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

    def write(self, name: str, *, keep: bool = False) -> str:
        """Save the report under a name, and its tables as data; return its text.

        With `keep`, sections of the saved report stay unless this one has the same heading.
        """
        text = "\n\n".join(self._parts) + "\n"
        DATA.mkdir(parents=True, exist_ok=True)
        path = RESULTS / name
        if keep and path.exists():
            saved = _saved(DATA / Path(name).with_suffix(".json"))
            self._machine = self._machine or saved[MACHINE]
            self._tables += _other_tables(saved["tables"], text)
            merged = _merged(path.read_text(encoding="utf-8"), text)
            path.write_text(merged, encoding="utf-8")
        else:
            path.write_text(text, encoding="utf-8")
        kept = {"title": self._title, "page": name, MACHINE: self._machine, "tables": self._tables}
        lines = json.dumps(kept, indent=1, ensure_ascii=False)
        (DATA / name).with_suffix(".json").write_text(lines + "\n", encoding="utf-8")
        return text


_SECTION = re.compile(r"^(?=## )", re.MULTILINE)


def _merged(old: str, new: str) -> str:
    """The sections of the old text, with those of the new one in their places or at the end."""
    head, *sections = _SECTION.split(new)
    replaced = {section.partition("\n")[0]: section.strip() for section in sections}
    before, *found = _SECTION.split(old)
    first = head if "\n\n" in head.strip() else before
    kept = [replaced.pop(each.partition("\n")[0], each.strip()) for each in found]
    return "\n\n".join([first.strip(), *kept, *replaced.values()]) + "\n"


def _saved(path: Path) -> dict[str, Any]:
    saved: dict[str, Any] = {MACHINE: {}, "tables": []}
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else saved


def _other_tables(saved: Sequence[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """The saved tables below headings that a text does not have."""
    return [table for table in saved if f"## {table['heading']}\n" not in text]


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
