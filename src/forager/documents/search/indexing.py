"""Sections as entries of a search engine: PostgreSQL's lexemes and their positions."""

from __future__ import annotations

from typing import Any

import orjson

from forager.documents.store import words as store
from forager.index import kind
from forager.index.kind import SECTIONS, Entry, Kind
from forager.index.tsquery import words_of
from forager.outbox.message import Message

# characters of a path that the engine compares
PATH_LENGTH = 500


def entry_of(section: dict[str, Any]) -> Entry:
    body = section | {
        "path": section["path"][:PATH_LENGTH],
        "head_words": words_of(section["head_words"]),
        "words": words_of(section["words"]),
    }
    document_id = section["document_id"]
    entry_id = _entry_id(document_id, section["position"])
    return Entry(entry_id, document_id, orjson.dumps(body))


def _gone(message: Message) -> list[str]:
    return [_entry_id(message.ref_id, position) for position in range(sum(message.payload or ()))]


def _entry_id(document_id: int, position: int) -> str:
    return f"{document_id}-{position}"


INDEXED_SECTIONS = Kind(
    name=SECTIONS,
    table="documents",
    properties=kind.SECTION_FIELDS,
    sizes=store.select_sizes,
    select=store.select_indexed,
    entry=entry_of,
    gone=_gone,
)
