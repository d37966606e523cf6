"""Rows of a dataset as Parquet files, one for each month."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from forager.analytics.dataset import Dataset, Kind
from forager.analytics.lake import BEGINNING, LakeFile, Position, place_for
from forager.archive.local import whole_file
from forager.row_files import CountingFile, load_pyarrow

# bytes that are parsed at a time; a row is far smaller
_BLOCK = 16 << 20
# CSV of a chunk that is larger goes to the disk
_IN_MEMORY = 64 << 20
# rows of a file that are in memory at a time when files are merged
_BATCH = 100_000


def read_rows(dataset: Dataset, file: BinaryIO) -> Any:
    """CSV as PostgreSQL writes it, as a table: nothing is NULL, and "" is an empty text."""
    csv = load_pyarrow("pyarrow.csv")
    schema = schema_of(dataset)
    raw = {
        name: load_pyarrow("pyarrow").int64() if kind is Kind.TIME else schema.field(name).type
        for name, kind in dataset.columns.items()
    }
    table = csv.read_csv(
        file,
        csv.ReadOptions(column_names=list(raw), block_size=_BLOCK),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(
            column_types=raw,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return table.cast(schema)


Copied = TypeVar("Copied")


async def copy_table(
    dataset: Dataset, copy: Callable[[BinaryIO], Awaitable[Copied]]
) -> tuple[Any, Copied]:
    """The rows that `copy` writes as CSV, as a table or None without rows; and its result."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spooled:
        file = cast(BinaryIO, spooled)
        copied = await copy(file)
        if not file.tell():
            return None, copied
        file.seek(0)
        return await asyncio.to_thread(read_rows, dataset, file), copied


def last_position(table: Any) -> Position:
    return Position(_moment(table, -1), table["id"][-1].as_py())


def by_month(table: Any) -> Iterator[tuple[str, Any]]:
    """The table, whose rows are in the order of their times, cut where a month begins."""
    compute = load_pyarrow("pyarrow.compute")
    while table.num_rows:
        first = _moment(table, 0)
        # four days after the 28th are in the next month, whatever the month
        later = (first.replace(day=28) + timedelta(days=4)).replace(
            day=1, hour=0, minute=0, second=0, microsecond=0
        )
        end = load_pyarrow("pyarrow").scalar(later, table["at"].type)
        count = compute.sum(compute.less(table["at"], end)).as_py()
        yield f"{first:%Y-%m}", table.slice(0, count)
        table = table.slice(count)


def write_file(
    folder: Path, dataset: Dataset, month: str, number: int, tables: Iterable[Any]
) -> LakeFile:
    """One file, complete and on the disk before it is named anywhere."""
    place = place_for(folder, dataset.name, month, number)
    parquet = load_pyarrow("pyarrow.parquet")
    rows = 0
    with whole_file(place, overwrite=True) as file:
        counted = CountingFile(file)
        with parquet.ParquetWriter(counted, schema_of(dataset), compression="zstd") as writer:
            for table in tables:
                writer.write_table(table)
                rows += table.num_rows
    return LakeFile(
        dataset.name, month, str(place.relative_to(folder)), rows, size=place.stat().st_size
    )


def write_months(
    folder: Path, dataset: Dataset, first_number: int, table: Any
) -> tuple[LakeFile, ...]:
    """The files of a table, one for each month."""
    return tuple(
        write_file(folder, dataset, month, first_number + number, [part])
        for number, (month, part) in enumerate(by_month(table))
    )


def read_file(dataset: Dataset, path: Path) -> Iterator[Any]:
    """A file's rows, some at a time; columns that are newer than the file hold nothing."""
    arrow, parquet = load_pyarrow("pyarrow"), load_pyarrow("pyarrow.parquet")
    schema = schema_of(dataset)
    for batch in parquet.ParquetFile(path).iter_batches(_BATCH):
        table = arrow.Table.from_batches([batch])
        columns = [
            table[field.name] if field.name in table.column_names
            else arrow.nulls(table.num_rows, field.type)
            for field in schema
        ]  # fmt: skip
        yield arrow.table(columns, schema=schema)


def schema_of(dataset: Dataset) -> Any:
    arrow = load_pyarrow("pyarrow")
    types = {
        Kind.INT: arrow.int64(),
        Kind.FLOAT: arrow.float64(),
        Kind.MONEY: arrow.decimal128(14, 4),
        Kind.RATING: arrow.decimal128(3, 2),
        Kind.TEXT: arrow.string(),
        Kind.TIME: arrow.timestamp("us", tz="UTC"),
    }
    return arrow.schema([(name, types[kind]) for name, kind in dataset.columns.items()])


def _moment(table: Any, row: int) -> datetime:
    # not `as_py()`: it would need the names of zones, which not every system has
    microseconds: int = table["at"][row].value
    return (BEGINNING + timedelta(microseconds=microseconds)).astimezone(UTC)
