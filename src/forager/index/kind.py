"""Kinds of indexed rows, declared by the feature that owns the rows, and their index mappings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from forager.db.database import Connection
from forager.errors import ForagerError
from forager.index.store import enqueue_rows
from forager.outbox.message import Message

__all__ = ["enqueue_rows"]

SECTIONS = "sections"
PRODUCTS = "products"


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One document of an index, and the row that it is made from."""

    id: str
    ref_id: int
    body: bytes


@dataclass(frozen=True, slots=True)
class IndexKind:
    """How rows of one kind are read, and converted to entries of the index.

    The feature that owns the rows declares it, and calls `enqueue_rows` in each transaction that
    changes them. The feeder then sends the entries, each at least once, and in any order.
    """

    name: str
    # the table of the rows
    table: LiteralString
    properties: dict[str, Any]
    # the approximate size of rows in bytes, without rows that were deleted
    sizes: Callable[[Connection, Sequence[int]], Awaitable[dict[int, int]]]
    select: Callable[[Connection, Sequence[int]], Awaitable[Sequence[Any]]]
    # slow: it runs beside the event loop
    entry: Callable[[Any], IndexEntry]
    # the entries of a row that was deleted
    gone: Callable[[Message], Sequence[str]]


class EngineUnavailable(ForagerError):
    """The search engine does not answer."""


class IndexMissing(EngineUnavailable):
    """The search engine does not have this index."""


class EngineRefused(EngineUnavailable):
    """The search engine does not understand what it is asked."""


class EngineBusy(EngineUnavailable):
    """The search engine is overloaded."""


LAYOUT = 4
# entries that are read for one search
WINDOW = 10_000

# names such as `asyncio.gather` and `--no-verify` are found whole and by their parts
_WORDS: dict[str, Any] = {
    "type": "text",
    "analyzer": "forager_text",
    "search_analyzer": "forager_query",
}
_KEYWORD: dict[str, Any] = {"type": "keyword", "ignore_above": 1000}
_CODE: dict[str, Any] = {"type": "keyword", "normalizer": "lower_case", "ignore_above": 1000}

SECTION_FIELDS: dict[str, Any] = {
    "document_id": {"type": "long"},
    "position": {"type": "integer"},
    "source": {"type": "keyword"},
    "source_number": {"type": "long"},
    "path": _KEYWORD,
    "url": _KEYWORD,
    "title": _WORDS,
    "heading": _WORDS,
    "content": _WORDS,
}

PRODUCT_FIELDS: dict[str, Any] = {
    "product_id": {"type": "long"},
    "product_name": {"type": "text", "analyzer": "standard", "copy_to": "text"},
    "description": {"type": "text", "analyzer": "standard", "copy_to": "text"},
    "brand": {**_KEYWORD, "copy_to": "text", "fields": {"code": _CODE}},
    "category": {**_KEYWORD, "copy_to": "text"},
    "domain_name": _KEYWORD,
    "created_at": {"type": "date"},
    "updated_at": {"type": "date"},
    "domain_id": {"type": "long"},
    "price": {"type": "double"},
    "currency": {"type": "keyword"},
    "availability": {"type": "keyword"},
    "rating": {"type": "double"},
    "sku": _CODE,
    "gtin": _CODE,
    # all texts of the product
    "text": _WORDS,
}

_PARTS = {
    "type": "word_delimiter_graph",
    "preserve_original": True,
    "stem_english_possessive": True,
}
_ENDINGS = ["lowercase", "asciifolding", "kstem"]
_SETTINGS: dict[str, Any] = {
    # the writer refreshes, and acknowledges a message only then
    "refresh_interval": "-1",
    # a deleted entry keeps its version for this long: an old message finds it deleted
    "gc_deletes": "1h",
    # one node is enough, two keep a copy
    "auto_expand_replicas": "0-1",
    "analysis": {
        "filter": {"name_parts": _PARTS},
        "normalizer": {"lower_case": {"type": "custom", "filter": ["lowercase"]}},
        "analyzer": {
            "forager_text": {
                "tokenizer": "whitespace",
                "filter": ["name_parts", "flatten_graph", *_ENDINGS],
            },
            "forager_query": {"tokenizer": "whitespace", "filter": ["name_parts", *_ENDINGS]},
        },
    },
}


def template(pattern: str, properties: dict[str, Any]) -> dict[str, Any]:
    """An index template: every index whose name fits the pattern is made like this."""
    return {
        "index_patterns": [pattern],
        "priority": 200,
        "template": {
            "settings": {"index": _SETTINGS},
            "mappings": {
                "dynamic": "strict",
                "_meta": {"layout": LAYOUT},
                "properties": properties,
            },
        },
        "_meta": {"description": "Forager"},
    }
