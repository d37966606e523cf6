"""Pages and sections as readers get them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A page of a generation."""

    id: int
    source_id: str
    url: str
    path: str
    title: str | None
    language: str | None
    content_hash: bytes
    extractor_version: str
    generation_id: int
    fetched_at: datetime


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A section of a page."""

    id: UUID
    parent_id: UUID | None
    heading: str
    level: int
    anchor: str | None
    content: str
    position: int
