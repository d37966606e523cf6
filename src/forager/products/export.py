"""Products, their prices, their offers or items as one file: CSV, JSON lines or Parquet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import BinaryIO

from forager.db.database import Connection, Database
from forager.errors import InvalidInput
from forager.products.filters import Filters
from forager.products.items.item import Item, item_portions, price_index
from forager.products.items.store import IndexPoint
from forager.products.offers import MAX_OFFERS
from forager.products.price_history import PriceEntry, PriceMove, percent
from forager.products.product import ListedProduct
from forager.products.service import resolved
from forager.products.store import lists as store
from forager.products.store import offers, prices
from forager.row_files import Row, file_parts

# products in memory at a time; fewer if each has several rows
CHUNK = 1_000
SMALL_CHUNK = 200

NO_FILTERS = Filters()

Progress = Callable[[Sequence[int]], None]
Count = Callable[[Sequence[int], int], None]


class ProductsExportFormat(StrEnum):
    """The format of an export of products."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class ExportContent(StrEnum):
    """What an export of products has rows for."""

    PRODUCTS = "products"
    # one row for each price change
    HISTORY = "history"
    # one row for each product whose price differs from that at a time
    CHANGES = "changes"
    # one row for each other offer of the same article
    OFFERS = "offers"
    # one row for each article, with its best offer
    ITEMS = "items"
    # one row for each category and day
    INDEX = "index"


# contents that are about a period
SINCE = (ExportContent.HISTORY, ExportContent.CHANGES, ExportContent.INDEX)


@dataclass(frozen=True, slots=True)
class ProductExport:
    """The content of an export: products, or what is known of their prices and offers."""

    format: ProductsExportFormat
    filters: Filters = NO_FILTERS
    content: ExportContent = ExportContent.PRODUCTS
    # of contents that are about a period; by default all of the history, changes of 7 days, and
    # the index of 90 days
    since: datetime | None = None
    # of products: names of columns, or `all`; by default those of lists
    columns: tuple[str, ...] = ()

    def schema(self) -> dict[str, str]:
        if self.content is not ExportContent.PRODUCTS:
            return _COLUMNS[self.content]
        if not self.columns:
            return PRODUCT_COLUMNS
        if self.columns == ("all",):
            return ALL_COLUMNS
        for name in self.columns:
            if name not in ALL_COLUMNS:
                known = ", ".join(ALL_COLUMNS)
                raise InvalidInput(f"{name[:40]!r} is not a column", hint=f"Columns: {known}.")
        return {name: ALL_COLUMNS[name] for name in self.columns}


async def export_size(database: Database, wanted: ProductExport) -> int:
    async with database.connection() as connection:
        return await store.count_products(connection, await resolved(connection, wanted.filters))


async def export_products(
    database: Database, wanted: ProductExport, file: BinaryIO, progress: Progress = lambda _: None
) -> int:
    """Write an export; return the number of rows. `progress` gets the ids of products."""
    written = 0

    def count(products: Sequence[int], rows: int) -> None:
        nonlocal written
        written += rows
        progress(products)

    async for part in export_stream(database, wanted, count):
        file.write(part)
    file.flush()
    return written


async def export_stream(
    database: Database, wanted: ProductExport, count: Count = lambda *_: None
) -> AsyncIterator[bytes]:
    """The bytes of an export, oldest products first; `count` gets ids of products and a row count.

    A product that changes meanwhile is in it once, as it was when its turn came. Memory does not
    grow with the number of rows.
    """
    portions = export_portions(database, wanted, count)
    async for part in file_parts(wanted.format, wanted.schema(), portions):
        yield part


async def export_portions(
    database: Database, wanted: ProductExport, count: Count = lambda *_: None
) -> AsyncIterator[list[Row]]:
    """The rows of an export, a portion at a time."""
    columns = wanted.schema()
    if wanted.content in (ExportContent.ITEMS, ExportContent.INDEX):
        async for lines in _item_portions(database, wanted):
            yield lines
            count([], len(lines))
        return
    limit = CHUNK if wanted.content is ExportContent.PRODUCTS else SMALL_CHUNK
    after = 0
    while True:
        # one connection per chunk, because the reader of the file may be slow
        async with database.connection() as connection:
            filters = await resolved(connection, wanted.filters)
            products = await store.select_by_id(connection, filters, after=after, limit=limit)
            rows = await _rows_of(connection, wanted, products)
        if products:
            yield [{name: row[name] for name in columns} for row in rows]
            count([product.id for product in products], len(rows))
            after = products[-1].id
        if len(products) < limit:
            return


