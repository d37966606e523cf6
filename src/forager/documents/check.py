"""Check extraction: extract archived pages of a source again, and compare."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial

from forager.archive.reader import read_response
from forager.archive.record import ArchiveError
from forager.archive.storage import Storage
from forager.db.cursor import batches
from forager.db.database import Database
from forager.documents.page import ArchivedDocument
from forager.documents.sources import get_source
from forager.documents.store import reads
from forager.errors import NotFound
from forager.extract.audit import PageAudit, audit_page
from forager.extract.content.repeated import RepeatedBlocks
from forager.extract.document import RemovedBlock, extract_reading

# body, URL, content type and headers
_Page = tuple[bytes, str, str | None, tuple[tuple[str, str], ...]]
MAX_LISTED = 1_000  # pages of each kind that a report names; all of them are counted
MAX_CLUSTERS = 100
_BATCH = 200


@dataclass(slots=True)
class Findings:
    """Pages with one kind of problem."""

    count: int = 0
    pages: list[PageAudit] = field(default_factory=list)

    def add(self, page: PageAudit) -> None:
        self.count += 1
        if len(self.pages) < MAX_LISTED:
            self.pages.append(page)


@dataclass(frozen=True, slots=True)
class NearCluster:
    """Pages with nearly the same text: how many, and two of them."""

    pages: int
    first_url: str
    last_url: str


@dataclass(frozen=True, slots=True)
class NearDuplicatePages:
    """Pages that are kept although others say nearly the same, and the largest clusters."""

    clusters: int = 0
    pages: int = 0
    largest: tuple[NearCluster, ...] = ()


@dataclass(slots=True)
class SourceCheck:
    """The problems that extraction had with the published pages of a source."""

    source_id: str
    pages: int = 0
    unreadable: int = 0  # pages that are not in the archive (any more)
    headings: int = 0
    headings_lost: int = 0
    large_sections: int = 0
    empty: Findings = field(default_factory=Findings)
    gutted: Findings = field(default_factory=Findings)  # pages that keep under 20 % of their text
    losing_headings: Findings = field(default_factory=Findings)
    with_large_sections: Findings = field(default_factory=Findings)
    by_fallback: Findings = field(default_factory=Findings)
    near_duplicates: NearDuplicatePages = field(default_factory=NearDuplicatePages)

    def add(self, page: PageAudit) -> None:
        self.pages += 1
        self.headings += page.headings
        self.headings_lost += len(page.lost_headings)
        self.large_sections += len(page.large_sections)
        for findings, holds in (
            (self.empty, page.is_empty),
            (self.gutted, page.is_gutted and not page.is_empty),
            (self.losing_headings, bool(page.lost_headings)),
            (self.with_large_sections, bool(page.large_sections)),
            (self.by_fallback, page.fallbacks > 0),
        ):
            if holds:
                findings.add(page)


async def check_source(database: Database, storage: Storage, source_id: str) -> SourceCheck:
    """Extract every published page of a source again and report what was lost."""
    source = await get_source(database, source_id)
    repeated = await repeated_blocks(database, source_id)
    clusters, pages, largest = await database.run(
        reads.select_near_clusters, source_id, limit=MAX_CLUSTERS
    )
    near = NearDuplicatePages(clusters, pages, tuple(NearCluster(*each) for each in largest))
    check = SourceCheck(source.id, near_duplicates=near)

    async def select(after: int) -> list[ArchivedDocument]:
        return await database.run(
            reads.select_archived_documents, source_id, after=after, limit=_BATCH
        )

    async for rows in batches(select, 0, lambda row: row.document_id, _BATCH):
        for row in rows:
            if (page := await _archived(storage, row)) is None:
                check.unreadable += 1
            else:
                check.add(await asyncio.to_thread(audit_page, *page, repeated))
    return check


async def _archived(storage: Storage, row: ArchivedDocument) -> _Page | None:
    if row.ref is None:
        return None
    try:
        response = await read_response(storage, row.ref)
    except (ArchiveError, NotFound):
        return None
    return response.body, row.url, response.content_type, response.headers


# --- one page ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PageContent:
    """The parts of a published page that extraction left out."""

    source_id: str
    chosen_by: str  # how the main content was found
    removed: tuple[RemovedBlock, ...]


async def explain_content(database: Database, storage: Storage, key: bytes) -> PageContent | None:
    """The parts that extraction leaves out of the page that readers find under a URL."""
    found = await database.run(reads.select_archived_page, key)
    page = None if found is None else await _archived(storage, found)
    if found is None or page is None:
        return None
    repeated = await repeated_blocks(database, found.source_id)
    read = partial(extract_reading, *page, repeated=repeated, explain=True)
    if (document := (await asyncio.to_thread(read)).document) is None:
        return None
    return PageContent(found.source_id, document.chosen_by, document.removed)


async def repeated_blocks(database: Database, source_id: str) -> RepeatedBlocks | None:
    """The blocks that the pages of a source have in common, if they were learned."""
    value = await database.run(reads.select_repeated, source_id)
    return None if value is None else RepeatedBlocks.from_json(value)
