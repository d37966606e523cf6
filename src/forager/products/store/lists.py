"""SQL of product lists and product search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, LiteralString

from psycopg.rows import dict_row

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples, Values
from forager.db.text_search import quoted
from forager.products.content import gtin_mark, sku_mark
from forager.products.filters import Filters, ListPlace, ProductOrder
from forager.products.product import ListedProduct

_LISTED: LiteralString = """
    p.id, p.url, d.domain_name AS domain, p.product_name AS name, p.price, p.list_price,
    p.currency, p.availability, p.rating, p.review_count, p.brand, p.category, p.sku, p.gtin,
    jsonb_array_length(p.problems) AS problems, p.created_at, p.updated_at, p.last_seen_at,
    p.price_changed_at, p.price_change,
    (SELECT t.failing_since FROM crawl_tasks t WHERE t.id = p.crawl_task_id) AS failing_since
"""
# columns of exports that lists do not have
_MORE_COLUMNS: dict[str, LiteralString] = {
    "mpn": "p.metadata ->> 'mpn'",
    "shop_product_id": "p.metadata ->> 'product_id'",
    "shop_variant_id": "p.metadata ->> 'variant_id'",
    "final_url": "p.metadata ->> 'final_url'",
    "description": "p.description",
    "variants": "p.variants::text",
    "problem_details": "p.problems::text",
    "evidence": "p.evidence::text",
    "language": "p.language",
    "parser": "p.parser",
    "parser_version": "p.parser_version",
    "task_id": "p.crawl_task_id",
    "price_history": """
        (SELECT jsonb_agg(to_jsonb(h) - 'product_id' ORDER BY h.recorded_at, h.id)
           FROM price_history h WHERE h.product_id = p.id)::text
    """,
}

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
    "changed_since": "p.updated_at >= %(changed_since)s",
    # A product that waits for a visit is not unseen, however long no worker ran.
    "not_seen_since": """
        greatest(p.last_seen_at, p.restored_at) < %(not_seen_since)s
        AND NOT EXISTS (
            SELECT FROM crawl_tasks t
             WHERE t.id = p.crawl_task_id AND t.status <> 'failed'
               AND (t.status <> 'completed' OR t.completed_at <= p.last_seen_at)
        )
    """,
    # both are lexemes of the search vector, which has an index
    "sku": "p.tsv @@ %(sku)s::tsquery",
    "gtin": "p.tsv @@ %(gtin)s::tsquery",
}


def filtered(filters: Filters) -> tuple[LiteralString, dict[str, Any]]:
    """The conditions of the filters that are set, and their values."""
    conditions: LiteralString = "true"
    values: dict[str, Any] = {}
    for name, condition in _CONDITIONS.items():
        value = getattr(filters, name)
        if value is not None and value != ():
            conditions += " AND " + condition
            values[name] = list(value) if isinstance(value, tuple) else value
    if filters.domain_ids:
        conditions += " AND " + _of_domains(filters.domain_ids, values)
    if filters.has_problems is not None:
        # in the words of the partial index, so that the planner uses it
        conditions += " AND p.problems " + ("<>" if filters.has_problems else "=") + " '[]'"
    if filters.sku is not None:
        values["sku"] = quoted(sku_mark(filters.sku))
    if filters.gtin is not None:
        values["gtin"] = quoted(gtin_mark(filters.gtin))
    return conditions, values


def _of_domains(ids: tuple[int, ...], values: dict[str, Any]) -> LiteralString:
    """One domain is compared with `=`, for which an index has the products in order."""
    values["domains"] = ids[0] if len(ids) == 1 else list(ids)
    return "p.domain_id = %(domains)s" if len(ids) == 1 else "p.domain_id = ANY(%(domains)s)"


# --- lists -----------------------------------------------------------------------------------

# products whose price never changed are between drops and rises
_CHANGE: LiteralString = "(CASE WHEN p.price IS NOT NULL THEN coalesce(p.price_change, 0) END)"
_KEYS: dict[ProductOrder, tuple[LiteralString, LiteralString, LiteralString]] = {
    ProductOrder.NEWEST: ("p.created_at", "<", "DESC"),
    ProductOrder.UPDATED: ("p.updated_at", "<", "DESC"),
    ProductOrder.NAME: ("left(p.product_name, 200)", ">", "ASC"),
    ProductOrder.CHEAPEST: ("p.price", ">", "ASC"),
    ProductOrder.DEAREST: ("p.price", "<", "DESC"),
    ProductOrder.DROPS: (_CHANGE, ">", "ASC"),
    ProductOrder.RISES: (_CHANGE, "<", "DESC"),
}


async def select_products(
    connection: Connection,
    filters: Filters,
    order: ProductOrder,
    *,
    after: ListPlace | None,
    limit: int,
) -> list[ListedProduct]:
    """Products after a place, without those that have no value to order by."""
    key, beyond, direction = _KEYS[order]
    conditions, values = filtered(filters)
    if after is not None:
        conditions += f" AND ({key}, p.id) {beyond} (%(value)s, %(id)s)"
        values |= {"value": after.value, "id": after.id}
    return await _listed(
        connection,
        f"{conditions} AND {key} IS NOT NULL",
        f"{key} {direction}, p.id {direction}",
        {**values, "limit": limit},
    )


async def select_by_id(
    connection: Connection, filters: Filters, *, after: int, limit: int, unpriced: bool = False
) -> list[ListedProduct]:
    """Products by ID; or those without a price, which orders by price or change list last."""
    conditions, values = filtered(filters)
    if unpriced:
        conditions += " AND p.price IS NULL"
    return await _listed(
        connection,
        f"{conditions} AND p.id > %(id)s",
        "p.id",
        {**values, "id": after, "limit": limit},
    )


async def select_exported(
    connection: Connection, ids: Sequence[int], columns: Sequence[str]
) -> dict[int, dict[str, Any]]:
    """Columns of products that lists do not have, by product."""
    more: LiteralString = ", ".join(f"{_MORE_COLUMNS[name]} AS {name}" for name in columns)
    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(f"SELECT p.id, {more} FROM products p WHERE p.id = ANY(%s)", (list(ids),))
    return {row["id"]: row for row in await cursor.fetchall()}


async def delete_unseen(connection: Connection, ids: Sequence[int], since: datetime) -> list[int]:
    """Delete those of the products that were not seen since; return their ids."""
    condition, values = filtered(Filters(not_seen_since=since))
    return await Values(connection).all(
        f"DELETE FROM products p WHERE p.id = ANY(%(ids)s) AND {condition} RETURNING p.id",
        {**values, "ids": list(ids)},
    )


async def _listed(
    connection: Connection, conditions: LiteralString, order: LiteralString, values: dict[str, Any]
) -> list[ListedProduct]:
    return await Rows(connection, ListedProduct).all(
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


async def count_products(connection: Connection, filters: Filters) -> int:
    """Number of products that match the filters."""
    conditions, values = filtered(filters)
    return await Values(connection, int).one(
        f"SELECT count(*) FROM products p WHERE {conditions}", values
    )


async def select_matching(
    connection: Connection, filters: Filters, product_ids: Sequence[int]
) -> list[int]:
    """Those of the products that match the filters."""
    conditions, values = filtered(filters)
    return await Values(connection).all(
        f"SELECT p.id FROM products p WHERE p.id = ANY(%(ids)s) AND {conditions} ORDER BY p.id",
        {**values, "ids": list(product_ids)},
    )


# --- search ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as parsed by one text search configuration; empty if it finds no word."""

    config: str
    words: str
    # without excluded words, which would make all ranks equal
    wanted: str


