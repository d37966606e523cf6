"""SQL that reads products: lists by key, search, and everything about one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, LiteralString

from psycopg.rows import class_row, scalar_row

from forager.catalog.filters import Filters, Order, Place
from forager.catalog.search_terms import gtin_mark, quoted, sku_mark
from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class ListedProduct:
    """A product as a list shows it."""

    id: int
    url: str
    domain: str
    name: str
    price: Decimal | None
    list_price: Decimal | None
    currency: str | None
    availability: str | None
    rating: Decimal | None
    review_count: int | None
    brand: str | None
    category: str | None
    sku: str | None
    gtin: str | None
    # how many of its fields broke a rule
    problems: int
    created_at: datetime
    updated_at: datetime
    last_seen_at: datetime
    price_changed_at: datetime | None


_LISTED: LiteralString = """
    p.id, p.url, d.domain_name AS domain, p.product_name AS name, p.price, p.list_price,
    p.currency, p.availability, p.rating, p.review_count, p.brand, p.category, p.sku, p.gtin,
    jsonb_array_length(p.problems) AS problems, p.created_at, p.updated_at, p.last_seen_at,
    p.price_changed_at
"""

# --- filters ---------------------------------------------------------------------------------

_CONDITIONS: dict[str, LiteralString] = {
    "min_price": "p.price >= %(min_price)s",
    "max_price": "p.price <= %(max_price)s",
    "currency": "p.currency = %(currency)s",
    "availability": "p.availability = ANY(%(availability)s)",
    "min_rating": "p.rating >= %(min_rating)s",
    "brand": "lower(p.brand) = lower(%(brand)s)",
    "category": """
        position(lower(' > ' || %(category)s || ' > ') IN lower(' > ' || p.category || ' > ')) > 0
    """,
    "domain": "p.domain_id = (SELECT id FROM domains WHERE domain_name = %(domain)s)",
    "changed_since": "p.updated_at >= %(changed_since)s",
    # both are words of the search vector, which has an index
    "sku": "p.tsv @@ %(sku)s::tsquery",
    "gtin": "p.tsv @@ %(gtin)s::tsquery",
}


def _filtered(filters: Filters) -> tuple[LiteralString, dict[str, Any]]:
    """The conditions of the filters that are set, and their values."""
    conditions: LiteralString = "true"
    values: dict[str, Any] = {}
    for name, condition in _CONDITIONS.items():
        value = getattr(filters, name)
        if value is not None and value != ():
            conditions += " AND " + condition
            values[name] = list(value) if isinstance(value, tuple) else value
    if filters.has_problems is not None:
        # in the words of the partial index, or the planner would not know it again
        conditions += " AND p.problems " + ("<>" if filters.has_problems else "=") + " '[]'"
    if filters.sku is not None:
        values["sku"] = quoted(sku_mark(filters.sku))
    if filters.gtin is not None:
        values["gtin"] = quoted(gtin_mark(filters.gtin))
    return conditions, values


# --- lists -----------------------------------------------------------------------------------

_KEYS: dict[Order, tuple[LiteralString, LiteralString, LiteralString]] = {
    Order.NEWEST: ("p.created_at", "<", "DESC"),
    Order.UPDATED: ("p.updated_at", "<", "DESC"),
    Order.NAME: ("left(p.product_name, 200)", ">", "ASC"),
    Order.CHEAPEST: ("p.price", ">", "ASC"),
    Order.DEAREST: ("p.price", "<", "DESC"),
}


async def select_products(
    connection: Connection, filters: Filters, order: Order, *, after: Place | None, limit: int
) -> list[ListedProduct]:
    """Products that have a value to be ordered by, after a place."""
    key, beyond, direction = _KEYS[order]
    conditions, values = _filtered(filters)
    if after is not None:
        conditions += f" AND ({key}, p.id) {beyond} (%(value)s, %(id)s)"
        values |= {"value": after.value, "id": after.id}
    return await _listed(
        connection,
        f"{conditions} AND {key} IS NOT NULL",
        f"{key} {direction}, p.id {direction}",
        {**values, "limit": limit},
    )


async def select_unpriced(
    connection: Connection, filters: Filters, *, after: int, limit: int
) -> list[ListedProduct]:
    """Products without a price: those that orders by price put last."""
    conditions, values = _filtered(filters)
    return await _listed(
        connection,
        f"{conditions} AND p.price IS NULL AND p.id > %(id)s",
        "p.id",
        {**values, "id": after, "limit": limit},
    )


async def select_by_id(
    connection: Connection, filters: Filters, *, after: int, limit: int
) -> list[ListedProduct]:
    """Products in the order in which they were made, for exports."""
    conditions, values = _filtered(filters)
    return await _listed(
        connection,
        f"{conditions} AND p.id > %(id)s",
        "p.id",
        {**values, "id": after, "limit": limit},
    )


async def _listed(
    connection: Connection,
    conditions: LiteralString,
    order: LiteralString,
    values: dict[str, Any],
) -> list[ListedProduct]:
    cursor = connection.cursor(row_factory=class_row(ListedProduct))
    await cursor.execute(
        f"""
        SELECT {_LISTED}
          FROM products p
          JOIN domains d ON d.id = p.domain_id
         WHERE {conditions}
         ORDER BY {order}
         LIMIT %(limit)s
        """,
        values,
    )
    return await cursor.fetchall()


async def count_products(connection: Connection, filters: Filters) -> int:
    conditions, values = _filtered(filters)
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(f"SELECT count(*) FROM products p WHERE {conditions}", values)
    return await cursor.fetchone() or 0


async def domain_exists(connection: Connection, name: str) -> bool:
    cursor = await connection.execute("SELECT FROM domains WHERE domain_name = %s", (name,))
    return await cursor.fetchone() is not None


# --- search ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """What was typed, as one text search configuration reads it; empty if it finds no word."""

    config: str
    words: str
    # without what must not be there, which would make all ranks alike
    wanted: str


async def read_words(connection: Connection, typed: str, configs: list[str]) -> list[Reading]:
    cursor = connection.cursor(row_factory=class_row(Reading))
    await cursor.execute(
        """
        SELECT config, words::text, querytree(words) AS wanted
          FROM (SELECT config, websearch_to_tsquery(config::regconfig, %s) AS words
                  FROM unnest(%s::text[]) AS u (config)) r
         ORDER BY config
        """,
        (typed, configs),
    )
    return await cursor.fetchall()


@dataclass(frozen=True, slots=True)
class Ranked:
    id: int
    score: float
    # how many matched, up to the cap
    matched: int


@dataclass(frozen=True, slots=True)
class Question:
    """What to look for. Each product is ranked by the reading of its own language."""

    match: str
    # words that name one product, and win over all others
    exact: str
    by_language: Mapping[str, str]
    otherwise: str


async def rank_products(
    connection: Connection,
    filters: Filters,
    question: Question,
    *,
    after: Place | None,
    cap: int,
    limit: int,
) -> list[Ranked]:
    """The best of the first so many matches."""
    conditions, values = _filtered(filters)
    cursor = connection.cursor(row_factory=class_row(Ranked))
    await cursor.execute(
        f"""
        WITH reading AS MATERIALIZED (
            SELECT language, words::tsquery AS words
              FROM unnest(%(languages)s::text[], %(readings)s::text[]) AS u (language, words)
        ), hit AS MATERIALIZED (
            SELECT p.id,
                   (ts_rank(p.tsv, coalesce(reading.words, %(otherwise)s::tsquery), 1)
                    + (p.tsv @@ %(exact)s::tsquery)::int)::float8 AS score
              FROM (SELECT p.id, p.tsv, p.language
                      FROM products p
                     WHERE p.tsv @@ %(match)s::tsquery AND {conditions}
                     LIMIT %(cap)s) p
              LEFT JOIN reading
                ON reading.language = lower(split_part(replace(p.language, '_', '-'), '-', 1))
        )
        SELECT id, score, (SELECT count(*) FROM hit) AS matched
          FROM hit
         WHERE (score, id) < (%(score)s, %(id)s)
         ORDER BY score DESC, id DESC
         LIMIT %(limit)s
        """,
        {
            **values,
            "match": question.match,
            "exact": question.exact,
            "languages": list(question.by_language),
            "readings": list(question.by_language.values()),
            "otherwise": question.otherwise,
            "cap": cap,
            "limit": limit,
            "score": float("inf") if after is None else after.value,
            "id": 0 if after is None else after.id,
        },
    )
    return await cursor.fetchall()


async def select_listed(connection: Connection, ids: list[int]) -> dict[int, ListedProduct]:
    found = await _listed(
        connection, "p.id = ANY(%(ids)s)", "p.id", {"ids": ids, "limit": len(ids)}
    )
    return {product.id: product for product in found}


# --- one product -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProductRecord:
    """Everything that a product's row and its task say."""

    id: int
    url: str
    domain: str
    name: str
    description: str | None
    price: Decimal | None
    list_price: Decimal | None
    currency: str | None
    availability: str | None
    rating: Decimal | None
    review_count: int | None
    brand: str | None
    category: str | None
    sku: str | None
    gtin: str | None
    variants: list[dict[str, Any]]
    # by field: confidence and origin
    evidence: dict[str, dict[str, Any]]
    problems: list[dict[str, Any]]
    metadata: dict[str, Any]
    parser: str
    parser_version: str
    language: str | None
    created_at: datetime
    updated_at: datetime
    last_seen_at: datetime
    price_changed_at: datetime | None
    task_id: int | None
    task_status: str | None
    task_hold: str | None
    task_error: str | None
    crawl_frequency: timedelta | None
    next_crawl_at: datetime | None


