"""How the pages of a source came through extraction: read again from the archive and compared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from forager.archive.errors import ArchiveError
from forager.archive.reader import read_response
from forager.archive.storage import Storage
from forager.db.database import Database
from forager.documents import store
from forager.documents.reading import ArchivedDocument
from forager.documents.sources import get_source
from forager.errors import NotFound
from forager.extract.audit import PageAudit, audit_page

MAX_LISTED = 1_000  # pages of each kind that a report names; all of them are counted
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


@dataclass(slots=True)
class SourceCheck:
    """What extraction made of the published pages of a source."""

    source_id: str
    pages: int = 0
    unreadable: int = 0  # pages that the archive does not have (any more)
    headings: int = 0
    headings_lost: int = 0
    large_sections: int = 0
    empty: Findings = field(default_factory=Findings)
    gutted: Findings = field(default_factory=Findings)  # pages that keep under 20 % of their text
    losing_headings: Findings = field(default_factory=Findings)
    with_large_sections: Findings = field(default_factory=Findings)
    by_fallback: Findings = field(default_factory=Findings)

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


async def check_source(
    database: Database,
    storage: Storage,
    source_id: str,
    *,
    progress: Callable[[int], None] = lambda _: None,
) -> SourceCheck:
    """Extract every published page of a source again and report what was lost."""
    source = await get_source(database, source_id)
    check = SourceCheck(source.id)
    after = 0
    while True:
        async with database.connection() as connection:
            rows = await store.select_archived_documents(
                connection, source_id, after=after, limit=_BATCH
            )
        for row in rows:
            await _check(check, storage, row)
        progress(check.pages + check.unreadable)
        if len(rows) < _BATCH:
            return check
        after = rows[-1].document_id


async def _check(check: SourceCheck, storage: Storage, row: ArchivedDocument) -> None:
    try:
        if row.ref is None:
            raise NotFound(f"{row.url} was not archived")
        response = await read_response(storage, row.ref)
    except (ArchiveError, NotFound):
        check.unreadable += 1
        return
    content_type = next((v for n, v in response.headers if n.lower() == "content-type"), None)
    check.add(
        await asyncio.to_thread(audit_page, response.body, row.url, content_type, response.headers)
    )
