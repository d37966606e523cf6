"""Sections as entries of a search engine, and queries for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from forager.documents.store import words as store
from forager.index import kind
from forager.index.engine import Found, IndexView
from forager.index.kind import SECTIONS, IndexEntry, IndexKind
from forager.index.query import all_of, words_query
from forager.outbox.message import Message

# characters of a path that the engine compares
PATH_LENGTH = 500
FIELDS = ("heading^3", "title^2", "content")
# with more sources than this, only PostgreSQL filters by source
MAX_SOURCES = 1_000


def entry_of(section: dict[str, Any]) -> IndexEntry:
    body = section | {"path": section["path"][:PATH_LENGTH]}
    document_id = section["document_id"]
    entry_id = _entry_id(document_id, section["position"])
    return IndexEntry(entry_id, document_id, orjson.dumps(body))


def _gone(message: Message) -> list[str]:
    return [_entry_id(message.ref_id, position) for position in range(sum(message.payload or ()))]


def _entry_id(document_id: int, position: int) -> str:
    return f"{document_id}-{position}"


INDEXED_SECTIONS = IndexKind(
    name=SECTIONS,
    table="documents",
    properties=kind.SECTION_FIELDS,
    sizes=store.select_sizes,
    select=store.select_indexed,
    entry=entry_of,
    gone=_gone,
)


async def find_sections(
    view: IndexView,
    typed: str,
    sources: Sequence[int],
    path: str | None,
    *,
    size: int,
    after: Found | None,
) -> list[Found]:
    """Sections by document and position, the best first."""
    query = all_of(words_query(typed, FIELDS), list(_filters(sources, path)))
    return await view.find(query, ("document_id", "position"), size=size, after=after)


def _filters(sources: Sequence[int], path: str | None) -> Iterator[dict[str, Any]]:
    if len(sources) <= MAX_SOURCES:
        yield {"terms": {"source_number": list(sources)}}
    if path is not None:
        yield {"prefix": {"path": path[:PATH_LENGTH]}}
