"""Streaming import of URL lists: CSV with a header, JSON lines, or one URL per line."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from io import UnsupportedOperation
from itertools import islice
from pathlib import PurePath
from typing import Any, BinaryIO

import orjson

from forager.errors import InvalidInput
from forager.hints import Hint, Option
from forager.settings.crawling import parse_render
from forager.tasks.task import parse_at, parse_every
from forager.tasks.tracking_request import BadLine, BadRow, RequestedTerms, TrackRequest

# a URL may have 65,536 characters before it is normalized, and each may be written as \uXXXX
MAX_LINE = 512 * 1024
SHOWN_LENGTH = 200
COLUMNS = ("url", "priority", "every", "popularity", "at", "max_retries", "render")
COMMENT = b"#"
STDIN = "-"
_DELIMITERS = (",", ";", "\t")
_NUL = "\0"

LineReader = Callable[[int, str | BadLine], TrackRequest | BadLine]


class FileFormat(StrEnum):
    """The format of a file of URLs."""

    CSV = "csv"
    JSON_LINES = "jsonl"
    LIST = "list"


_BY_SUFFIX = {
    ".csv": FileFormat.CSV,
    ".tsv": FileFormat.CSV,
    ".jsonl": FileFormat.JSON_LINES,
    ".ndjson": FileFormat.JSON_LINES,
    ".json": FileFormat.JSON_LINES,
}


def read_requests(
    stream: BinaryIO, name: str = "", format_: FileFormat | None = None
) -> Iterator[TrackRequest | BadLine]:
    """The requests of a file, one per line; `-` is standard input.

    Without a format, the suffix of the name determines it; other files are lists of URLs. Lines
    that begin with # are comments.
    """
    stream = _with_own_lock(stream) if name == STDIN else stream
    suffix = PurePath(name).suffix.lower()
    lines = _raw_lines(stream)
    read = _reader(format_ or _BY_SUFFIX.get(suffix, FileFormat.LIST), lines)
    for line in lines:
        yield read(line.number, _decoded(line))


def _with_own_lock(stream: BinaryIO) -> BinaryIO:
    """On exit Python takes the lock of `sys.stdin`, and aborts if a thread holds it."""
    try:
        return open(stream.fileno(), "rb", closefd=False)
    except UnsupportedOperation:  # it is not a file of the system
        return stream


# --- lines ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that is not only a comment; a cut one continues in the stream."""

    number: int
    raw: bytes
    is_cut: bool


def _raw_lines(stream: BinaryIO) -> Iterator[_Line]:
    """Lines numbered from 1, without leading space."""
    number = 0
    while raw := stream.readline(MAX_LINE):
        number += 1
        is_cut = len(raw) == MAX_LINE and not raw.endswith(b"\n")
        line = (_without_mark(raw) if number == 1 else raw).lstrip()
        if is_cut or (line and not line.startswith(COMMENT)):
            yield _Line(number, line, is_cut)
        while is_cut and (rest := stream.readline(MAX_LINE)):
            is_cut = not rest.endswith(b"\n")


def _without_mark(raw: bytes) -> bytes:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidInput("the file is in UTF-16", hint="Save it as UTF-8.")
    return raw.removeprefix(codecs.BOM_UTF8)


def _decoded(line: _Line) -> str | BadLine:
    if line.is_cut:
        reason = f"the line is longer than {MAX_LINE:,} bytes"
        return _bad(line.number, reason, line.raw[:999])
    raw = line.raw.rstrip()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return _bad(line.number, "the line is not UTF-8 text", raw)
    return _bad(line.number, "the line holds a NUL character", raw) if _NUL in text else text


# --- formats ----------------------------------------------------------------------------------


def _reader(format_: FileFormat, lines: Iterator[_Line]) -> LineReader:
    """The reader of lines; the header of a CSV file is consumed."""
    match format_:
        case FileFormat.JSON_LINES:
            return _read_json
        case FileFormat.LIST:
            return _read_url
        case FileFormat.CSV:
            return _row_reader(next(lines, None))


def _row_reader(header: _Line | None) -> LineReader:
    delimiter, names = _columns("" if header is None else _decoded(header))

    def read(number: int, line: str | BadLine) -> TrackRequest | BadLine:
        cells = None if isinstance(line, BadLine) else _cells(line, delimiter)
        if cells is None:
            reason = "the line cannot be divided into columns"
            bad = line if isinstance(line, BadLine) else _bad(number, reason, line)
            return _with_cells(bad, dict.fromkeys(names, ""))
        values = dict(zip(names, cells, strict=False))
        return _with_cells(_request(number, values, str(line)), values)

    return read