async def select_product(connection: Connection, product_id: int) -> ProductRecord | None:
    cursor = connection.cursor(row_factory=class_row(ProductRecord))
    await cursor.execute(
        """
        SELECT p.id, p.url, d.domain_name AS domain, p.product_name AS name, p.description,
               p.price, p.list_price, p.currency, p.availability, p.rating, p.review_count,
               p.brand, p.category, p.sku, p.gtin, p.variants, p.evidence, p.problems,
               p.metadata, p.parser, p.parser_version, p.language, p.created_at, p.updated_at,
               p.last_seen_at, p.price_changed_at, t.id AS task_id, t.status AS task_status,
               coalesce(t.hold, d.task_hold, c.hold) AS task_hold,
               t.error_message AS task_error,
               coalesce(t.adapted_frequency, t.crawl_frequency, d.crawl_frequency)
                   AS crawl_frequency,
               CASE WHEN t.status = 'pending' THEN t.scheduled_at
                    WHEN t.status = 'completed' THEN t.next_crawl_at
               END AS next_crawl_at
          FROM products p
          JOIN domains d ON d.id = p.domain_id
          LEFT JOIN crawl_tasks t ON t.id = p.crawl_task_id
          LEFT JOIN task_control c ON true
         WHERE p.id = %s
        """,
        (product_id,),
    )
    return await cursor.fetchone()


