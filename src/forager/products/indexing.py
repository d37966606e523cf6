"""Products as entries of a search engine, and queries for them.

PostgreSQL checks every candidate again: a filter here only removes products that cannot match.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import orjson

from forager.index import kind
from forager.index.engine import View
from forager.index.kind import PRODUCTS, Entry, Kind
from forager.index.tsquery import cut, engine_query, words_of
from forager.outbox.message import Message
from forager.products.content import CATEGORY_SEPARATOR, gtin_mark, sku_mark
from forager.products.filters import Filters
from forager.products.store import lists as store
from forager.products.store.lists import IndexedProduct, Question

# the precision of times in an engine
TIME_STEP = timedelta(seconds=1)
KEY_LENGTH = 500


def entry_of(product: IndexedProduct) -> Entry:
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
        "brand_key": None if product.brand is None else _key(product.brand),
        "category_steps": _steps(product.category or ""),
        "words": words_of(product.words),
    }
    return Entry(str(product.id), product.id, orjson.dumps(body))


def _gone(message: Message) -> list[str]:
    return [str(message.ref_id)]


def _key(text: str) -> str:
    return text.lower()[:KEY_LENGTH]


def _steps(category: str) -> list[str]:
    return [_key(step) for step in category.split(CATEGORY_SEPARATOR) if step]


INDEXED_PRODUCTS = Kind(
    name=PRODUCTS,
    table="products",
    properties=kind.PRODUCT_FIELDS,
    sizes=store.select_sizes,
    select=store.select_indexed,
    entry=entry_of,
    gone=_gone,
)


async def candidates(
    view: View, question: Question, filters: Filters, *, start: int, size: int
) -> list[int]:
    """Ids of products that may match, the best first."""
    query = {
        "bool": {
            "must": [engine_query(question.match, "words")],
            "filter": list(_filters(filters)),
        }
    }
    found = await view.find(query, ("product_id",), start=start, size=size)
    return [product_id for (product_id,) in found]


def _filters(filters: Filters) -> Iterator[dict[str, Any]]:
    if filters.domain_ids:
        yield {"terms": {"domain_id": list(filters.domain_ids)}}
    if filters.brand is not None:
        yield {"term": {"brand_key": _key(filters.brand)}}
    for step in _steps(filters.category or ""):
        yield {"term": {"category_steps": step}}
    if filters.availability:
        yield {"terms": {"availability": list(filters.availability)}}
    if filters.currency is not None:
        yield {"term": {"currency": filters.currency}}
    yield from _ranges(filters)
    if filters.sku is not None:
        yield {"term": {"words": cut(sku_mark(filters.sku))}}
    if filters.gtin is not None:
        yield {"term": {"words": cut(gtin_mark(filters.gtin))}}


def _ranges(filters: Filters) -> Iterator[dict[str, Any]]:
    if filters.min_price is not None:
        yield {"range": {"price": {"gte": float(filters.min_price)}}}
    if filters.max_price is not None:
        yield {"range": {"price": {"lte": float(filters.max_price)}}}
    if filters.min_rating is not None:
        yield {"range": {"rating": {"gte": float(filters.min_rating)}}}
    if filters.changed_since is not None:
        since = filters.changed_since - TIME_STEP
        yield {"range": {"updated_at": {"gte": since.isoformat()}}}
