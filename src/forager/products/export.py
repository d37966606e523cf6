"""Products, their price histories or their offers as one file: CSV, JSON lines or Parquet."""

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

from forager.db.database import Connection, Database
from forager.errors import InvalidInput
from forager.parquet import CountingFile, load_pyarrow
from forager.products.filters import Filters
from forager.products.offers import MAX_OFFERS
from forager.products.price_history import PriceEntry, entry_of, percent
from forager.products.record import ListedProduct
from forager.products.service import resolved
from forager.products.store import lists as store
from forager.products.store import offers, prices

# products in memory at a time; fewer where each has several rows
CHUNK = 1_000
SMALL_CHUNK = 200

NO_FILTERS = Filters()

Row = dict[str, Any]
Progress = Callable[[int], None]


class ExportFormat(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class ExportContent(StrEnum):
    PRODUCTS = "products"
    # one row for each price change
    HISTORY = "history"
    # one row for each other offer of the same article
    OFFERS = "offers"


@dataclass(frozen=True, slots=True)
class Export:
    """What to write: products, or for each of them its price changes or its other offers."""

    format: ExportFormat
    filters: Filters = NO_FILTERS
    content: ExportContent = ExportContent.PRODUCTS
    # of price changes
    since: datetime | None = None
    # of products: names of columns, or `all`; by default those of lists
    columns: tuple[str, ...] = ()

    def schema(self) -> dict[str, str]:
        """The columns of the file, with their types."""
        if self.content is not ExportContent.PRODUCTS:
            return HISTORY_COLUMNS if self.content is ExportContent.HISTORY else OFFER_COLUMNS
        if not self.columns:
            return PRODUCT_COLUMNS
        if self.columns == ("all",):
            return ALL_COLUMNS
        for name in self.columns:
            if name not in ALL_COLUMNS:
                known = ", ".join(ALL_COLUMNS)
                raise InvalidInput(f"{name[:40]!r} is not a column", hint=f"Columns: {known}.")
        return {name: ALL_COLUMNS[name] for name in self.columns}


class RowSink(Protocol):
    """Writes rows in portions; `finish` completes the file."""

    def write(self, rows: Sequence[Row]) -> None: ...
    def finish(self) -> None: ...


async def export_size(database: Database, wanted: Export) -> int:
    """The number of products that an export covers."""
    async with database.connection() as connection:
        return await store.count_products(connection, await resolved(connection, wanted.filters))


async def export_products(
    database: Database, wanted: Export, file: BinaryIO, progress: Progress = lambda _: None
) -> int:
    """Write an export, oldest products first; return the number of rows.

    A product that changes meanwhile is in it once, as it was when its turn came. Memory does not
    grow with the number of rows.
    """
    sink = _sink(wanted.format, file, wanted.schema())
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
    sink = _sink(wanted.format, gathered, wanted.schema())
    async for _, rows in _rows(database, wanted):
        sink.write(rows)
        yield _taken(gathered)
    sink.finish()
    yield _taken(gathered)


def _taken(gathered: io.BytesIO) -> bytes:
    """The bytes written since the last call."""
    part = gathered.getvalue()
    gathered.seek(0)
    gathered.truncate()
    return part


async def _rows(database: Database, wanted: Export) -> AsyncIterator[tuple[int, list[Row]]]:
    """The number of products of a portion, and their rows."""
    columns = wanted.schema()
    limit = CHUNK if wanted.content is ExportContent.PRODUCTS else SMALL_CHUNK
    after = 0
    while True:
        # a connection for each portion: the reader of the file may be slow
        async with database.connection() as connection:
            filters = await resolved(connection, wanted.filters)
            products = await store.select_by_id(connection, filters, after=after, limit=limit)
            rows = await _rows_of(connection, wanted, products)
        if products:
            yield len(products), [{name: row[name] for name in columns} for row in rows]
            after = products[-1].id
        if len(products) < limit:
            return


async def _rows_of(
    connection: Connection, wanted: Export, products: Sequence[ListedProduct]
) -> list[Row]:
    by_id = {product.id: product for product in products}
    if wanted.content is ExportContent.HISTORY:
        records = await prices.select_histories(connection, list(by_id), since=wanted.since)
        return [_named(by_id[r.product_id]) | _plain(entry_of(r)) for r in records]
    if wanted.content is ExportContent.OFFERS:
        return await _offer_rows(connection, by_id)
    more = [name for name in wanted.schema() if name not in PRODUCT_COLUMNS]
    if not more:
        return [_plain(product) for product in products]
    details = await store.select_exported(connection, list(by_id), more)
    # a product that was deleted in between is left out
    return [_plain(by_id[id_]) | row for id_, row in sorted(details.items())]


async def _offer_rows(connection: Connection, by_id: Mapping[int, ListedProduct]) -> list[Row]:
    pairs = await offers.select_pairs(connection, list(by_id), limit=MAX_OFFERS)
    others = await store.select_listed(connection, [pair.offer_id for pair in pairs])
    return [
        _offer_row(by_id[pair.product_id], others[pair.offer_id], pair.matched_by)
        for pair in pairs
        if pair.offer_id in others
    ]


def _offer_row(product: ListedProduct, other: ListedProduct, matched_by: str) -> Row:
    same_currency = product.currency == other.currency
    return {
        **_named(product),
        "gtin": product.gtin,
        "price": product.price,
        "currency": product.currency,
        "availability": product.availability,
        **{f"offer_{name}": value for name, value in _plain(other).items()},
        "matched_by": matched_by,
        "percent": percent(product.price, other.price) if same_currency else None,
    }


def _plain(source: ListedProduct | PriceEntry) -> Row:
    return {name: getattr(source, name) for name in source.__slots__}


def _named(product: ListedProduct) -> Row:
    return {
        "product_id": product.id,
        "url": product.url,
        "domain": product.domain,
        "name": product.name,
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
ALL_COLUMNS = PRODUCT_COLUMNS | {
    "mpn": "string",
    "shop_product_id": "string",
    "shop_variant_id": "string",
    "final_url": "string",
    "description": "string",
    # as JSON
    "variants": "string",
    "problem_details": "string",
    "evidence": "string",
    "language": "string",
    "parser": "string",
    "parser_version": "string",
    "task_id": "int64",
}
OFFER_COLUMNS = {
    "product_id": "int64",
    "url": "string",
    "domain": "string",
    "name": "string",
    "gtin": "string",
    "price": "money",
    "currency": "string",
    "availability": "string",
    "offer_id": "int64",
    "offer_url": "string",
    "offer_domain": "string",
    "offer_name": "string",
    "offer_price": "money",
    "offer_currency": "string",
    "offer_availability": "string",
    "offer_last_seen_at": "timestamp",
    "matched_by": "string",
    # how much more the other offer costs
    "percent": "float64",
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
