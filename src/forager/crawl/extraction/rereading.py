"""Pages read again from the archive, without requests: to learn boilerplate, and for duplicates.

Boilerplate of a source is learned from the first pages of a crawl, before the others are extracted:
they are fetched meanwhile, and wait. One transaction stores it together with the documents of the
sample, so a crawl that is killed has either learned it or not begun to.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from multidict import CIMultiDict, CIMultiDictProxy

from forager.archive.reader import ArchivedResponse, parse_response, read_records
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage
from forager.archive.warc_record import ArchiveError
from forager.crawl.extraction.pool import PageExtractor
from forager.crawl.frontier.entry import FrontierEntry, Via
from forager.crawl.pages import Pages
from forager.crawl.settlement import ArchivedUrl, Outcome, Settlement
from forager.crawl.store import ends as store
from forager.crawl.store import visited as visited_rows
from forager.db.database import Database
from forager.documents.page import CommitPlan, IndexedDocument, SampledPage
from forager.documents.writer import GenerationWriter
from forager.errors import NotFound, WorkFailed
from forager.extract.kinds import MARKDOWN_TYPE, media_type
from forager.extract.urls import NormalizedUrl
from forager.fetch.response import Response, Timing
from forager.jobs.context import JobContext
from forager.logs import get_logger

if TYPE_CHECKING:
    from forager.extract.content.repeated import Block

Read = TypeVar("Read")

log = get_logger("crawl")

UNREADABLE = (ArchiveError, NotFound, WorkFailed)

SAMPLE_PAGES = 64
MIN_SAMPLE = 10  # pages of a small site
PAGES_AT_ONCE = 8
MAX_SAMPLE = 256  # a carried-over page is no part of a sample, and the last batch may be large


LEARNING = "learning which blocks the pages have in common"


class BoilerplateLearner:
    """Learns which blocks repeat on the pages of a source that has not been learned yet.

    A page that was fetched takes its `turn` to be extracted: as one of the sample, or after it.
    """

    def __init__(
        self,
        context: JobContext,
        storage: Storage,
        extractor: PageExtractor,
        writer: GenerationWriter | None,
    ) -> None:
        self._context = context
        self._storage = storage
        self._extractor = extractor
        self._writer = writer
        self._learning: asyncio.Task[list[bytes]] | None = None
        # pages that the sample still needs
        self._missing = 0
        # seqs of pages of the sample that are being extracted, and of those not committed yet
        self._extracting: set[int] = set()
        self._extracted: set[int] = set()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        # bytes of the pages that wait for their turn
        self.waiting_bytes = 0
        if writer is not None and writer.repeated is None:
            extractor.keep_blocks()

    @property
    def is_done(self) -> bool:
        """Whether nothing is to be learned, or all is learned and stored."""
        is_known = self._writer is None or self._writer.repeated is not None
        return is_known and not self.is_learning

    @property
    def is_learning(self) -> bool:
        """Whether blocks are being learned now."""
        return self._learning is not None and not self._learning.done()

    async def turn(self, entry: FrontierEntry, size: int) -> None:
        """Return when a page may be extracted."""
        if self.is_done:
            return
        if not self._waiting and self._has_room():
            self._extracting.add(entry.seq)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((entry.seq, turn))
        self.waiting_bytes += size
        try:
            await turn
        finally:
            self.waiting_bytes -= size

    def arrived(self, entry: FrontierEntry, *, settled: bool) -> None:
        """The visit of a page has ended."""
        if entry.seq in self._extracting:
            self._extracting.discard(entry.seq)
            if settled:
                self._extracted.add(entry.seq)

    def committed(self, entries: Iterable[FrontierEntry]) -> None:
        """Forget entries that were read before blocks were known, once committed."""
        self._extracted.difference_update(entry.seq for entry in entries)

    @property
    def needs_commit(self) -> bool:
        """Whether pages wait, or what is to be learned, for the commit of the sample so far."""
        is_full = self._missing <= len(self._extracted)
        return bool(self._extracted) and not self._extracting and (is_full or bool(self._waiting))

    def advance(self, pages: int, on_change: Callable[[], None]) -> list[bytes]:
        """Let pages be extracted, or begin to learn, with this many pages in the generation.

        Returns the contents of pages that were read again with what was learned.
        """
        contents: list[bytes] = []
        if self._learning is not None and self._learning.done():
            contents, self._learning = self._learning.result(), None
        self._missing = max(0, SAMPLE_PAGES - pages)
        while self._waiting and (self.is_done or self._has_room()):
            seq, turn = self._waiting.popleft()
            if turn.done():  # its visit was abandoned
                continue
            if not self.is_done:
                self._extracting.add(seq)
            turn.set_result(None)
        is_complete = not (self._missing or self._extracting or self._extracted)
        if is_complete and not self.is_done and self._learning is None:
            self._learning = asyncio.create_task(self.learn())
            self._learning.add_done_callback(lambda _: on_change())
        return contents

    def _has_room(self) -> bool:
        return len(self._extracting) + len(self._extracted) < self._missing

    async def stop(self) -> None:
        """Stop learning: a later run begins again."""
        if self._learning is not None:
            self._learning.cancel()
            await asyncio.gather(self._learning, return_exceptions=True)

    async def finish(self) -> None:
        """Learn from the pages of a crawl that ends with fewer than a sample."""
        if self._learning is None:
            if self.is_done:
                return
            self._learning = asyncio.create_task(self.learn(at_least=MIN_SAMPLE))
        await self._learning

    async def learn(self, *, at_least: int = 0) -> list[bytes]:
        """Learn from the pages so far; returns the contents of those that were read again."""
        # imported here: what reads pages is not for every runner
        from forager.extract.content.repeated import learn

        assert self._writer is not None
        sample = await self._writer.sample(MAX_SAMPLE)
        if len(sample) < at_least:
            return []
        blocks = await self._in_parallel(sample, self._blocks)
        learned = await asyncio.to_thread(learn, blocks)
        self._extractor.use_repeated(learned.as_json())
        reread = await self._in_parallel(sample if learned.elements else (), self._reread)
        async with self._context.transaction() as connection:
            await self._writer.store_repeated(connection, learned.as_json(), reread)
            if reread:
                await visited_rows.replace_contents(
                    connection,
                    self._context.lease.job_id,
                    [page.content_hash for page, _ in reread],
                    [document.content_hash for _, document in reread],
                )
        log.info("boilerplate learned", pages=learned.pages, elements=len(learned.elements))
        return [document.content_hash for _, document in reread]

    async def _in_parallel(
        self, sample: Sequence[SampledPage], read: Callable[[SampledPage], Awaitable[Read | None]]
    ) -> list[Read]:
        """Read pages, a few at a time so that not all are in memory; without unreadable ones."""
        found: list[Read | None] = []
        for start in range(0, len(sample), PAGES_AT_ONCE):
            found += await asyncio.gather(*map(read, sample[start : start + PAGES_AT_ONCE]))
        return [each for each in found if each is not None]

    async def _reread(self, page: SampledPage) -> tuple[SampledPage, IndexedDocument] | None:
        # a page that cannot be read is read by the next refresh: its version is not current
        document = await _read_document(self._storage, self._extractor, page.ref)
        return None if document is None else (page, document)

    async def _blocks(self, page: SampledPage) -> list[Block] | None:
        if (kept := self._extractor.kept_blocks(page.content_hash)) is not None:
            return kept
        try:  # a page of an earlier run of the job
            archived, _ = await _read_page(self._storage, page.ref)
            return await self._extractor.blocks_of(archived)
        except UNREADABLE:
            return None


@dataclass(frozen=True, slots=True)
class Rereading:
    """Makes pages of a generation out of responses that were settled as something else."""

    database: Database
    storage: Storage
    extractor: PageExtractor
    pages: Pages

    async def plan(self, job_id: UUID, keys: Sequence[bytes]) -> CommitPlan:
        """Read archived pages again, and plan to write those that changed."""
        rows = await self.database.run(store.select_archived, job_id, keys)
        settled = [await self._read(row) for row in rows]
        return self.pages.plan(settled, [row.ref for row in rows])

    async def _read(self, row: ArchivedUrl) -> Settlement:
        entry = FrontierEntry(0, -1, row.key, NormalizedUrl(row.url), Via.LINK)
        return Settlement(
            entry=entry,
            outcome=Outcome.FETCHED,
            etag=row.etag,
            last_modified=row.last_modified,
            outlinks=row.outlinks,
            previous=await self.pages.previous(row.key),
            # a page without a document stays in the ledger
            document=await _read_document(self.storage, self.extractor, row.ref),
        )


async def _read_document(
    storage: Storage, extractor: PageExtractor, ref: ArchiveRef | None
) -> IndexedDocument | None:
    """The document of an archived page; None if it can no longer be read."""
    if ref is None:
        return None
    try:
        response, twin = await _read_page(storage, ref)
        page = await extractor.extract(response, archive=False)
        if twin is not None and page.document is not None:
            page = await extractor.extract_twin(twin, response.url, page)
        return page.document
    except UNREADABLE:
        return None


async def _read_page(storage: Storage, ref: ArchiveRef) -> tuple[Response, Response | None]:
    """An archived page, and its markdown twin if it was read from one."""
    records = await read_records(storage, ref)
    last = as_response(parse_response(records[-1]))
    if len(records) == 1 or media_type(last.headers.get("Content-Type")) != MARKDOWN_TYPE:
        return last, None
    return as_response(parse_response(records[0])), last


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
