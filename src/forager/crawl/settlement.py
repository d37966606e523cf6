"""The outcome of a URL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING
from uuid import UUID

# commands that list outcomes import this module, and should start quickly
if TYPE_CHECKING:
    from forager.archive.segment import ArchiveRef
    from forager.crawl.frontier.entry import FrontierEntry, PageLinks
    from forager.documents.page import IndexedDocument, PreviousPage
    from forager.extract.urls import NormalizedUrl
    from forager.render.stats import ShapeStats


class Outcome(StrEnum):
    """The outcome of a URL; every discovered URL that is not pending has exactly one."""

    FETCHED = "fetched"
    UNCHANGED = "unchanged"
    DUPLICATE = "duplicate"
    FAILED = "failed"
    EXCLUDED = "excluded"


class UrlSort(StrEnum):
    """Sort orders of a list of processed URLs."""

    URL = "url"
    STATUS = "status"
    DEPTH = "depth"
    SIZE = "size"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The outcome of a URL, its reason, and everything that was found on the page."""

    entry: FrontierEntry
    outcome: Outcome
    reason: str | None = None
    detail: str | None = None
    duplicate_of: str | None = None
    # whether a failure may be over at the next refresh
    temporary: bool = False
    # whether the generation lists the version of its base although the page failed
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
    # the render stats of pages of its shape
    shape_stats: ShapeStats | None = None
    # the content of the page now and in the previous crawl
    document: IndexedDocument | None = None
    previous: PreviousPage | None = None
    links: PageLinks | None = None
    # the target of a redirect, or the canonical URL
    found: Sequence[FrontierEntry] = ()
    # the target of a redirected seed outside the scope, which is widened by it
    new_seed: NormalizedUrl | None = None
    out_of_scope: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    # a product page, which is to be tracked
    is_product: bool = False

    def found_keys(self) -> Iterator[bytes]:
        """The keys of all URLs that were found on the page."""
        if self.links is not None:
            yield from self.links.each_key()
        for entry in self.found:
            yield entry.key


@dataclass(frozen=True, slots=True)
class Postponed:
    """A URL that stays in the frontier and is retried later."""

    entry: FrontierEntry
    seconds: float
    reason: str
    # bytes of a page that waits to be committed: there is none
    size: int = 0


@dataclass(frozen=True, slots=True)
class Deferred:
    """A URL whose whole host must not be requested for a while; not a failed attempt."""

    entry: FrontierEntry
    seconds: float
    reason: str


Visit = Settlement | Postponed | Deferred


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRecord:
    """A row of `crawl_visited` or `crawl_frontier`; the outcome of the latter is `pending`."""

    job_id: UUID
    url: str
    outcome: str
    reason: str | None
    detail: str | None
    duplicate_of: str | None
    carried_over: bool
    http_status: int | None
    depth: int
    parent: bytes | None
    via: str
    attempts: int
    rendering: str | None
    not_before: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastOutcome:
    """The outcome of a URL in one crawl."""

    job_id: UUID
    outcome: str
    reason: str | None
    detail: str | None
    http_status: int | None
    attempts: int
    settled_at: datetime | None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingUrl:
    """A row of `crawl_frontier`."""

    depth: int
    seq: int
    url: str
    via: str
    attempts: int
    # when it is tried again, if it failed before
    not_before: datetime | None
    parent_url: str | None


@dataclass(frozen=True, slots=True)
class ArchivedUrl:
    """A settled URL whose response can be read again."""

    key: bytes
    url: str
    etag: str | None
    last_modified: str | None
    outlinks: bytes | None
    ref: ArchiveRef | None
