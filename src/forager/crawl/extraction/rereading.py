"""Extract pages again from the archive, without requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from multidict import CIMultiDict, CIMultiDictProxy

from forager.archive.reader import ArchivedResponse, read_response
from forager.archive.record import ArchiveError
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage
from forager.crawl.extraction.pool import ExtractionPool
from forager.crawl.frontier.entry import Entry, Via
from forager.crawl.pages import Pages
from forager.crawl.settlement import Outcome, Settlement
from forager.crawl.store import ends as store
from forager.crawl.store.ends import ArchivedPage
from forager.db.database import Database
from forager.documents.page import IndexedDocument, Plan
from forager.errors import NotFound, WorkFailed
from forager.extract.urls import NormalisedUrl
from forager.fetch.response import Response, Timing


@dataclass(frozen=True, slots=True)
class Rereading:
    """Makes pages of a generation out of responses that were settled as something else."""

    database: Database
    storage: Storage
    pool: ExtractionPool
    pages: Pages

    async def plan(self, job_id: UUID, keys: Sequence[bytes]) -> Plan:
        rows = await self.database.run(store.select_archived, job_id, keys)
        settled = [await self._read(row) for row in rows]
        return self.pages.plan(settled, [row.ref for row in rows])

    async def _read(self, row: ArchivedPage) -> Settlement:
        entry = Entry(0, -1, row.key, NormalisedUrl(row.url), Via.LINK)
        return Settlement(
            entry=entry,
            outcome=Outcome.FETCHED,
            etag=row.etag,
            last_modified=row.last_modified,
            outlinks=row.outlinks,
            previous=await self.pages.previous(row.key),
            document=None if row.ref is None else await self._document(row.ref),
        )

    async def _document(self, ref: ArchiveRef) -> IndexedDocument | None:
        try:
            archived = await read_response(self.storage, ref)
            return (await self.pool.extract(as_response(archived), archive=False)).document
        except (ArchiveError, NotFound, WorkFailed):
            return None  # it stays in the ledger; only what it says is lost


def as_response(archived: ArchivedResponse) -> Response:
    return Response(
        url=archived.url,
        status=archived.status,
        reason=archived.reason,
        headers=CIMultiDictProxy(CIMultiDict(archived.headers)),
        body=archived.body,
        wire_size=len(archived.body),
        timing=Timing(None, None, 0.0, 0.0),
        peer=archived.ip or "",
        http_version="1.1",
    )
