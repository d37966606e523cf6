"""What is asked of search, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

MAX_HITS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What to look for and where; `cursor` goes on after an earlier page of the same search."""

    query: str
    # a source, or a name that several versions share: `python` finds in `python@3.13` as well
    source: str | None = None
    # a generation of that source by its number; by default the published one
    generation: int | None = None
    # only pages whose path begins so
    path: str | None = None
    # only sources of this owner
    user_id: UUID | None = None
    limit: int = 10
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A section that was found. All texts are plain: what looks like HTML in them is text.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """Hits, best first. `capped`: there were so many that not all of them were ranked."""

    hits: list[Hit]
    capped: bool
    next_cursor: str | None
    # seconds
    took: float
    # about the query or the answer, for whoever typed it
    note: str | None = None