async def select_product_id(connection: Connection, url_hash: bytes) -> int | None:
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute("SELECT id FROM products WHERE url_hash = %s", (url_hash,))
    return await cursor.fetchone()


async def product_exists(connection: Connection, product_id: int) -> bool:
    cursor = await connection.execute("SELECT FROM products WHERE id = %s", (product_id,))
    return await cursor.fetchone() is not None


async def select_task_status(connection: Connection, url_hash: bytes) -> str | None:
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute("SELECT status FROM crawl_tasks WHERE url_hash = %s", (url_hash,))
    return await cursor.fetchone()


@dataclass(frozen=True, slots=True)
class ImageRecord:
    url: str
    type: str
    position: int
    alt_text: str | None
    status: str
    problem: str | None
    width: int | None
    height: int | None
    file_size: int | None
    path: str | None


async def select_images(connection: Connection, product_id: int) -> list[ImageRecord]:
    cursor = connection.cursor(row_factory=class_row(ImageRecord))
    await cursor.execute(
        """
        SELECT image_url AS url, image_type AS type, position, alt_text, status, problem, width,
               height, file_size, image_path AS path
          FROM images
         WHERE product_id = %s
         ORDER BY position, id
         LIMIT 1000
        """,
        (product_id,),
    )
    return await cursor.fetchall()


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    stage: str
    outcome: str
    error_kind: str | None
    error_message: str | None
    http_status: int | None
    final_url: str | None
    finished_at: datetime
    duration_ms: int | None


