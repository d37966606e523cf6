"""A report as markdown: the same text on the screen and in `benchmarks/results/`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "results"

Row = Sequence[str]


class Report:
    """Headings, sentences and tables, in the order they were added."""

    def __init__(self, title: str) -> None:
        self._parts = [f"# {title}"]

    def heading(self, text: str) -> None:
        self._parts.append(f"## {text}")

    def text(self, text: str) -> None:
        self._parts.append(text)

    def table(self, head: Row, rows: Sequence[Row]) -> None:
        """The first column is words, the others are numbers."""
        widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
        rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
        self._parts.append("\n".join(_line(row, widths) for row in (head, rule, *rows)))

    def write(self, name: str) -> str:
        """Save the report under a name; its text."""
        text = "\n\n".join(self._parts) + "\n"
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / name).write_text(text, encoding="utf-8")
        return text


def _line(cells: Row, widths: Sequence[int]) -> str:
    first, *others = cells
    padded = [first.ljust(widths[0])]
    padded += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
    return f"| {' | '.join(padded)} |"
