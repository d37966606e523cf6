"""Datasets of the lake: their columns, the types of these, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import LiteralString


class ColumnKind(StrEnum):
    """A kind of value, by the name that ClickHouse has for it."""

    INT = "Int64"
    FLOAT = "Float64"
    MONEY = "Decimal(14, 4)"
    RATING = "Decimal(3, 2)"
    TEXT = "String"
    TIME = "DateTime64(6, 'UTC')"

    @property
    def is_time(self) -> bool:
        return self is ColumnKind.TIME

    @property
    def csv_type(self) -> str:
        """The type that DuckDB reads from CSV; times are whole microseconds."""
        names = {ColumnKind.INT: "BIGINT", ColumnKind.FLOAT: "DOUBLE", ColumnKind.TEXT: "VARCHAR"}
        return names.get(self, "BIGINT" if self.is_time else self.value.upper())


Columns = Mapping[str, tuple[ColumnKind, LiteralString]]


def micro(time: LiteralString) -> LiteralString:
    """A time in whole microseconds: a number is the same in every zone and every date style."""
    return f"(extract(epoch FROM {time}) * 1000000)::bigint"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Rows of a table, which SQL calls `t`, in the order of a time and their IDs.

    The first columns of every dataset are `id` and `at`, the value of the column `time`.
    """

    name: str
    time: LiteralString
    # further columns, with their kind and SQL expression
    values: Columns
    source: LiteralString
    condition: LiteralString = "true"
    # a row that changes is added again: the newest of an ID counts
    has_versions: bool = False
    # the unique key of rows within a month
    key: tuple[str, ...] = ("id",)

    @property
    def columns(self) -> dict[str, ColumnKind]:
        named = {name: kind for name, (kind, _) in self.values.items()}
        return {"id": ColumnKind.INT, "at": ColumnKind.TIME, **named}


def month_file(folder: Path, dataset: str, month: str) -> Path:
    """The file of a month such as 2026-11."""
    return folder / dataset / f"{month}.parquet"


def newest_rows(dataset: Dataset, rows: str) -> str:
    """A FROM clause with the newest version of each row, for DuckDB and ClickHouse."""
    if not dataset.has_versions:
        return rows
    numbered = f'SELECT *, row_number() OVER (PARTITION BY id ORDER BY "at" DESC) AS n FROM {rows}'
    return f"(SELECT * FROM ({numbered}) AS numbered WHERE n = 1)"


def column_types(dataset: Dataset) -> dict[str, str]:
    """The ClickHouse type of each column; all but the first two may be NULL."""
    return {
        name: kind.value if name in ("id", "at") else f"Nullable({kind})"
        for name, kind in dataset.columns.items()
    }


