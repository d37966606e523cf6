"""Kinds of indexed rows, declared by the feature that owns the rows, and their index mappings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from forager.db.database import Connection
from forager.errors import ForagerError
from forager.index.tsquery import LONGEST, SEPARATOR
from forager.outbox.message import Message

SECTIONS = "sections"
PRODUCTS = "products"


@dataclass(frozen=True, slots=True)
class Entry:
    """One document of an index, and the row that it is made from."""

    id: str
    ref_id: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Kind:
    """How rows of one kind are read, and converted to entries of the index."""

    name: str
    # the table of the rows
    table: LiteralString
    properties: dict[str, Any]
    # the approximate size of rows in bytes, without rows that were deleted
    sizes: Callable[[Connection, Sequence[int]], Awaitable[dict[int, int]]]
    select: Callable[[Connection, Sequence[int]], Awaitable[Sequence[Any]]]
    # slow: it runs beside the event loop
    entry: Callable[[Any], Entry]
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


LAYOUT = 3
# entries that one answer can list: from + size may not exceed it
WINDOW = 10_000

_WORDS: dict[str, Any] = {"type": "text", "analyzer": "lexemes", "index_options": "positions"}
_KEYWORD: dict[str, Any] = {"type": "keyword", "ignore_above": 1000}
# returned with an entry, but not searchable
_SHOWN: dict[str, Any] = {"type": "keyword", "index": False, "doc_values": False}

SECTION_FIELDS: dict[str, Any] = {
    "document_id": {"type": "long"},
    "position": {"type": "integer"},
    "source": {"type": "keyword"},
    "source_number": {"type": "long"},
    "config": {"type": "keyword"},
    "path": _KEYWORD,
    "url": _SHOWN,
    "title": _SHOWN,
    "heading": _SHOWN,
    "head_words": _WORDS,
    "words": _WORDS,
}

PRODUCT_FIELDS: dict[str, Any] = {
    # for queries by other programs
    "product_id": {"type": "long"},
    "product_name": {"type": "text", "analyzer": "standard"},
    "description": {"type": "text", "analyzer": "standard"},
    "brand": _KEYWORD,
    "category": _KEYWORD,
    "domain_name": _KEYWORD,
    "created_at": {"type": "date"},
    # for Forager
    "domain_id": {"type": "long"},
    "updated_at": {"type": "date"},
    "price": {"type": "double"},
    "currency": {"type": "keyword"},
    "availability": {"type": "keyword"},
    "rating": {"type": "double"},
    "brand_key": _KEYWORD,
    "category_steps": _KEYWORD,
    "words": _WORDS,
}

# made from what PostgreSQL has, and of no use to a reader
_LEFT_OUT = ["head_words", "words", "brand_key", "category_steps"]

_SETTINGS: dict[str, Any] = {
    # the writer refreshes, and acknowledges a message only then
    "refresh_interval": "-1",
    # a deleted entry keeps its version for this long: an old message finds it deleted
    "gc_deletes": "1h",
    # one node is enough, two keep a copy
    "auto_expand_replicas": "0-1",
    "max_result_window": WINDOW,
    "analysis": {
        "tokenizer": {
            "lines": {
                "type": "char_group",
                "tokenize_on_chars": [SEPARATOR],
                "max_token_length": 2 * LONGEST,  # in units of UTF-16
            }
        },
        "analyzer": {"lexemes": {"type": "custom", "tokenizer": "lines"}},
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
                "_source": {"excludes": _LEFT_OUT},
                "properties": properties,
            },
        },
        "_meta": {"description": "Forager, as PostgreSQL has it"},
    }