async def read_words(connection: Connection, typed: str, configs: list[str]) -> list[ParsedQuery]:
    """A query as each of the text search configurations reads it."""
    return await Rows(connection, ParsedQuery).all(
        """
        SELECT config, words::text, querytree(words) AS wanted
          FROM (SELECT config, websearch_to_tsquery(config::regconfig, %s) AS words
                  FROM unnest(%s::text[]) AS u (config)) r
         ORDER BY config
        """,
        (typed, configs),
    )


@dataclass(frozen=True, slots=True)
class RankedProduct:
    """A product that matches a query, and how well."""

    id: int
    score: float
    # how many matched, up to the cap
    matched: int


@dataclass(frozen=True, slots=True)
class RankingQuery:
    """The query. Each product is ranked by the configuration of its language."""

    match: str
    # codes that identify one product, which ranks first
    exact: str
    by_language: Mapping[str, str]
    otherwise: str


async def rank_products(
    connection: Connection,
    filters: Filters,
    question: RankingQuery,
    *,
    after: ListPlace | None,
    cap: int,
    limit: int,
) -> list[RankedProduct]:
    """The best of the first `cap` matches."""
    conditions, values = filtered(filters)
    return await Rows(connection, RankedProduct).all(
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


async def select_listed(connection: Connection, ids: list[int]) -> dict[int, ListedProduct]:
    """Products as lists show them, by ID."""
    found = await _listed(
        connection, "p.id = ANY(%(ids)s)", "p.id", {"ids": ids, "limit": len(ids)}
    )
    return {product.id: product for product in found}


async def select_visible(connection: Connection, ids: Sequence[int], filters: Filters) -> set[int]:
    """Those of the products that exist and match the filters."""
    conditions, values = filtered(filters)
    return await Values(connection).as_set(
        f"SELECT p.id FROM products p WHERE p.id = ANY(%(ids)s) AND {conditions}",
        {**values, "ids": list(ids)},
    )


@dataclass(frozen=True, slots=True)
class IndexedProduct:
    """A product as a search engine gets it."""

    id: int
    domain_id: int
    domain_name: str
    product_name: str
    description: str | None
    brand: str | None
    category: str | None
    price: Decimal | None
    currency: str | None
    availability: str | None
    rating: Decimal | None
    created_at: datetime
    updated_at: datetime
    sku: str | None
    gtin: str | None


async def select_sizes(connection: Connection, ids: Sequence[int]) -> dict[int, int]:
    """The approximate size of each product that exists."""
    return await Tuples(connection).as_dict(
        """
        SELECT id, coalesce(octet_length(description), 0) + 1000
          FROM products WHERE id = ANY(%s) ORDER BY id
        """,
        (list(ids),),
    )


async def select_indexed(connection: Connection, ids: Sequence[int]) -> list[IndexedProduct]:
    """Products as a search engine gets them; those that are gone are missing."""
    return await Rows(connection, IndexedProduct).all(
        """
        SELECT p.id, p.domain_id, d.domain_name, p.product_name, p.description, p.brand,
               p.category, p.price, p.currency, p.availability, p.rating, p.created_at,
               p.updated_at, p.sku, p.gtin
          FROM products p
          JOIN domains d ON d.id = p.domain_id
         WHERE p.id = ANY(%s)
         ORDER BY p.id
        """,
        (list(ids),),
    )
