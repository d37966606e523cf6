"""Files of rows: CSV, JSON lines and Parquet, written in portions."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from importlib import import_module
from typing import Any, BinaryIO, Protocol

import orjson

from forager.amounts import amount_text, time_text
from forager.errors import InvalidInput

# a row group of Parquet is in memory until it is written
GROUP_ROWS = 10_000
GROUP_CHARACTERS = 16 * 1024 * 1024

Row = dict[str, Any]


class RowSink(Protocol):
    """Writes rows in portions; `finish` completes the file."""

    def write(self, rows: Sequence[Row]) -> None:
        """Add rows; each has the columns of the file."""

    def finish(self) -> None:
        """Write what the format has at its end. The file stays open."""


def open_sink(format_: str, file: BinaryIO, columns: Mapping[str, str]) -> RowSink:
    """A file of rows in csv, jsonl or parquet, with these columns and their types."""
    if format_ == "jsonl":
        return JsonLines(file)
    return CsvRows(file, columns) if format_ == "csv" else ParquetRows(file, columns)


class DrainableFile(io.BytesIO):
    """A file in memory that is emptied while it is written."""

    def take(self) -> bytes:
        """The bytes written since the last call."""
        part = self.getvalue()
        self.seek(0)
        self.truncate()
        return part


async def file_parts(
    format_: str, columns: Mapping[str, str], portions: AsyncIterator[Sequence[Row]]
) -> AsyncIterator[bytes]:
    """The bytes of a file of rows, a portion at a time; the first comes at once."""
    gathered = DrainableFile()
    sink = open_sink(format_, gathered, columns)
    async for rows in portions:
        sink.write(rows)
        yield gathered.take()
    sink.finish()
    yield gathered.take()


class CountingFile:
    """A file that knows how much was written to it: a pipe does not, and Parquet asks."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._written = 0

    def write(self, data: bytes) -> int:
        self._file.write(data)
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.flush()


def load_pyarrow(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise InvalidInput(
            "Parquet files need pyarrow, which is not installed",
            hint="Install it with: pip install 'forager-crawler[parquet]'",
        ) from None


class CsvRows:
    """RFC 4180 in UTF-8: a line of names, then the rows; what is not known is empty."""

    def __init__(self, file: BinaryIO, columns: Mapping[str, str]) -> None:
        self._file = file
        self._columns = list(columns)
        self._put([self._columns])

    def write(self, rows: Sequence[Row]) -> None:
        self._put([[_cell(row[name]) for name in self._columns] for row in rows])

    def finish(self) -> None:
        self._file.flush()

    def _put(self, lines: Sequence[Sequence[str]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(lines)
        self._file.write(text.getvalue().encode())


class JsonLines:
    """One JSON object per line; amounts are text, so that no digit is lost."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, rows: Sequence[Row]) -> None:
        options = orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE
        self._file.write(b"".join(orjson.dumps(row, option=options, default=_cell) for row in rows))

    def finish(self) -> None:
        self._file.flush()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return amount_text(value)
    if isinstance(value, datetime):
        return time_text(value)
    return str(value)


class ParquetRows:
    """Collects rows to groups, and writes group by group."""

    def __init__(self, file: BinaryIO, columns: Mapping[str, str]) -> None:
        self._arrow = load_pyarrow("pyarrow")
        types = self._types()
        self._schema = self._arrow.schema([(name, types[kind]) for name, kind in columns.items()])
        parquet = load_pyarrow("pyarrow.parquet")
        self._writer = parquet.ParquetWriter(CountingFile(file), self._schema, compression="zstd")
        self._rows: list[Row] = []
        self._characters = 0

    def write(self, rows: Sequence[Row]) -> None:
        self._rows += rows
        texts = (value for row in rows for value in row.values() if isinstance(value, str))
        self._characters += sum(map(len, texts))
        if len(self._rows) >= GROUP_ROWS or self._characters >= GROUP_CHARACTERS:
            self._write_group()

    def finish(self) -> None:
        if self._rows:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
        self._rows, self._characters = [], 0

    def _types(self) -> dict[str, Any]:
        arrow = self._arrow
        return {
            "string": arrow.string(),
            "int16": arrow.int16(),
            "int32": arrow.int32(),
            "int64": arrow.int64(),
            "float64": arrow.float64(),
            "money": arrow.decimal128(14, 4),
            "rating": arrow.decimal128(3, 2),
            "timestamp": arrow.timestamp("us", tz="UTC"),
        }
