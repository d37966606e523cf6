"""Rows as a Parquet file. pyarrow is large, and only who asks for Parquet needs it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, BinaryIO

from forager.errors import InvalidInput

# a row group is in memory until it is written
_GROUP_ROWS = 10_000
_GROUP_CHARACTERS = 16 * 1024 * 1024

_COLUMNS = {
    "url": "string",
    "outcome": "string",
    "reason": "string",
    "detail": "string",
    "duplicate_of": "string",
    "http_status": "int16",
    "depth": "int16",
    "parent_url": "string",
    "via": "string",
    "content_type": "string",
    "title": "string",
    "size": "int32",
    "settled_at": "timestamp",
    "content_hash": "string",
    "archive": "string",
}


class ParquetRows:
    """Collects rows to groups, and writes group by group."""

    def __init__(self, file: BinaryIO, *, body: bool) -> None:
        self._arrow = _pyarrow("pyarrow")
        self._schema = self._arrow.schema(self._fields(body))
        parquet = _pyarrow("pyarrow.parquet")
        self._writer = parquet.ParquetWriter(_Position(file), self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._characters = 0

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows += rows
        self._characters += sum(len(row.get("body") or "") for row in rows)
        if len(self._rows) >= _GROUP_ROWS or self._characters >= _GROUP_CHARACTERS:
            self._write_group()

    def finish(self) -> None:
        if self._rows:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
        self._rows, self._characters = [], 0

    def _fields(self, body: bool) -> list[tuple[str, Any]]:
        types = {
            "string": self._arrow.string(),
            "int16": self._arrow.int16(),
            "int32": self._arrow.int32(),
            "timestamp": self._arrow.timestamp("us", tz="UTC"),
        }
        fields = [(name, types[kind]) for name, kind in _COLUMNS.items()]
        return [*fields, ("body", types["string"])] if body else fields


class _Position:
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


def _pyarrow(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise InvalidInput(
            "Parquet files need pyarrow, which is not installed",
            hint="Install it with: pip install 'forager-crawler[parquet]'",
        ) from None
