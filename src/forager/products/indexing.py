"""Products as entries of a search engine, and queries for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from forager.index import kind
from forager.index.engine import Found, IndexView
from forager.index.kind import PRODUCTS, IndexEntry, IndexKind
from forager.index.query import all_of, words_query
from forager.outbox.message import Message
from forager.products.filters import Filters
from forager.products.store import lists as store
from forager.products.store.lists import IndexedProduct


def entry_of(product: IndexedProduct) -> IndexEntry:
    body = {
        "product_id": product.id,
        "product_name": product.product_name,
        "description": product.description,
        "brand": product.brand,
        "category": product.category,
        "domain_name": product.domain_name,
        "created_at": product.created_at,
        "domain_id": product.domain_id,
        "updated_at": product.updated_at,
        "price": None if product.price is None else float(product.price),
        "currency": product.currency,
        "availability": product.availability,
        "rating": None if product.rating is None else float(product.rating),
        "sku": product.sku,
        "gtin": product.gtin,
    }
    return IndexEntry(str(product.id), product.id, orjson.dumps(body))


def _gone(message: Message) -> list[str]:
    return [str(message.ref_id)]


INDEXED_PRODUCTS = IndexKind(
    name=PRODUCTS,
    table="products",
    properties=kind.PRODUCT_FIELDS,
    sizes=store.select_sizes,
    select=store.select_indexed,
    entry=entry_of,
    gone=_gone,
)


async def find_products(
    view: IndexView, typed: str, filters: Filters, *, size: int, after: Found | None
) -> list[Found]:
    """Products by id, the best first; a SKU or GTIN identifies one, which is the best."""
    codes = [{"term": {name: {"value": typed, "boost": 100}}} for name in ("sku", "gtin")]
    query = {
        "bool": {
            "should": [words_query(typed, ("product_name^3", "text")), *codes],
            "minimum_should_match": 1,
        }
    }
    return await view.find(
        all_of(query, list(_filters(filters))),
        ("product_id",),
        size=size,
        after=after,
        newest_first=True,
    )


def _filters(filters: Filters) -> Iterator[dict[str, Any]]:
    """Filters that leave few entries; PostgreSQL checks all of them again."""
    if filters.domain_ids:
        yield {"terms": {"domain_id": list(filters.domain_ids)}}
    if filters.brand is not None:
        yield {"term": {"brand.code": filters.brand}}
    if filters.availability:
        yield {"terms": {"availability": list(filters.availability)}}
    if filters.currency is not None:
        yield {"term": {"currency": filters.currency}}
    if filters.min_price is not None:
        yield {"range": {"price": {"gte": float(filters.min_price)}}}
    if filters.max_price is not None:
        yield {"range": {"price": {"lte": float(filters.max_price)}}}
