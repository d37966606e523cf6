"""Search requests, hits, and the cursors between pages of hits."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from uuid import UUID

import orjson

from forager.db.cursor import LARGEST_ID
from forager.documents import names
from forager.errors import InvalidInput

MAX_HITS = 100
# the beginning of a note
UNEMBEDDED = "Meaning is not indexed yet"


class SectionKind(StrEnum):
    """Which sections a search finds: definitions, or indexes and tables of contents."""

    DEFINITION = names.DEFINITION
    LISTING = names.LISTING


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A query and its filters; `cursor` continues after an earlier page of the same search."""

    query: str
    # a source, or a name that several versions share: `python` finds in `python@3.13` as well
    source: str | None = None
    # only these versions of the source: 3.12, >=3.10,<3.13, 3.10-3.12 or 3.x
    version: str | None = None
    # a generation of that source by its number; by default the published one
    generation: int | None = None
    # only pages whose path has this prefix
    path: str | None = None
    # only pages in this language
    language: str | None = None
    kind: SectionKind | None = None
    # the reader's language, which comes first; that of the source by default
    prefers: str | None = None
    # only sources of this owner
    user_id: UUID | None = None
    limit: int = 10
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherSection:
    """Another section of a page that was found."""

    url: str
    heading: str
    section_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A page that was found, by its best section. All texts are plain, even if they look like HTML.

    `highlights` are the beginnings and ends of what matched, as offsets into `snippet`.
    """

    url: str
    title: str
    heading: str
    snippet: str
    highlights: tuple[tuple[int, int], ...]
    score: float
    source_id: str
    document_id: int
    section_id: UUID
    # the number of the generation it was found in, and when the server last sent or confirmed it
    generation: int
    fetched_at: datetime
    language: str | None
    # words of the query that the section does not have
    missing: tuple[str, ...] = ()
    # further sections of the page that match, best first, and how many there are
    sections: tuple[FurtherSection, ...] = ()
    more_sections: int = 0
    # sections on other pages that say the same
    repeats: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """Hits, best first. `capped`: more sections match than were ranked."""

    items: list[Hit]
    # pages that match, among the sections that were ranked
    total: int
    capped: bool
    next_cursor: str | None
    # hits on earlier pages
    offset: int
    # seconds
    took: float
    # about the query or the answer, such as how the query was relaxed
    note: str | None = None
    # the query as it may have been meant
    suggestion: str | None = None
    # hits by source, language and kind
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def preferred_language(accepted: str | None) -> str | None:
    """The first language of an Accept-Language header or of the variable LANG."""
    first = (accepted or "").replace(";", ",").partition(",")[0].partition(".")[0].strip()
    language = first.replace("_", "-").partition("-")[0].lower()
    return language if language.isalpha() and 2 <= len(language) <= 3 else None


MAX_LENGTH = 100_000
MAX_NUMBERS = 1_000_000


# the generations of a search, and how many of its hits were shown
SearchCursor = tuple[tuple[int, ...], int]


def encode_cursor(cursor: SearchCursor, *question: str | None) -> str:
    """An opaque text, valid for the same query and filters only."""
    content = (_digest(question), *cursor)
    return base64.urlsafe_b64encode(zlib.compress(orjson.dumps(content))).decode()


def decode_cursor(text: str, *question: str | None) -> SearchCursor:
    """The place of a cursor; raises InvalidInput."""
    try:
        if len(text) > MAX_LENGTH:
            raise ValueError("too long")
        packed = base64.urlsafe_b64decode(text.encode())
        # a small text may unpack to a very large one
        content = zlib.decompressobj().decompress(packed, MAX_NUMBERS)
        digest, generations, offset = orjson.loads(content)
        cursor = tuple(map(_number, generations)), _number(offset)
    except (ValueError, TypeError, OverflowError, binascii.Error, zlib.error):
        raise InvalidInput(
            "the cursor is not one that a search gave", hint="Start again without a cursor."
        ) from None
    if digest != _digest(question):
        raise InvalidInput(
            "the cursor belongs to another search",
            hint="Give the same words and filters, or start again without a cursor.",
        )
    return cursor


def _number(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= LARGEST_ID:
        raise ValueError("not a number of a cursor")
    return value


def _digest(question: Sequence[str | None]) -> str:
    return sha256(orjson.dumps(question)).hexdigest()[:16]
