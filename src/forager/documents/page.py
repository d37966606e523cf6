"""Pages as a crawl writes them into a generation, and as readers get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from forager.archive.segment import ArchiveRef
from forager.extract.document import OF_MARKDOWN
from forager.extract.sections import Section


@dataclass(frozen=True, slots=True)
class SectionNames:
    """Identifiers as typed by which a section is found: those of its heading, and all.

    `kind` is "definition", "listing" or empty.
    """

    heading: Sequence[str] = ()
    section: Sequence[str] = ()
    kind: str = ""


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """The content of a page, with the identifiers by which each of its sections is found."""

    title: str | None
    language: str | None
    sections: Sequence[Section]
    content_hash: bytes
    extractor_version: str
    names: Sequence[SectionNames]
    # to find pages that are nearly the same
    simhash: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPage:
    """A page as this crawl found it; without a document, the base's version is listed again."""

    url: str
    key: bytes
    document: IndexedDocument | None
    # None: now, by the database's clock; workers' clocks differ, and readers go by the order
    fetched_at: datetime | None = None
    etag: str | None = None
    last_modified: str | None = None
    # in-scope links, newline-separated, zstd; a page that has not changed keeps those it had
    outlinks: bytes | None = None
    archive: ArchiveRef | None = None
    # why it could not be fetched, if it is carried over; otherwise it has not changed (304)
    carried_reason: str | None = None


def indexed_document(page: NewPage) -> IndexedDocument:
    """The document of a page that was read."""
    assert page.document is not None
    return page.document


@dataclass(frozen=True, slots=True)
class SampledPage:
    """A page of the generation that is being built, from which something is learned."""

    document_id: int
    url: str
    key: bytes
    content_hash: bytes
    ref: ArchiveRef


@dataclass(frozen=True, slots=True)
class PreviousPage:
    """A page in the generation that was published when this crawl began.

    The validators are None if another version of the extractor read the page: then it must be
    fetched, because the document would come out differently.
    """

    document_id: int
    content_hash: bytes
    extractor_version: str
    etag: str | None
    last_modified: str | None
    link_set: bytes | None
    # when the server last sent or confirmed this version
    fetched_at: datetime
    # refreshes in a row in which it failed and was carried over, and since when, in seconds
    carried_times: int = 0
    carried_seconds: float = 0.0
    archive: ArchiveRef | None = None

    @property
    def is_markdown(self) -> bool:
        """Whether it was read from markdown that the site offers."""
        return self.extractor_version.endswith(OF_MARKDOWN)


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
    # the number of the generation within the source: 1, 2, 3
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPage:
    """A page as the published generation of a source lists it."""

    source_id: str
    generation: int
    # since when readers see this version
    since: datetime
    carried_reason: str | None


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A section of a stored page."""

    id: UUID
    parent_id: UUID | None
    heading: str
    level: int
    anchor: str | None
    content: str
    position: int
    # further anchors, of places in its text
    anchors: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ArchivedDocument:
    """A published page, and the place of its response if that is archived."""

    source_id: str
    document_id: int
    url: str
    ref: ArchiveRef | None


LINK_SET_HASH = 16


@dataclass(slots=True)
class PageCounts:
    """Numbers of pages by how they differ from the base generation."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    carried_over: int = 0

    @property
    def pages(self) -> int:
        return self.added + self.changed + self.unchanged + self.carried_over


@dataclass(frozen=True, slots=True)
class ManifestPage:
    """A page with a document, and the set of its links."""

    page: NewPage
    link_set: bytes | None


@dataclass(slots=True)
class CommitPlan:
    """The rows of one commit: `new` documents are written, and pages with documents are listed.

    `copied` pages answered 304 or failed: the base's row is copied.
    """

    new: list[NewPage] = field(default_factory=list)
    listed: list[ManifestPage] = field(default_factory=list)
    copied: list[NewPage] = field(default_factory=list)
    link_sets: dict[bytes, bytes] = field(default_factory=dict)
    counts: PageCounts = field(default_factory=PageCounts)


def make_plan(pages: Sequence[NewPage], previous: Mapping[bytes, PreviousPage]) -> CommitPlan:
    """What a commit writes, by comparing pages with those of the base generation."""
    plan = CommitPlan()
    for page in pages:
        before = previous.get(page.key)
        if page.document is None:
            _copy(plan, page, before)
        else:
            _place(plan, page, page.document, before)
    return plan


def _copy(plan: CommitPlan, page: NewPage, before: PreviousPage | None) -> None:
    if before is None:
        raise ValueError(f"{page.url} has no document, and was not there before")
    plan.copied.append(page)
    if page.carried_reason is None:
        plan.counts.unchanged += 1
    else:
        plan.counts.carried_over += 1


def _place(
    plan: CommitPlan, page: NewPage, document: IndexedDocument, before: PreviousPage | None
) -> None:
    plan.listed.append(ManifestPage(page, _link_set(plan, page, before)))
    same_content = before is not None and before.content_hash == document.content_hash
    if before is None:
        plan.counts.added += 1
    elif same_content:
        plan.counts.unchanged += 1
    else:
        plan.counts.changed += 1
    if not (before and same_content and before.extractor_version == document.extractor_version):
        plan.new.append(page)


def _link_set(plan: CommitPlan, page: NewPage, before: PreviousPage | None) -> bytes | None:
    if page.outlinks is None:
        return None
    digest = sha256(page.outlinks).digest()[:LINK_SET_HASH]
    if before is None or before.link_set != digest:
        plan.link_sets[digest] = page.outlinks
    return digest
