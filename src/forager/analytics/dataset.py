"""Datasets of the lake: their columns, the types of these, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import LiteralString


class Kind(StrEnum):
    """A kind of value, by the name that ClickHouse has for it."""

    INT = "Int64"
    FLOAT = "Float64"
    MONEY = "Decimal(14, 4)"
    RATING = "Decimal(3, 2)"
    TEXT = "String"
    TIME = "DateTime64(6, 'UTC')"


Columns = Mapping[str, tuple[Kind, LiteralString]]


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
    # the unique key of rows in ClickHouse
    key: tuple[str, ...] = ("at", "id")

    @property
    def columns(self) -> dict[str, Kind]:
        named = {name: kind for name, (kind, _) in self.values.items()}
        return {"id": Kind.INT, "at": Kind.TIME, **named}


def column_types(dataset: Dataset) -> dict[str, str]:
    """The ClickHouse type of each column; all but the first two may be NULL."""
    return {
        name: kind.value if name in ("id", "at") else f"Nullable({kind})"
        for name, kind in dataset.columns.items()
    }


# Texts are cut, so that no row outgrows what the reader of CSV takes at a time.
PRODUCTS = Dataset(
    "products",
    "t.updated_at",
    {
        "domain": (Kind.TEXT, "d.domain_name"),
        "url": (Kind.TEXT, "left(t.url, 4000)"),
        "name": (Kind.TEXT, "left(t.product_name, 1000)"),
        "brand": (Kind.TEXT, "left(t.brand, 500)"),
        "category": (Kind.TEXT, "left(t.category, 1000)"),
        "sku": (Kind.TEXT, "left(t.sku, 200)"),
        "gtin": (Kind.TEXT, "left(t.gtin, 200)"),
        "price": (Kind.MONEY, "t.price"),
        "list_price": (Kind.MONEY, "t.list_price"),
        "currency": (Kind.TEXT, "t.currency"),
        "availability": (Kind.TEXT, "t.availability"),
        "rating": (Kind.RATING, "t.rating"),
        "review_count": (Kind.INT, "t.review_count"),
        "problems": (Kind.INT, "jsonb_array_length(t.problems)"),
        "parser": (Kind.TEXT, "t.parser"),
        "parser_version": (Kind.TEXT, "t.parser_version"),
        "created_at": (Kind.TIME, micro("t.created_at")),
    },
    "FROM products t JOIN domains d ON d.id = t.domain_id",
    has_versions=True,
    key=("id",),
)
PRICE_HISTORY = Dataset(
    "price_history",
    "t.recorded_at",
    {
        "product_id": (Kind.INT, "t.product_id"),
        "price": (Kind.MONEY, "t.price"),
        "list_price": (Kind.MONEY, "t.list_price"),
        "currency": (Kind.TEXT, "t.currency"),
        "availability": (Kind.TEXT, "t.availability"),
    },
    "FROM price_history t",
)
PAGES = Dataset(
    "pages",
    "t.finished_at",
    {
        "task_id": (Kind.INT, "t.task_id"),
        "domain": (Kind.TEXT, "d.domain_name"),
        "proxy": (Kind.TEXT, "p.proxy_protocol || '://' || p.proxy_url || ':' || p.proxy_port"),
        "outcome": (Kind.TEXT, "t.outcome"),
        "error_kind": (Kind.TEXT, "t.error_kind"),
        "http_status": (Kind.INT, "t.http_status"),
        "attempt": (Kind.INT, "t.attempt"),
        "duration_ms": (Kind.INT, "t.duration_ms"),
        "size": (Kind.INT, "t.size"),
        # of site crawls alone; there `attempt` is the number of attempts
        "job_id": (Kind.TEXT, "NULL"),
        "url": (Kind.TEXT, "NULL"),
        "content_type": (Kind.TEXT, "NULL"),
    },
    """
    FROM task_attempts t
    LEFT JOIN domains d ON d.id = t.domain_id
    LEFT JOIN proxies p ON p.id = t.proxy_id
    """,
    condition="t.stage = 'download'",
    # the ID of a page of a site crawl is part of its URL's hash
    key=("at", "id", "ifNull(job_id, '')"),
)
EXTRACTIONS = Dataset(
    "extractions",
    "t.created_at",
    {
        "task_id": (Kind.INT, "t.task_id"),
        "product_id": (Kind.INT, "t.product_id"),
        "domain": (Kind.TEXT, "d.domain_name"),
        "parser": (Kind.TEXT, "t.parser"),
        "parser_version": (Kind.TEXT, "t.parser_version"),
        "role": (Kind.TEXT, "t.role"),
        "outcome": (Kind.TEXT, "t.outcome"),
        "confidence": (Kind.FLOAT, "t.confidence"),
        "problems": (Kind.INT, "jsonb_array_length(t.problems)"),
    },
    "FROM extractions t LEFT JOIN domains d ON d.id = t.domain_id",
)
PROXIES = Dataset(
    "proxies",
    "t.updated_at",
    {
        "address": (Kind.TEXT, "t.proxy_protocol || '://' || t.proxy_url || ':' || t.proxy_port"),
        "region": (Kind.TEXT, "t.region"),
        # a price may have more digits than money has
        "cost_amount": (Kind.FLOAT, "t.cost_amount::float8"),
        "cost_unit": (Kind.TEXT, "t.cost_unit"),
        "cost_currency": (Kind.TEXT, "t.cost_currency"),
        "created_at": (Kind.TIME, micro("t.created_at")),
    },
    "FROM proxies t",
    has_versions=True,
    key=("id",),
)
PROXY_USAGE = Dataset(
    "proxy_usage",
    "t.updated_at",
    {
        "domain": (Kind.TEXT, "t.domain_name"),
        "proxy_id": (Kind.INT, "t.proxy_id"),
        "requests": (Kind.INT, "t.requests"),
        "bytes": (Kind.INT, "t.bytes"),
    },
    "FROM proxy_usage t",
    # A row of a day is written only on that day. Without this condition an index of a time would
    # be needed that changes every few seconds.
    condition="t.day >= (%(at)s::timestamptz AT TIME ZONE 'UTC')::date - 1",
    has_versions=True,
    key=("id",),
)

DATASETS = (PRODUCTS, PRICE_HISTORY, PAGES, EXTRACTIONS, PROXIES, PROXY_USAGE)
