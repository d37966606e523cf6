"""Output of commands: data to standard output; notes and progress to standard error."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TextIO, TypeVar
from uuid import UUID

from forager.amounts import amount_text, duration_text, size_text, time_text
from forager.amounts import counted as counted
from forager.errors import InvalidInput
from forager.hints import Hint
from forager.terminal import clean as clean
from forager.terminal import short_time as short_time

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pydantic import BaseModel
    from rich.console import Console
    from rich.text import Text


def on_one_line(text: str) -> str:
    return clean(" ".join(text.split()))


def long_time(at: datetime | None) -> str:
    """A local time in full, with its distance from now."""
    if at is None:
        return ""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S} ({distance(at)})"


def age_text(at: datetime) -> str:
    return duration_text(max(0.0, (datetime.now(UTC) - at).total_seconds()))


def distance(at: datetime) -> str:
    seconds = (datetime.now(UTC) - at).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"{duration_text(seconds)} ago" if seconds > 0 else f"in {duration_text(-seconds)}"


STDIN = STDOUT = "-"
# where the output is not a terminal, each row stays on one line
ENDLESS_WIDTH = 100_000

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)
Headings = str | Mapping[str, Mapping[str, Any]]
# by heading: the attribute of an item that is shown, or a function of the item
Columns = Mapping[str, str | Callable[[Any], Any]]


class Listing(Protocol[Item_co]):
    """One page of a list."""

    @property
    def items(self) -> Sequence[Item_co]: ...
    @property
    def next_cursor(self) -> object | None: ...


def show_json(value: Any) -> None:
    """Print one JSON document."""
    write(json_bytes(value))


def json_bytes(value: Any) -> bytes:
    import orjson

    return orjson.dumps(plain(value), option=orjson.OPT_INDENT_2) + b"\n"


def write(data: bytes) -> None:
    """Write to standard output, and discard the output if its reader has left.

    Control characters are replaced on a terminal; pipes and files get the bytes unchanged.
    """
    if sys.stdout.isatty():
        data = clean(data.decode("utf-8", "replace")).encode()
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()


def reader_has_left() -> bool:
    """Whether standard output is a pipe whose reader has closed it, or was closed itself."""
    stdout = select.poll()
    try:
        stdout.register(sys.stdout.fileno(), 0)
    except ValueError:
        return True
    return bool(stdout.poll(0))


def silence_stdout() -> None:
    """Discard further output, as after `| head`; the exit code still reports the result."""
    if not sys.stdout.closed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def plain(value: Any) -> Any:
    """Convert a value to JSON types: times in UTC, intervals in seconds, amounts as exact text."""
    if isinstance(value, UUID | Path | Hint):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return plain(_members(value))
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return amount_text(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value


def _members(value: Any) -> dict[str, Any]:
    members = {field.name: getattr(value, field.name) for field in fields(value)}
    if hasattr(value, "shown_status"):
        members["shown_status"] = value.shown_status
    return members


def fields_of(value: Any, *names: str) -> dict[str, Any]:
    """Some attributes of a value, for a JSON document."""
    return {name: getattr(value, name) for name in names}


def show_page(items: Sequence[Any], next_cursor: object | None) -> None:
    """Print one page of a list as JSON."""
    cursor = None if next_cursor is None else str(next_cursor)
    show_json({"items": items, "next_cursor": cursor})


def show_list(
    page: Listing[Item],
    as_json: bool,
    show: Columns | Callable[[Sequence[Item]], None],
    *,
    none: str | None = None,
    document: Callable[[Item], Any] | None = None,
) -> None:
    """Print one page of a list: as JSON, or with `show`; `none` is printed for an empty list."""
    if as_json:
        items = page.items if document is None else [document(item) for item in page.items]
        return show_page(items, page.next_cursor)
    if none is not None and not page.items:
        note(none)
    elif isinstance(show, Mapping):
        show_rows(show, page.items)
    else:
        show(page.items)
    return note_more(getattr(page, "next_cursor", None))


def note_more(cursor: object | None, err: Console | None = None) -> None:
    if cursor is not None:
        note(f"More results: --cursor {cursor}", err)


def note(text: str, err: Console | None = None) -> None:
    """Print a note on standard error, where programs that read the data do not see it."""
    (err or console(sys.stderr)).print(clean(text), soft_wrap=True)


def say(text: str, style: str = "") -> None:
    """Print a line on standard output."""
    console().print(clean(text), style=style or None, soft_wrap=True)


def show_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one per line; empty values are left out."""
    rows = [
        (name, long_time(value) if isinstance(value, datetime) else value)
        for name, value in facts.items()
        if value not in (None, "")
    ]
    show_table({"": {"style": "bold"}, " ": {"no_wrap": False}}, rows)


