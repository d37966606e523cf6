"""Boilerplate of a source: learned from the first pages of a crawl, before the others are read.

No page is fetched while it is learned. One transaction stores what was learned together with the
documents of the sample, so a crawl that is killed has either learned it or has not begun to.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from forager.archive.reader import read_response
from forager.archive.record import ArchiveError
from forager.archive.storage import Storage
from forager.crawl.extraction.pool import ExtractionPool
from forager.crawl.extraction.rereading import as_response
from forager.crawl.store import visited as store
from forager.documents.page import IndexedDocument, SampledPage
from forager.documents.writer import GenerationWriter
from forager.errors import NotFound, WorkFailed
from forager.fetch.response import Response
from forager.jobs.context import JobContext
from forager.jobs.store.leases import hold_lease
from forager.logs import get_logger

if TYPE_CHECKING:
    from forager.extract.content.repeated import Block

log = get_logger("crawl")

SAMPLE_PAGES = 64
MIN_SAMPLE = 10  # pages of a small site
MAX_SAMPLE = 256  # a carried-over page is no part of a sample, and the last batch may be large


class BoilerplateLearner:
    """Learns which blocks repeat on the pages of a source that has not been learned yet."""

    def __init__(
        self,
        context: JobContext,
        storage: Storage,
        pool: ExtractionPool,
        writer: GenerationWriter | None,
    ) -> None:
        self._context = context
        self._storage = storage
        self._pool = pool
        self._writer = writer

    def pages_missing(self, pages: int) -> int | None:
        """How many more pages the sample needs; None if nothing is to be learned."""
        if self._writer is None or self._writer.repeated is not None:
            return None
        return max(0, SAMPLE_PAGES - pages)

    async def finish(self) -> None:
        """Learn from what there is, at the end of a crawl that found too few pages before."""
        if self.pages_missing(0):
            await self.learn(at_least=MIN_SAMPLE)

    async def learn(self, *, at_least: int = 0) -> list[bytes]:
        """Learn from the pages so far; returns the contents of those that were read again."""
        # imported here: what reads pages is not for every runner
        from forager.extract.content.repeated import learn

        assert self._writer is not None
        sample = await self._writer.sample(MAX_SAMPLE)
        if len(sample) < at_least:
            return []
        blocks = [found for page in sample if (found := await self._blocks(page)) is not None]
        learned = await asyncio.to_thread(learn, blocks)
        self._pool.use_repeated(learned.as_json())
        again = [(page, await self._document(page)) for page in sample] if learned.elements else []
        reread = [(page, document) for page, document in again if document is not None]
        async with self._context.database.transaction() as connection:
            await hold_lease(connection, self._context.lease)
            await self._writer.store_repeated(connection, learned.as_json(), reread)
            await store.replace_contents(
                connection,
                self._context.lease.job_id,
                [page.content_hash for page, _ in reread],
                [document.content_hash for _, document in reread],
            )
        log.info("boilerplate learned", pages=learned.pages, elements=len(learned.elements))
        return [document.content_hash for _, document in reread]

    async def _blocks(self, page: SampledPage) -> list[Block] | None:
        response = await self._response(page)
        try:
            return None if response is None else await self._pool.blocks_of(response)
        except WorkFailed:
            return None

    async def _document(self, page: SampledPage) -> IndexedDocument | None:
        response = await self._response(page)
        try:
            if response is None:
                return None
            return (await self._pool.extract(response, archive=False)).document
        except WorkFailed:
            return None  # the next refresh reads it again: its version is not the current one

    async def _response(self, page: SampledPage) -> Response | None:
        try:
            return as_response(await read_response(self._storage, page.ref))
        except (ArchiveError, NotFound):
            return None
