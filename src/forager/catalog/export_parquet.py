"""Rows as a Parquet file. pyarrow is large, and only who asks for Parquet needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, BinaryIO

from forager.errors import InvalidInput

# a row group is in memory until it is written
_GROUP_ROWS = 10_000


class ParquetRows:
    """Collects rows to groups, and writes group by group."""

    def __init__(self, file: BinaryIO, columns: Mapping[str, str]) -> None:
        self._arrow = _pyarrow("pyarrow")
        types = self._types()
        self._schema = self._arrow.schema([(name, types[kind]) for name, kind in columns.items()])
        parquet = _pyarrow("pyarrow.parquet")
        self._writer = parquet.ParquetWriter(_Position(file), self._schema, compression="zstd")
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
