"""Tables: cells that span, rows of one width, and tables that only lay out a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from forager.extract.content.boilerplate import ElementVerdict
from forager.extract.content.removal import is_dropped
from forager.extract.markdown.escape import code_span
from forager.extract.markdown.tokens import Tokens

MAX_COLUMNS = 100
MAX_CELLS = 100_000
_MAX_REPEATED = 80  # characters of a cell that is repeated in each row it spans

_MAX_PADDED = 10 * MAX_CELLS

RenderCell = Callable[[int, int], str]


@dataclass(slots=True)
class Cell:
    """A cell of a table, as a range of the text."""

    start: int
    end: int
    head: bool
    columns: int
    rows: int


@dataclass(slots=True)
class Table:
    """A table with its cells by row."""

    rows: list[list[Cell]]
    caption: tuple[int, int] | None = None
    head: bool = False  # the first row is one of headings
    cells: int = 0


def read_table(tokens: Tokens, start: int, end: int) -> Table:
    """The cells of a table that holds no other table."""
    table = Table([])
    in_head = False
    index = start + 1
    while index < end and table.cells < MAX_CELLS:
        tag = tokens.tags[index]
        if tag.name == "tr":
            table.rows.append([])
            table.head = table.head or (in_head and len(table.rows) == 1)
        elif tag.name in ("td", "th"):
            index = _add_cell(tokens, table, index)
        elif tag.name == "thead":
            in_head = True
        elif tag.name == "caption":
            table.caption = (index, tokens.closing[index])
            index = tokens.closing[index]
        elif tag.name == "/thead":
            in_head = False
        index += 1
    table.rows = [row for row in table.rows if row]
    if table.rows and all(cell.head for cell in table.rows[0]):
        table.head = True
    return table


def _add_cell(tokens: Tokens, table: Table, index: int) -> int:
    tag, end = tokens.tags[index], tokens.closing[index]
    if tag.verdict is not ElementVerdict.KEEP and is_dropped(tokens, index):
        tokens.removed[index] = tag.verdict.value
        return end
    if not table.rows:
        table.rows.append([])
    columns, rows = _span(tag.attributes.get("colspan")), _span(tag.attributes.get("rowspan"))
    table.rows[-1].append(Cell(index, end, tag.name == "th", columns, rows))
    table.cells += 1
    return end


def _span(value: str | None) -> int:
    # Python refuses to parse a number of thousands of digits
    return min(max(1, int(value[:9])), MAX_COLUMNS) if value and value.isdecimal() else 1


def is_layout(tokens: Tokens, table: Table, start: int, end: int) -> bool:
    """Whether no row has two cells with content."""
    if any(len(row) > 1 for row in table.rows):
        if not any(tag.name == "pre" for tag in tokens.tags[start:end]):
            return False
        filled = (sum(_is_filled(tokens, cell) for cell in row) for row in table.rows)
        return max(filled, default=0) <= 1
    return True


_CODE = frozenset({"code", "tt"})
_FEW_TAGS = 100


def is_code(tokens: Tokens, table: Table) -> bool:
    """Whether each row is one line of code, as fpdoc writes declarations."""
    return len(table.rows) > 1 and all(
        len(row) == 1 and _is_line_of_code(tokens, row[0]) for row in table.rows
    )


def _is_line_of_code(tokens: Tokens, cell: Cell) -> bool:
    """Whether all text of a cell is in one element of code."""
    if cell.end - cell.start > _FEW_TAGS:
        return False
    tags = tokens.tags[cell.start : cell.end]
    start = next((at for at, tag in enumerate(tags, cell.start) if tag.name in _CODE), None)
    if start is None or any(tag.name == "pre" for tag in tags):
        return False
    end = tokens.closing[start]
    outside = (*tokens.texts[cell.start + 1 : start + 1], *tokens.texts[end + 1 : cell.end + 1])
    return not any(map(str.strip, outside))


def _is_filled(tokens: Tokens, cell: Cell) -> bool:
    text = tokens.kept_text(cell.start, cell.end).strip()
    return bool(text) and not all(word.isdigit() for word in text.split())


def render_table(table: Table, render: RenderCell) -> str:
    """The table as markdown, every row as wide as the widest."""
    spread = _Grid()
    for row in table.rows:
        spread.add_row(row, render)
    grid = spread.rows
    width = max(map(len, grid))
    if width * len(grid) > _MAX_PADDED:
        width = min(width, MAX_COLUMNS)
    rows = [f"| {' | '.join(cells + [''] * (width - len(cells)))} |" for cells in grid]
    head = rows.pop(0) if table.head else f"|{'  |' * width}"
    return "\n".join([head, f"|{' --- |' * width}", *rows])


class _Grid:
    """Rows of cells in their columns. Spans fill a bounded number of cells, then none."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self._spanning: dict[int, tuple[int, str]] = {}  # column -> rows left, text
        self._room = MAX_CELLS

    def add_row(self, row: list[Cell], render: RenderCell) -> None:
        cells: list[str] = []
        for cell in row:
            self._fill(cells)
            self._add(cells, cell, render(cell.start, cell.end))
        self._fill(cells)
        self.rows.append(cells)

    def _add(self, cells: list[str], cell: Cell, text: str) -> None:
        columns = max(1, min(cell.columns, MAX_COLUMNS - len(cells), self._room))
        self._room -= columns - 1
        if cell.rows > 1:
            repeated = text if len(text) <= _MAX_REPEATED else ""
            for extra in range(columns):
                self._spanning[len(cells) + extra] = (cell.rows - 1, "" if extra else repeated)
        cells += [text] + [""] * (columns - 1)

    def _fill(self, cells: list[str]) -> None:
        """Add the cells that reach down into this row from above."""
        while (column := len(cells)) in self._spanning and self._room > 0:
            left, text = self._spanning.pop(column)
            cells.append(text)
            self._room -= 1
            if left > 1:
                self._spanning[column] = (left - 1, text)


def cell_lines(contents: Iterable[str]) -> list[str]:
    """The lines of a cell, which are joined to one: code as inline code, without its fences."""
    kept: list[str] = []
    fenced = False
    for content in contents:
        for line in content.split("\n"):
            text = line.strip()
            if text.startswith("```"):
                fenced = not fenced
            elif text:
                kept.append(code_span(line.rstrip()) if fenced else text)
    return kept
