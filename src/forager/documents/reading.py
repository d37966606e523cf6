"""Pages and sections as readers get them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from forager.archive.segment import ArchiveRef


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
    # of the source: 1, 2, 3
    generation_number: int
    fetched_at: datetime
    # carried over from an earlier generation: since when it fails, why, in how many refreshes
    carried_since: datetime | None = None
    carried_reason: str | None = None
    carried_times: int | None = None


@dataclass(frozen=True, slots=True)
class CarriedPage:
    """A page that could not be fetched, and is listed as it was before."""

    url: str
    title: str | None
    # when it was last fetched, since when it fails, and in how many refreshes in a row
    fetched_at: datetime
    since: datetime
    reason: str
    times: int


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


def carried_page(page: DocumentRow) -> CarriedPage:
    """How a page that is carried over came to be listed."""
    assert page.carried_since is not None
    assert page.carried_reason is not None
    assert page.carried_times is not None
    return CarriedPage(
        page.url,
        page.title,
        page.fetched_at,
        page.carried_since,
        page.carried_reason,
        page.carried_times,
    )


@dataclass(frozen=True, slots=True)
class ArchivedDocument:
    """A published page and where its response is kept, if it is."""

    document_id: int
    url: str
    ref: ArchiveRef | None