async def _rows_of(
    connection: Connection, wanted: ProductExport, products: Sequence[ListedProduct]
) -> list[Row]:
    by_id = {product.id: product for product in products}
    if wanted.content is ExportContent.HISTORY:
        records = await prices.select_histories(connection, list(by_id), since=wanted.since)
        return [_named(by_id[r.product_id]) | _plain(r) for r in records]
    if wanted.content is ExportContent.CHANGES:
        since = wanted.since or datetime.now(UTC) - timedelta(days=7)
        moves = await prices.select_moves(
            connection, NO_FILTERS, since=since, limit=len(by_id), only=list(by_id)
        )
        return [_plain(move) for move in sorted(moves, key=lambda move: move.product_id)]
    if wanted.content is ExportContent.OFFERS:
        return await _offer_rows(connection, by_id)
    more = [name for name in wanted.schema() if name not in PRODUCT_COLUMNS]
    if not more:
        return [_plain(product) for product in products]
    details = await store.select_exported(connection, list(by_id), more)
    # products that were deleted meanwhile are left out
    return [_plain(by_id[id_]) | row for id_, row in sorted(details.items())]


async def _item_portions(database: Database, wanted: ProductExport) -> AsyncIterator[list[Row]]:
    if wanted.content is ExportContent.INDEX:
        points = await price_index(database, wanted.filters, since=wanted.since)
        yield [_plain(point) | {"day": point.day.isoformat()} for point in points]
        return
    async for items in item_portions(database, wanted.filters):
        yield [_plain(item) for item in items]


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


def _plain(source: ListedProduct | PriceEntry | PriceMove | Item | IndexPoint) -> Row:
    return {each.name: getattr(source, each.name) for each in fields(source)}


def _named(product: ListedProduct) -> Row:
    return {
        "product_id": product.id,
        "url": product.url,
        "domain": product.domain,
        "name": product.name,
    }


_TYPES = {
    "int": "int64", "str": "string", "date": "string", "Decimal": "money", "float": "float64",
    "datetime": "timestamp",
}  # fmt: skip


def _types_of(row: type[ListedProduct | PriceMove | Item | IndexPoint]) -> dict[str, str]:
    return {each.name: _TYPES[str(each.type).removesuffix(" | None")] for each in fields(row)}


PRODUCT_COLUMNS = {
    name: kind
    for name, kind in _types_of(ListedProduct).items()
    if name != "failing_since"  # of its page, not of the product
} | {"rating": "rating"}
ALL_COLUMNS = (
    PRODUCT_COLUMNS
    | dict.fromkeys(
        (
            "mpn", "shop_product_id", "shop_variant_id", "final_url", "description",
            # as JSON
            "variants", "problem_details", "evidence", "price_history",
            "language", "parser", "parser_version",
        ),
        "string",
    )
    | {"task_id": "int64"}
)  # fmt: skip


def _columns(*names: str, prefix: str = "") -> dict[str, str]:
    return {f"{prefix}{name}": PRODUCT_COLUMNS[name] for name in names}


_NAMED_COLUMNS = {"product_id": "int64"} | _columns("url", "domain", "name")
_OFFER = ("price", "currency", "availability")
OFFER_COLUMNS = (
    _NAMED_COLUMNS
    | _columns("gtin", *_OFFER)
    | _columns("id", "url", "domain", "name", *_OFFER, "last_seen_at", prefix="offer_")
    # percent: how much more the other offer costs
    | {"matched_by": "string", "percent": "float64"}
)
HISTORY_COLUMNS = (
    _NAMED_COLUMNS
    | _columns("price", "list_price", "currency", "availability")
    | {"percent": "float64", "recorded_at": "timestamp"}
)
_COLUMNS = {
    ExportContent.HISTORY: HISTORY_COLUMNS,
    ExportContent.CHANGES: _types_of(PriceMove),
    ExportContent.OFFERS: OFFER_COLUMNS,
    ExportContent.ITEMS: _types_of(Item),
    ExportContent.INDEX: _types_of(IndexPoint),
}
