"""Rows as a Parquet file. pyarrow is large, and only who asks for Parquet needs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

from forager.parquet import CountingFile, load_pyarrow

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
        self._arrow = load_pyarrow("pyarrow")
        self._schema = self._arrow.schema(self._fields(body))
        parquet = load_pyarrow("pyarrow.parquet")
        self._writer = parquet.ParquetWriter(CountingFile(file), self._schema, compression="zstd")
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
