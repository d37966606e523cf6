"""Files of URLs: CSV, JSON lines or one URL per line, read as a stream, however odd they are."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from pathlib import PurePath
from typing import Any, BinaryIO

import orjson

from forager.catalog.intervals import parse_every
from forager.catalog.wish import BadLine, Terms, Wish
from forager.errors import InvalidInput

# a URL may have 65,536 characters before it is normalised, and each may be written as \uXXXX
MAX_LINE = 512 * 1024
SHOWN_LENGTH = 200
COLUMNS = ("url", "priority", "every", "popularity")
_DELIMITERS = (",", ";", "\t")
_NUL = "\0"

Read = Callable[[int, str], Wish | BadLine]


class FileFormat(StrEnum):
    CSV = "csv"
    JSON_LINES = "jsonl"
    LIST = "list"


_BY_SUFFIX = {
    ".csv": FileFormat.CSV,
    ".tsv": FileFormat.CSV,
    ".jsonl": FileFormat.JSON_LINES,
    ".ndjson": FileFormat.JSON_LINES,
    ".json": FileFormat.JSON_LINES,
    ".txt": FileFormat.LIST,
    ".list": FileFormat.LIST,
}


def read_wishes(stream: BinaryIO, name: str = "") -> Iterator[Wish | BadLine]:
    """What each line asks for. The format is told by the file's name, else by its first line."""
    read: Read | None = None
    for number, line in _lines(stream):
        if isinstance(line, BadLine):
            yield line
        elif read is None:
            kind = _BY_SUFFIX.get(PurePath(name).suffix.lower()) or _guess(line)
            read, is_header = _reader(kind, line)
            if not is_header:
                yield read(number, line)
        else:
            yield read(number, line)


# --- lines ------------------------------------------------------------------------------------


def _lines(stream: BinaryIO) -> Iterator[tuple[int, str | BadLine]]:
    """Lines that hold something, numbered from 1; what cannot be a line of text is bad."""
    number = 0
    while raw := stream.readline(MAX_LINE):
        number += 1
        if number == 1:
            raw = _without_mark(raw)
        if len(raw) == MAX_LINE and not raw.endswith(b"\n"):
            _skip_line(stream)
            yield number, _bad(number, f"the line is longer than {MAX_LINE:,} bytes", raw[:999])
            continue
        text = _decoded(number, raw.strip())
        if text:
            yield number, text


def _without_mark(raw: bytes) -> bytes:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidInput("the file is in UTF-16", hint="Save it as UTF-8.")
    return raw.removeprefix(codecs.BOM_UTF8)


def _skip_line(stream: BinaryIO) -> None:
    while (rest := stream.readline(MAX_LINE)) and not rest.endswith(b"\n"):
        pass


def _decoded(number: int, raw: bytes) -> str | BadLine:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return _bad(number, "the line is not UTF-8 text", raw)
    return _bad(number, "the line holds a NUL character", raw) if _NUL in text else text


# --- formats ----------------------------------------------------------------------------------


def _guess(first: str) -> FileFormat:
    if first.startswith("{"):
        return FileFormat.JSON_LINES
    if _header(first) is not None:
        return FileFormat.CSV
    return FileFormat.LIST if _divider(first, ",\t") is None else FileFormat.CSV


def _divider(line: str, among: Iterable[str] = _DELIMITERS) -> str | None:
    """What stands between the cells of a row without a header.

    Most of them may be part of a URL: they divide only if what follows can be understood.
    """
    for delimiter in among:
        cells = _cells(line, delimiter) or []
        if len(cells) > 1 and isinstance(_wish(0, _by_place(cells), line), Wish):
            return delimiter
    return None


def _reader(kind: FileFormat, first: str) -> tuple[Read, bool]:
    """How lines are read, and whether the first one only names the columns."""
    if kind is FileFormat.JSON_LINES:
        return _read_json, False
    if kind is FileFormat.LIST:
        return _read_url, _header(first) is not None
    header = _header(first)
    if header is None:
        return partial(_read_row, _divider(first) or ","), False
    delimiter, names = header

    def read_named(number: int, line: str) -> Wish | BadLine:
        cells = _cells(line, delimiter)
        if cells is None:
            return _bad(number, "the line cannot be divided into columns", line)
        return _wish(number, dict(zip(names, cells, strict=False)), line)

    return read_named, True


def _header(first: str) -> tuple[str, list[str]] | None:
    """The delimiter and the names of the columns, if this line is made of names."""
    for delimiter in _DELIMITERS:
        names = [cell.strip().lower() for cell in _cells(first, delimiter) or []]
        if "url" in names:
            return delimiter, names
    return None


def _read_url(number: int, line: str) -> Wish | BadLine:
    return _wish(number, {"url": line}, line)


def _read_row(delimiter: str, number: int, line: str) -> Wish | BadLine:
    cells = _cells(line, delimiter)
    if cells is None:
        return _bad(number, "the line cannot be divided into columns", line)
    if len(cells) > len(COLUMNS):
        return _bad(number, f"more than {len(COLUMNS)} columns: {', '.join(COLUMNS)}", line)
    return _wish(number, _by_place(cells), line)


def _by_place(cells: list[str]) -> dict[str, str]:
    return dict(zip(COLUMNS, cells, strict=False))


def _cells(line: str, delimiter: str) -> list[str] | None:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None


def _read_json(number: int, line: str) -> Wish | BadLine:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _bad(number, "the line is not JSON", line)
    return wish_of(number, value, line)


# --- values -----------------------------------------------------------------------------------


def wish_of(number: int, value: Any, text: str) -> Wish | BadLine:
    """What a value of JSON asks for: a URL, or an object with one; `text` is how it was written."""
    if isinstance(value, str):
        return _wish(number, {"url": value}, text)
    if not isinstance(value, dict):
        return _bad(number, 'it is not an object such as {"url": "https://…"}', text)
    return _wish(number, value, text)


def _wish(number: int, values: Mapping[str, Any], line: str) -> Wish | BadLine:
    url = values.get("url")
    if not isinstance(url, str) or not url.strip():
        return _bad(number, "there is no URL in it", line)
    if _BREAK.search(url.strip()):
        # normalised, it would be another URL: tabs and line ends just vanish from one
        return _bad(number, "there is a tab or a line end within the URL", line)
    try:
        terms = Terms(
            priority=_priority(_given(values, "priority")),
            every=parse_every(str(every)) if (every := _given(values, "every")) else None,
            popularity=_popularity(_given(values, "popularity")),
        )
    except InvalidInput as error:
        return _bad(number, error.message, line)
    return Wish(number, url.strip(), terms)


def _given(values: Mapping[str, Any], name: str) -> Any:
    """A value, or None where a cell is empty."""
    value = values.get(name)
    return None if isinstance(value, str) and not value.strip() else value


_BREAK = re.compile(r"[\t\r\n]")
_WHOLE = re.compile(r"\s*[0-9]{1,9}\s*")


def _priority(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    raise InvalidInput(f"the priority must be 1 (highest) to 10, not {str(value)[:40]!r}")


def _popularity(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{str(value)[:40]!r} is not a number") from None


def _bad(number: int, reason: str, line: str | bytes) -> BadLine:
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    return BadLine(number, reason, text.replace(_NUL, "\N{REPLACEMENT CHARACTER}")[:SHOWN_LENGTH])
