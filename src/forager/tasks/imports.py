"""Streaming import of URL lists: CSV, JSON, or one URL per line."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache, partial
from io import UnsupportedOperation
from itertools import chain, islice
from pathlib import PurePath
from typing import Any, BinaryIO

import orjson

from forager.errors import InvalidInput
from forager.settings.crawling import parse_render
from forager.tasks.json_array import read_array
from forager.tasks.task import parse_at, parse_every
from forager.tasks.tracking_request import BadLine, Terms, TrackRequest

# a URL may have 65,536 characters before it is normalized, and each may be written as \uXXXX
MAX_LINE = 512 * 1024
SHOWN_LENGTH = 200
COLUMNS = ("url", "priority", "every", "popularity", "at", "max_retries", "render")
COMMENT = b"#"
STDIN = "-"
_DELIMITERS = (",", ";", "\t")
_NUL = "\0"

Read = Callable[[int, str], TrackRequest | BadLine]


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


def read_requests(stream: BinaryIO, name: str = "") -> Iterator[TrackRequest | BadLine]:
    """The requests of a file: one per line, or per entry of a JSON array.

    Lines that begin with # are comments. The name of the file determines the format, otherwise its
    first line does; `-` is standard input.
    """
    stream = _with_own_lock(stream) if name == STDIN else stream
    known = _BY_SUFFIX.get(PurePath(name).suffix.lower())
    rest = _raw_lines(stream)
    first = next(rest, None)
    if first is not None and known in (None, FileFormat.JSON_LINES) and first.raw.startswith(b"["):
        yield from _read_array(stream, first)
    elif first is not None:
        yield from _read_lines(known, chain([first], rest))


def _with_own_lock(stream: BinaryIO) -> BinaryIO:
    """On exit Python takes the lock of `sys.stdin`, and aborts if a thread holds it."""
    try:
        return open(stream.fileno(), "rb", closefd=False)
    except UnsupportedOperation:  # it is not a file of the system
        return stream


def _read_lines(
    known: FileFormat | None, lines: Iterable[_Line]
) -> Iterator[TrackRequest | BadLine]:
    read: Read | None = None
    for line in lines:
        text = _decoded(line)
        if isinstance(text, BadLine):
            yield text
            continue
        is_header = False
        if read is None:
            read, is_header = _reader(known or _guess(text), text)
        if not is_header:
            yield read(line.number, text)


def _read_array(stream: BinaryIO, first: _Line) -> Iterator[TrackRequest | BadLine]:
    """The requests of a JSON array."""
    for entry in read_array(first.raw, stream, line=first.number, longest=MAX_LINE):
        if entry.problem is None:
            yield request_of(entry.line, entry.value, entry.text)
        else:
            yield _bad(entry.line, f"{entry.problem}; nothing after it can be read", entry.text)


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
        held = (_without_mark(raw) if number == 1 else raw).lstrip()
        if is_cut or (held and not held.startswith(COMMENT)):
            yield _Line(number, held, is_cut)
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


def _guess(first: str) -> FileFormat:
    if first.startswith("{"):
        return FileFormat.JSON_LINES
    if _header(first) is not None:
        return FileFormat.CSV
    return FileFormat.LIST if _divider(first, ",\t") is None else FileFormat.CSV


def _divider(line: str, among: Iterable[str] = _DELIMITERS) -> str | None:
    """The delimiter of a row without a header, if it has one.

    Delimiters may be part of a URL: one counts only if the other cells are valid.
    """
    for delimiter in among:
        cells = _cells(line, delimiter) or []
        if len(cells) > 1 and isinstance(_request(0, _by_place(cells), line), TrackRequest):
            return delimiter
    return None


def _reader(kind: FileFormat, first: str) -> tuple[Read, bool]:
    """The reader of lines, and whether the first line is a header."""
    if kind is FileFormat.JSON_LINES:
        return _read_json, False
    if kind is FileFormat.LIST:
        return _read_url, _header(first) is not None
    header = _header(first)
    if header is None:
        return partial(_read_row, _divider(first) or ","), False
    delimiter, names = header

    def read_named(number: int, line: str) -> TrackRequest | BadLine:
        cells = _cells(line, delimiter)
        if cells is None:
            return _bad(number, "the line cannot be divided into columns", line)
        return _request(number, dict(zip(names, cells, strict=False)), line)

    return read_named, True


def _header(first: str) -> tuple[str, list[str]] | None:
    """The delimiter and the names of the columns, if this line is a header."""
    for delimiter in _DELIMITERS:
        names = [cell.strip().lower() for cell in _cells(first, delimiter) or []]
        if "url" in names or _is_almost_header(names):
            if words := _misspelt(names):
                # nothing is imported yet: better an error now than after many lines
                raise InvalidInput(f"the first line has {words}")
            return delimiter, names
    return None


def _is_almost_header(names: Collection[str]) -> bool:
    """Whether a line can only be a misspelled header."""
    return len(names) > 1 and not _NOT_NAMES.search("".join(names)) and _misspelt(names) is not None


def _read_url(number: int, line: str) -> TrackRequest | BadLine:
    return _request(number, {"url": line}, line)


def _read_row(delimiter: str, number: int, line: str) -> TrackRequest | BadLine:
    cells = _cells(line, delimiter)
    if cells is None:
        return _bad(number, "the line cannot be divided into columns", line)
    if len(cells) > len(COLUMNS):
        return _bad(number, f"more than {len(COLUMNS)} columns: {', '.join(COLUMNS)}", line)
    return _request(number, _by_place(cells), line)


def _by_place(cells: list[str]) -> dict[str, str]:
    return dict(zip(COLUMNS, cells, strict=False))


def _cells(line: str, delimiter: str) -> list[str] | None:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None


def _read_json(number: int, line: str) -> TrackRequest | BadLine:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _bad(number, "the line is not JSON", line)
    return request_of(number, value, line)


# --- values -----------------------------------------------------------------------------------


def request_of(number: int, value: Any, text: str) -> TrackRequest | BadLine:
    """The request in a JSON value: a URL, or an object with one; `text` is its source."""
    if isinstance(value, str):
        return _request(number, {"url": value}, text)
    if not isinstance(value, dict):
        return _bad(number, 'it is not an object such as {"url": "https://…"}', text)
    return _request(number, value, text)


def _misspelt(names: Collection[str]) -> str | None:
    """The first misspelling of a missing column; unknown names are ignored."""
    unknown = (name for name in names if name not in _KNOWN)
    for name in islice(unknown, MOST_NAMES):
        near = _nearest(name)
        if near is not None and near not in names:
            return f"{name!r}: did you mean {near!r}?"
    return None


@lru_cache(maxsize=1000)
def _nearest(name: str) -> str | None:
    given = name.strip().lower()
    near = get_close_matches(given, COLUMNS, n=1) if len(name) <= 20 else []
    # the URL is required, so a guess is worthwhile; optional columns are guessed only if close
    return near[0] if near and (near[0] == "url" or _is_slip(given, near[0])) else None


def _is_slip(given: str, meant: str) -> bool:
    """Whether a name is a misspelling and not another word: `delivery` is not `every`."""
    return _one_letter_apart(given, meant) or (
        given[0] == meant[0] and bool(get_close_matches(given, [meant], cutoff=0.85))
    )


def _one_letter_apart(one: str, other: str) -> bool:
    """Whether the words differ by one added, removed or replaced letter."""
    short, long = sorted((one, other), key=len)
    pairs = enumerate(zip(short, long, strict=False))
    same = next((place for place, (a, b) in pairs if a != b), len(short))
    return long[same + 1 :] == short[same + (len(short) == len(long)) :]


def _request(number: int, values: Mapping[str, Any], line: str) -> TrackRequest | BadLine:
    if not _KNOWN.issuperset(values) and (words := _misspelt(values)):
        return _bad(number, f"it has {words}", line)
    url = values.get("url")
    if not isinstance(url, str) or not url.strip():
        return _bad(number, "there is no URL in it", line)
    if _BREAK.search(url.strip()):
        # normalization would remove the character, and change the URL
        return _bad(number, "there is a tab or a line end within the URL", line)
    try:
        terms = Terms(
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
_NOT_NAMES = re.compile(r"[:/.0-9]")
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
    return BadLine(number, reason, text.replace(_NUL, "\N{REPLACEMENT CHARACTER}")[:SHOWN_LENGTH])