def show_model(answer: BaseModel, *, without: Collection[str] = ()) -> None:
    """Print all fields that have a value; those with parts as JSON below the others."""
    nested = {}
    facts = {}
    for name in type(answer).model_fields:
        if name in without:
            continue
        value, label = getattr(answer, name), name.replace("_", " ")
        if isinstance(value, dict) or _has_parts(value):
            nested[label] = value
        elif isinstance(value, bool | float):
            facts[label] = f"{value:g}" if isinstance(value, float) else ("no", "yes")[value]
        else:
            facts[label] = ", ".join(map(str, value)) if isinstance(value, list) else value
    show_facts(facts)
    document = answer.model_dump(mode="json")
    for label, value in nested.items():
        if value:
            say(f"\n{label}", "bold")
            if columns := isinstance(value, list) and getattr(value[0], "columns", None):
                show_rows(columns, value)
                continue
            say(json_bytes(document[label.replace(" ", "_")]).decode().rstrip())


def _has_parts(value: Any) -> bool:
    parts = value if isinstance(value, list) else [value]
    return any(hasattr(each, "model_fields_set") or isinstance(each, dict) for each in parts)


def show_rows(columns: Columns, items: Iterable[Any]) -> None:
    """Print one row per item, with times shortened and texts on one line.

    A column whose heading ends with `?` is left out if all its cells are empty.
    """
    listed = list(items)
    cells = {heading: _cells_of(column, listed) for heading, column in columns.items()}
    used = {each.rstrip("?"): cells[each] for each in cells if each[-1:] != "?" or any(cells[each])}
    show_table(", ".join(used), list(zip(*used.values(), strict=True)))


def _cells_of(column: str | Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    read = attrgetter(column) if isinstance(column, str) else column
    return [_shown(read(item)) for item in items]


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return short_time(value)
    return on_one_line(value) if isinstance(value, str) else value


def show_table(columns: Headings, rows: Sequence[Sequence[Any]]) -> None:
    """Print rows under headings; a cell is a text, or a text and its style.

    Columns are written as "ID>, NAME…, URL~, STATE": `>` aligns a column to the right, `…` cuts
    and `~` folds cells that do not fit on the terminal. A mapping gives rich's own options, and
    `cut`.
    """
    from rich.table import Table

    columns = _parse_columns(columns) if isinstance(columns, str) else columns
    named = any(heading.strip() for heading in columns)
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_header=named
    )
    for heading, options in columns.items():
        # rich narrows only columns that may wrap, and columns that are cut must be narrowed
        kept = {name: value for name, value in options.items() if name != "cut"}
        table.add_column(heading, **{"no_wrap": "cut" not in options, **kept})
    cut = ["cut" in options for options in columns.values()]
    for row in rows:
        table.add_row(*map(_cell, row, cut))
    console().print(table)


def _parse_columns(text: str) -> dict[str, dict[str, Any]]:
    options: dict[str, dict[str, Any]] = {
        ">": {"justify": "right"},
        "…": {"cut": True},
        "~": {"no_wrap": False, "overflow": "fold"},
    }
    return {each.rstrip(">…~"): options.get(each[-1:], {}) for each in text.split(", ")}


def _cell(value: Any, cut: bool) -> Text:
    from rich.text import Text

    text, style = value if isinstance(value, tuple) else (value, "")
    cell = Text(clean("" if text is None else str(text)), style=style)
    if cut:
        cell.no_wrap, cell.overflow = True, "ellipsis"
    return cell


def console(stream: TextIO | None = None, *, terminal: Mapping[str, str] | None = None) -> Console:
    """A console without color and line folding where the stream is not a terminal.

    `terminal` is the environment of one that shows what is written to the stream.
    """
    from rich.console import Console

    class QuietConsole(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True
            silence_stdout()

    stream = stream or sys.stdout
    on_terminal = terminal is not None or (stream is not None and stream.isatty())
    environment = os.environ if terminal is None else terminal
    return QuietConsole(
        file=stream,
        highlight=False,
        markup=False,
        emoji=False,
        color_system="auto" if on_terminal and not environment.get("NO_COLOR") else None,
        width=None if on_terminal else ENDLESS_WIDTH,
        force_terminal=None if terminal is None else True,
        _environ=environment,
    )


def open_output(path: str, *, force: bool) -> AbstractContextManager[BinaryIO]:
    """Open standard output, or a file that appears when it is complete."""
    from forager.archive.local import whole_file

    if path == STDOUT:
        return nullcontext(sys.stdout.buffer)
    return whole_file(Path(path), overwrite=force)


def note_written(what: str, path: str) -> None:
    note(f"{what} written to {'standard output' if path == STDOUT else path}.")


def read_input(path: Path, limit: int) -> bytes:
    """Read a file, or standard input for `-`; one with more bytes than `limit` is an error."""
    try:
        with sys.stdin.buffer if str(path) == STDIN else path.open("rb") as stream:
            data: bytes = stream.read(limit + 1)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
    if len(data) > limit:
        raise InvalidInput(f"{path} is larger than {size_text(limit)}")
    return data


def refuse_terminal(path: str, what: str) -> None:
    """Refuse to write binary data to a terminal."""
    if path == STDOUT and sys.stdout.isatty():
        raise InvalidInput(f"{what} cannot be shown on a terminal", hint="Give --output FILE.")