# Texts are cut, so that no row outgrows the longest line that the reader of CSV accepts.
PRODUCTS = Dataset(
    "products",
    "t.updated_at",
    {
        "domain": (ColumnKind.TEXT, "d.domain_name"),
        "url": (ColumnKind.TEXT, "left(t.url, 4000)"),
        "name": (ColumnKind.TEXT, "left(t.product_name, 1000)"),
        "brand": (ColumnKind.TEXT, "left(t.brand, 500)"),
        "category": (ColumnKind.TEXT, "left(t.category, 1000)"),
        "sku": (ColumnKind.TEXT, "left(t.sku, 200)"),
        "gtin": (ColumnKind.TEXT, "left(t.gtin, 200)"),
        "price": (ColumnKind.MONEY, "t.price"),
        "list_price": (ColumnKind.MONEY, "t.list_price"),
        "currency": (ColumnKind.TEXT, "t.currency"),
        "availability": (ColumnKind.TEXT, "t.availability"),
        "rating": (ColumnKind.RATING, "t.rating"),
        "review_count": (ColumnKind.INT, "t.review_count"),
        "problems": (ColumnKind.INT, "jsonb_array_length(t.problems)"),
        "parser": (ColumnKind.TEXT, "t.parser"),
        "parser_version": (ColumnKind.TEXT, "t.parser_version"),
        "created_at": (ColumnKind.TIME, micro("t.created_at")),
    },
    "FROM products t JOIN domains d ON d.id = t.domain_id",
    has_versions=True,
)
PRICE_HISTORY = Dataset(
    "price_history",
    "t.recorded_at",
    {
        "product_id": (ColumnKind.INT, "t.product_id"),
        "price": (ColumnKind.MONEY, "t.price"),
        "list_price": (ColumnKind.MONEY, "t.list_price"),
        "currency": (ColumnKind.TEXT, "t.currency"),
        "availability": (ColumnKind.TEXT, "t.availability"),
    },
    "FROM price_history t",
)
PAGES = Dataset(
    "pages",
    "t.finished_at",
    {
        "task_id": (ColumnKind.INT, "t.task_id"),
        "domain": (ColumnKind.TEXT, "d.domain_name"),
        "proxy": (
            ColumnKind.TEXT,
            "p.proxy_protocol || '://' || p.proxy_url || ':' || p.proxy_port",
        ),
        "outcome": (ColumnKind.TEXT, "t.outcome"),
        "error_kind": (ColumnKind.TEXT, "t.error_kind"),
        "http_status": (ColumnKind.INT, "t.http_status"),
        "attempt": (ColumnKind.INT, "t.attempt"),
        "duration_ms": (ColumnKind.INT, "t.duration_ms"),
        "size": (ColumnKind.INT, "t.size"),
        # of site crawls alone; there `attempt` is the number of attempts
        "job_id": (ColumnKind.TEXT, "NULL"),
        "url": (ColumnKind.TEXT, "NULL"),
        "content_type": (ColumnKind.TEXT, "NULL"),
    },
    """
    FROM task_attempts t
    LEFT JOIN domains d ON d.id = t.domain_id
    LEFT JOIN proxies p ON p.id = t.proxy_id
    """,
    condition="t.stage = 'download'",
    # the ID of a page of a site crawl is part of its URL's hash
    key=("id", "at", "job_id"),
)
EXTRACTIONS = Dataset(
    "extractions",
    "t.created_at",
    {
        "task_id": (ColumnKind.INT, "t.task_id"),
        "product_id": (ColumnKind.INT, "t.product_id"),
        "domain": (ColumnKind.TEXT, "d.domain_name"),
        "parser": (ColumnKind.TEXT, "t.parser"),
        "parser_version": (ColumnKind.TEXT, "t.parser_version"),
        "role": (ColumnKind.TEXT, "t.role"),
        "outcome": (ColumnKind.TEXT, "t.outcome"),
        "confidence": (ColumnKind.FLOAT, "t.confidence"),
        "problems": (ColumnKind.INT, "jsonb_array_length(t.problems)"),
    },
    "FROM extractions t LEFT JOIN domains d ON d.id = t.domain_id",
)
PROXIES = Dataset(
    "proxies",
    "t.updated_at",
    {
        "address": (
            ColumnKind.TEXT,
            "t.proxy_protocol || '://' || t.proxy_url || ':' || t.proxy_port",
        ),
        "region": (ColumnKind.TEXT, "t.region"),
        # a price may have more digits than money has
        "cost_amount": (ColumnKind.FLOAT, "t.cost_amount::float8"),
        "cost_unit": (ColumnKind.TEXT, "t.cost_unit"),
        "cost_currency": (ColumnKind.TEXT, "t.cost_currency"),
        "created_at": (ColumnKind.TIME, micro("t.created_at")),
    },
    "FROM proxies t",
    has_versions=True,
)
PROXY_USAGE = Dataset(
    "proxy_usage",
    "t.updated_at",
    {
        "domain": (ColumnKind.TEXT, "t.domain_name"),
        "proxy_id": (ColumnKind.INT, "t.proxy_id"),
        "requests": (ColumnKind.INT, "t.requests"),
        "bytes": (ColumnKind.INT, "t.bytes"),
    },
    "FROM proxy_usage t",
    # A row of a day is written only on that day. Without this condition an index of a time would
    # be needed that changes every few seconds.
    condition="t.day >= (%(since)s::timestamptz AT TIME ZONE 'UTC')::date - 1",
    has_versions=True,
)

DATASETS = (PRODUCTS, PRICE_HISTORY, PAGES, EXTRACTIONS, PROXIES, PROXY_USAGE)
BY_NAME = {dataset.name: dataset for dataset in DATASETS}