def _with_cells(read: TrackRequest | BadLine, cells: Mapping[str, str]) -> TrackRequest | BadLine:
    if isinstance(read, BadLine):
        return BadRow(read.line, read.reason, read.text, cells)
    return TrackRequest(read.line, read.url, read.terms, cells)


def _read_url(number: int, line: str | BadLine) -> TrackRequest | BadLine:
    return line if isinstance(line, BadLine) else _request(number, {"url": line}, line)


def _columns(header: str | BadLine) -> tuple[str, list[str]]:
    """The delimiter and the names of the columns; nothing is imported if they are wrong."""
    for delimiter in _DELIMITERS if isinstance(header, str) else ():
        names = [cell.strip().lower() for cell in _cells(str(header), delimiter) or []]
        if "url" in names:
            if misspelled := _misspelled(names):
                raise InvalidInput(f"the first line has {misspelled}")
            return delimiter, names
    raise InvalidInput(
        "the first line of a CSV file must name its columns, one of them url",
        hint=Hint(
            "The columns are: {}. A list of URLs needs no header: add {} list.",
            ", ".join(COLUMNS),
            Option("format"),
        ),
    )


def _cells(line: str, delimiter: str) -> list[str] | None:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None


def _read_json(number: int, line: str | BadLine) -> TrackRequest | BadLine:
    if isinstance(line, BadLine):
        return line
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        reason = "the line is not JSON"
        if line.startswith("["):
            reason += "; write one object per line instead of an array (jq -c '.[]')"
        return _bad(number, reason, line)
    return request_of(number, value, line)


# --- values -----------------------------------------------------------------------------------


def request_of(number: int, value: Any, text: str) -> TrackRequest | BadLine:
    """The request in a JSON value: a URL, or an object with one; `text` is its source."""
    if isinstance(value, str):
        return _request(number, {"url": value}, text)
    if not isinstance(value, dict):
        return _bad(number, 'it is not an object such as {"url": "https://…"}', text)
    return _request(number, value, text)


def _misspelled(names: Collection[str]) -> str | None:
    """The first misspelling of a missing column; unknown names are ignored."""
    unknown = (name for name in names if name not in _KNOWN)
    for name in islice(unknown, MOST_NAMES):
        near = _nearest(name)
        if near is not None and near not in names:
            return f"{name!r}: did you mean {near!r}?"
    return None


@lru_cache(maxsize=1000)
def _nearest(name: str) -> str | None:
    """The column that is meant: `prioirty` is `priority`, but `delivery` is not `every`."""
    near = get_close_matches(name.strip().lower(), COLUMNS, n=1, cutoff=0.8)
    return near[0] if near and len(name) <= 20 else None


def _request(number: int, values: Mapping[str, Any], line: str) -> TrackRequest | BadLine:
    if not _KNOWN.issuperset(values) and (misspelled := _misspelled(values)):
        return _bad(number, f"it has {misspelled}", line)
    url = values.get("url")
    if not isinstance(url, str) or not url.strip():
        return _bad(number, "there is no URL in it", line)
    if _BREAK.search(url.strip()):
        # normalization would remove the character, and change the URL
        return _bad(number, "there is a tab or a line end within the URL", line)
    try:
        terms = RequestedTerms(
            priority=_whole(
                _given(values, "priority"), "the priority must be 0 to 9 (higher runs first)"
            ),
            every=_every(str(every)) if (every := _given(values, "every")) else None,
            popularity=_popularity(_given(values, "popularity")),
            at=parse_at(str(at)) if (at := _given(values, "at")) else None,
            max_retries=_whole(_given(values, "max_retries"), "retries must be 0 to 1000"),
            render=parse_render(str(mode)) if (mode := _given(values, "render")) else None,
        )
    except InvalidInput as error:
        return _bad(number, error.message, line)
    return TrackRequest(number, url.strip(), terms)


def _given(values: Mapping[str, Any], name: str) -> Any:
    value = values.get(name)
    return None if isinstance(value, str) and not value.strip() else value


_KNOWN = frozenset(COLUMNS)
# per line or entry
MOST_NAMES = 50
_BREAK = re.compile(r"[\t\r\n]")
_WHOLE = re.compile(r"\s*[0-9]{1,9}\s*")


@lru_cache(maxsize=1000)
def _every(text: str) -> timedelta:
    """Cached, because files repeat the same few intervals."""
    return parse_every(text)


def _whole(value: Any, rule: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value.strip())
    raise InvalidInput(f"{rule}, not {str(value)[:40]!r}")


def _popularity(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{str(value)[:40]!r} is not a number") from None


def _bad(number: int, reason: str, line: str | bytes) -> BadLine:
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    return BadLine(number, reason, text.replace(_NUL, "\N{REPLACEMENT CHARACTER}"))
