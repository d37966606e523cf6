"""Products, or their price histories, as one file: CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, BinaryIO, Protocol

import orjson

from forager.db.database import Database
from forager.parquet import CountingFile, load_pyarrow
from forager.products.filters import Filters
from forager.products.price_history import entry_of
from forager.products.record import ListedProduct
from forager.products.service import resolved
from forager.products.store import lists as store
from forager.products.store import prices

# rows in memory at a time; of histories, products
CHUNK = 1_000
HISTORIES = 200

NO_FILTERS = Filters()

Row = dict[str, Any]
Progress = Callable[[int], None]


class ExportFormat(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class Export:
    """What is wanted. With `history`, one row for each change, those `since` a time if given."""

    format: ExportFormat
    filters: Filters = NO_FILTERS
    history: bool = False
    since: datetime | None = None


class RowSink(Protocol):
    """Takes rows in portions, and is told when there are no more."""

    def write(self, rows: Sequence[Row]) -> None: ...
    def finish(self) -> None: ...


async def export_size(database: Database, wanted: Export) -> int:
    """How many products an export looks at."""
    async with database.connection() as connection:
        return await store.count_products(connection, await resolved(connection, wanted.filters))


async def export_products(
    database: Database, wanted: Export, file: BinaryIO, progress: Progress = lambda _: None
) -> int:
    """Write an export, oldest products first; how many rows it has. Memory does not grow with it.

    A product that changes meanwhile is in it once, as it was when its turn came.
    """
    columns = HISTORY_COLUMNS if wanted.history else PRODUCT_COLUMNS
    sink = _sink(wanted.format, file, columns)
    written = 0
    async for products, rows in _rows(database, wanted):
        sink.write(rows)
        written += len(rows)
        progress(products)
    sink.finish()
    return written


async def export_stream(database: Database, wanted: Export) -> AsyncIterator[bytes]:
    """The bytes of the same file, a portion of the rows at a time; the first comes at once."""
    gathered = io.BytesIO()
    columns = HISTORY_COLUMNS if wanted.history else PRODUCT_COLUMNS
    sink = _sink(wanted.format, gathered, columns)
    async for _, rows in _rows(database, wanted):
        sink.write(rows)
        yield _taken(gathered)
    sink.finish()
    yield _taken(gathered)


def _taken(gathered: io.BytesIO) -> bytes:
    """What was written since the last look."""
    part = gathered.getvalue()
    gathered.seek(0)
    gathered.truncate()
    return part


async def _rows(database: Database, wanted: Export) -> AsyncIterator[tuple[int, list[Row]]]:
    """How many products were looked at, and the rows of them, a portion at a time."""
    limit = HISTORIES if wanted.history else CHUNK
    after = 0
    while True:
        # a connection for each portion: whoever writes the file may be slow
        async with database.connection() as connection:
            filters = await resolved(connection, wanted.filters)
            products = await store.select_by_id(connection, filters, after=after, limit=limit)
            records = (
                await prices.select_histories(
                    connection, [product.id for product in products], since=wanted.since
                )
                if wanted.history
                else None
            )
        if products:
            yield len(products), _portion(products, records)
            after = products[-1].id
        if len(products) < limit:
            return


def _portion(
    products: Sequence[ListedProduct], records: Sequence[prices.PriceRecord] | None
) -> list[Row]:
    if records is None:
        return [_row(product, PRODUCT_COLUMNS) for product in products]
    by_id = {product.id: product for product in products}
    return [_history_row(by_id[record.product_id], record) for record in records]


def _row(source: object, columns: Mapping[str, str]) -> Row:
    return {name: getattr(source, name) for name in columns}


def _history_row(product: ListedProduct, record: prices.PriceRecord) -> Row:
    named = {
        "product_id": product.id,
        "url": product.url,
        "domain": product.domain,
        "name": product.name,
    }
    return named | {
        name: getattr(entry_of(record), name) for name in HISTORY_COLUMNS if name not in named
    }


# --- files -------------------------------------------------------------------------------------


def _sink(format_: ExportFormat, file: BinaryIO, columns: Mapping[str, str]) -> RowSink:
    if format_ is ExportFormat.CSV:
        return CsvRows(file, columns)
    if format_ is ExportFormat.JSONL:
        return JsonLines(file)

    return ParquetRows(file, columns)


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
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value)


def amount_text(value: Decimal) -> str:
    """An amount without the zeros that only its column adds: 49.90 of 49.9000, 5 of 5.0000."""
    text = f"{value:f}"
    if "." not in text:
        return text
    whole, _, decimals = text.partition(".")
    decimals = decimals.rstrip("0")
    return f"{whole}.{decimals.ljust(2, '0')}" if decimals else whole


PRODUCT_COLUMNS = {
    "id": "int64",
    "url": "string",
    "domain": "string",
    "name": "string",
    "price": "money",
    "list_price": "money",
    "currency": "string",
    "availability": "string",
    "rating": "rating",
    "review_count": "int64",
    "brand": "string",
    "category": "string",
    "sku": "string",
    "gtin": "string",
    "problems": "int64",
    "created_at": "timestamp",
    "updated_at": "timestamp",
    "last_seen_at": "timestamp",
    "price_changed_at": "timestamp",
}
HISTORY_COLUMNS = {
    "product_id": "int64",
    "url": "string",
    "domain": "string",
    "name": "string",
    "price": "money",
    "list_price": "money",
    "currency": "string",
    "availability": "string",
    "percent": "float64",
    "recorded_at": "timestamp",
}


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
