"""The outcome of a URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

# commands that list outcomes import this module, and should start quickly
if TYPE_CHECKING:
    from forager.archive.segment import ArchiveRef
    from forager.crawl.frontier.entry import Entry, Found
    from forager.crawl.frontier.links import PageLinks
    from forager.documents.page import IndexedDocument, PreviousPage
    from forager.extract.urls import NormalisedUrl
    from forager.render.store import Lesson


class Outcome(StrEnum):
    FETCHED = "fetched"
    UNCHANGED = "unchanged"
    DUPLICATE = "duplicate"
    FAILED = "failed"
    EXCLUDED = "excluded"


class UrlSort(StrEnum):
    """What a list of processed URLs is sorted by."""

    URL = "url"
    STATUS = "status"
    DEPTH = "depth"
    SIZE = "size"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The end of one URL's way: an outcome, its reason, and everything the page led to."""

    entry: Entry
    outcome: Outcome
    reason: str | None = None
    detail: str | None = None
    duplicate_of: str | None = None
    # of a failure: it may be over at the next refresh
    temporary: bool = False
    # it failed, but the generation lists the version of its base
    carried_over: bool = False
    http_status: int | None = None
    content_type: str | None = None
    title: str | None = None
    size: int | None = None
    duration_ms: int | None = None
    content_hash: bytes | None = None
    etag: str | None = None
    last_modified: str | None = None
    # in-scope links, compressed: what a later crawl follows if this page has not changed
    outlinks: bytes | None = None
    # the response as a packed archive record; for a rendered page, all of its records
    frame: bytes | None = None
    # whether and why the page was rendered, for people
    rendering: str | None = None
    # the reason in one word, if it was
    rendered_for: str | None = None
    # bytes that were loaded to render it
    loaded_bytes: int = 0
    # what rendering it has shown about pages of its shape
    lesson: Lesson | None = None
    # what the page says, and what it was when it was crawled before
    document: IndexedDocument | None = None
    previous: PreviousPage | None = None
    links: PageLinks | None = None
    # where it redirects to, or what it calls its canonical URL
    found: Sequence[Found] = ()
    # where a start of the crawl moved to, outside the scope: the scope follows it
    new_seed: NormalisedUrl | None = None
    out_of_scope: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    # a product page, which is to be tracked
    is_product: bool = False


@dataclass(frozen=True, slots=True)
class Postponed:
    """Not now: the URL stays in the frontier and is tried again later."""

    entry: Entry
    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class Resting:
    """The whole host wants to be left alone for a while; nothing is held against the URL."""

    entry: Entry
    seconds: float
    reason: str


Visit = Settlement | Postponed | Resting


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledUrl:
    """A row of `crawl_visited` as an export needs it."""

    url_hash: bytes
    url: str
    outcome: str
    reason: str | None
    detail: str | None
    duplicate_of: str | None
    http_status: int | None
    depth: int
    parent_url: str | None
    via: str
    content_type: str | None
    title: str | None
    size: int | None
    settled_at: datetime
    content_hash: bytes | None
    segment: str | None
    segment_offset: int | None
    segment_length: int | None

    @property
    def ref(self) -> ArchiveRef | None:
        if self.segment is None or self.segment_offset is None or self.segment_length is None:
            return None
        from forager.archive.segment import ArchiveRef

        return ArchiveRef(self.segment, self.segment_offset, self.segment_length)
