"""Rows as a Parquet file. pyarrow is large, and only who asks for Parquet needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from forager.parquet import CountingFile, load_pyarrow

# a row group is in memory until it is written
_GROUP_ROWS = 10_000


class ParquetRows:
    """Collects rows to groups, and writes group by group."""

    def __init__(self, file: BinaryIO, columns: Mapping[str, str]) -> None:
        self._arrow = load_pyarrow("pyarrow")
        types = self._types()
        self._schema = self._arrow.schema([(name, types[kind]) for name, kind in columns.items()])
        parquet = load_pyarrow("pyarrow.parquet")
        self._writer = parquet.ParquetWriter(CountingFile(file), self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows += rows
        if len(self._rows) >= _GROUP_ROWS:
            self._write_group()

    def finish(self) -> None:
        if self._rows:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
        self._rows = []

    def _types(self) -> dict[str, Any]:
        return {
            "string": self._arrow.string(),
            "int64": self._arrow.int64(),
            "float64": self._arrow.float64(),
            "money": self._arrow.decimal128(14, 4),
            "rating": self._arrow.decimal128(3, 2),
            "timestamp": self._arrow.timestamp("us", tz="UTC"),
        }
