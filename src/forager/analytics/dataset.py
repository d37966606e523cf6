"""Datasets of the lake: their columns and types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """A kind of value, by the name that ClickHouse has for it."""

    INT = "Int64"
    FLOAT = "Float64"
    MONEY = "Decimal(14, 4)"
    RATING = "Decimal(3, 2)"
    TEXT = "String"
    TIME = "DateTime64(6, 'UTC')"


@dataclass(frozen=True, slots=True)
class Dataset:
    """`id` and `at` are the first columns of each, and the order of its rows."""

    name: str
    columns: Mapping[str, Kind]
    # a row that changes comes again: the newest of an id counts
    has_versions: bool = False
    # the unique key of rows in ClickHouse
    key: tuple[str, ...] = ("at", "id")


def column_types(dataset: Dataset) -> dict[str, str]:
    """Of each column its type in ClickHouse; only the first two are always known."""
    return {
        name: kind.value if name in ("id", "at") else f"Nullable({kind})"
        for name, kind in dataset.columns.items()
    }


_KEY = {"id": Kind.INT, "at": Kind.TIME}

PRODUCTS = Dataset(
    "products",
    _KEY
    | {
        "domain": Kind.TEXT,
        "url": Kind.TEXT,
        "name": Kind.TEXT,
        "brand": Kind.TEXT,
        "category": Kind.TEXT,
        "sku": Kind.TEXT,
        "gtin": Kind.TEXT,
        "price": Kind.MONEY,
        "list_price": Kind.MONEY,
        "currency": Kind.TEXT,
        "availability": Kind.TEXT,
        "rating": Kind.RATING,
        "review_count": Kind.INT,
        "problems": Kind.INT,
        "parser": Kind.TEXT,
        "parser_version": Kind.TEXT,
        "created_at": Kind.TIME,
    },
    has_versions=True,
    key=("id",),
)
PRICE_HISTORY = Dataset(
    "price_history",
    _KEY
    | {
        "product_id": Kind.INT,
        "price": Kind.MONEY,
        "list_price": Kind.MONEY,
        "currency": Kind.TEXT,
        "availability": Kind.TEXT,
    },
)
PAGES = Dataset(
    "pages",
    _KEY
    | {
        "task_id": Kind.INT,
        "domain": Kind.TEXT,
        "proxy": Kind.TEXT,
        "outcome": Kind.TEXT,
        "error_kind": Kind.TEXT,
        "http_status": Kind.INT,
        "attempt": Kind.INT,
        "duration_ms": Kind.INT,
        "size": Kind.INT,
        # of site crawls alone; there `attempt` is how many there were
        "job_id": Kind.TEXT,
        "url": Kind.TEXT,
        "content_type": Kind.TEXT,
    },
    # the id of a page of a site crawl is part of its URL's hash
    key=("at", "id", "ifNull(job_id, '')"),
)
EXTRACTIONS = Dataset(
    "extractions",
    _KEY
    | {
        "task_id": Kind.INT,
        "product_id": Kind.INT,
        "domain": Kind.TEXT,
        "parser": Kind.TEXT,
        "parser_version": Kind.TEXT,
        "role": Kind.TEXT,
        "outcome": Kind.TEXT,
        "confidence": Kind.FLOAT,
        "problems": Kind.INT,
    },
)
PROXIES = Dataset(
    "proxies",
    _KEY
    | {
        "address": Kind.TEXT,
        "region": Kind.TEXT,
        # a price may have more digits than money has
        "cost_amount": Kind.FLOAT,
        "cost_unit": Kind.TEXT,
        "cost_currency": Kind.TEXT,
        "created_at": Kind.TIME,
    },
    has_versions=True,
    key=("id",),
)
PROXY_USAGE = Dataset(
    "proxy_usage",
    # a row of a day is written only on that day
    _KEY
    | {
        "domain": Kind.TEXT,
        "proxy_id": Kind.INT,
        "requests": Kind.INT,
        "bytes": Kind.INT,
    },
    has_versions=True,
    key=("id",),
)

DATASETS = (PRODUCTS, PRICE_HISTORY, PAGES, EXTRACTIONS, PROXIES, PROXY_USAGE)