async def select_attempts(connection: Connection, task_id: int, limit: int) -> list[AttemptRecord]:
    cursor = connection.cursor(row_factory=class_row(AttemptRecord))
    await cursor.execute(
        """
        SELECT stage, outcome, error_kind, error_message, http_status, final_url, finished_at,
               duration_ms
          FROM task_attempts
         WHERE task_id = %s
         ORDER BY id DESC
         LIMIT %s
        """,
        (task_id, limit),
    )
    return await cursor.fetchall()


@dataclass(frozen=True, slots=True)
class ExtractionRecord:
    id: int
    parser: str
    parser_version: str
    role: str
    outcome: str
    confidence: float | None
    problems: list[dict[str, Any]]
    error_message: str | None
    archive: str | None
    created_at: datetime


async def select_extractions(
    connection: Connection, task_id: int, limit: int
) -> list[ExtractionRecord]:
    cursor = connection.cursor(row_factory=class_row(ExtractionRecord))
    await cursor.execute(
        """
        SELECT id, parser, parser_version, role, outcome, confidence, problems, error_message,
               segment || ':' || segment_offset || ':' || segment_length AS archive, created_at
          FROM extractions
         WHERE task_id = %s
         ORDER BY id DESC
         LIMIT %s
        """,
        (task_id, limit),
    )
    return await cursor.fetchall()


# --- all of them ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counts:
    products: int
    priced: int
    with_problems: int
    domains: int
    added_today: int
    changed_today: int
    price_changes_today: int
    unseen_for_a_week: int


async def select_counts(connection: Connection) -> Counts:
    """One look at the table. To count its domains there would sort it by them."""
    cursor = connection.cursor(row_factory=class_row(Counts))
    await cursor.execute(
        """
        SELECT count(*) AS products,
               count(price) AS priced,
               (SELECT count(*) FROM products WHERE problems <> '[]') AS with_problems,
               (SELECT count(*) FROM domains d
                 WHERE EXISTS (SELECT FROM products p WHERE p.domain_id = d.id)) AS domains,
               count(*) FILTER (WHERE created_at > now() - interval '1 day') AS added_today,
               count(*) FILTER (WHERE updated_at > now() - interval '1 day'
                                  AND updated_at > created_at) AS changed_today,
               count(*) FILTER (WHERE price_changed_at > now() - interval '1 day')
                   AS price_changes_today,
               count(*) FILTER (WHERE last_seen_at < now() - interval '7 days')
                   AS unseen_for_a_week
          FROM products
        """
    )
    counts = await cursor.fetchone()
    assert counts is not None
    return counts


@dataclass(frozen=True, slots=True)
class Share:
    """How many products have one value of one column."""

    column: str
    value: str | None
    products: int


async def count_shares(connection: Connection) -> list[Share]:
    """Products by availability, by currency and by domain, in one look at the table."""
    cursor = connection.cursor(row_factory=class_row(Share))
    await cursor.execute(
        """
        SELECT g.kind AS column,
               CASE g.kind WHEN 'availability' THEN g.availability
                           WHEN 'currency' THEN g.currency
                           ELSE d.domain_name END AS value,
               g.products
          FROM (SELECT CASE WHEN grouping(availability) = 0 THEN 'availability'
                            WHEN grouping(currency) = 0 THEN 'currency'
                            ELSE 'domain' END AS kind,
                       availability, currency, domain_id, count(*) AS products
                  FROM products
                 GROUP BY GROUPING SETS ((availability), (currency), (domain_id))) g
          LEFT JOIN domains d ON d.id = g.domain_id
         ORDER BY g.products DESC, value
        """
    )
    return await cursor.fetchall()


async def count_by_rule(connection: Connection) -> list[tuple[str, str, int]]:
    """How often each rule is broken by what products show now."""
    cursor = await connection.execute(
        """
        SELECT problem->>'field', problem->>'rule', count(*)
          FROM products, jsonb_array_elements(problems) AS problem
         WHERE problems <> '[]'
         GROUP BY 1, 2
         ORDER BY 3 DESC, 1, 2
         LIMIT 100
        """
    )
    return [(row[0], row[1], row[2]) for row in await cursor.fetchall()]
