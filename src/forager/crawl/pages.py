"""Pages of a crawl: those of the base generation, and those written into the new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import zstandard

from forager.archive.segment import ArchiveRef
from forager.crawl.frontier.entry import NO_LINKS, PageLinks, links_from_text
from forager.crawl.frontier.scope import CrawlScope
from forager.crawl.options import CrawlOptions
from forager.crawl.settlement import Outcome, Settlement
from forager.db.database import Connection
from forager.db.shared_query import SharedQuery
from forager.documents.page import CommitPlan, NewPage, PreviousPage
from forager.documents.writer import GenerationWriter
from forager.extract.keys import url_key
from forager.settings import Settings

MAX_LINKS_BYTES = 256 * 2**20
MAX_FOLLOWED = 10_000


class Pages:
    """Reads the base generation for visits, and writes the pages of each commit.

    Without a writer the crawl keeps no documents: there is nothing before, and nothing goes in.
    """

    def __init__(self, writer: GenerationWriter | None, scope: CrawlScope) -> None:
        self._writer = writer
        self._scope = scope
        if writer is not None:
            self._previous = SharedQuery(writer.previous)
            self._links = SharedQuery(writer.links_of)
        # link sets that were followed lately, and from which depth: neighbors often share theirs
        self._followed: dict[bytes, int] = {}

    # --- what was there before ---------------------------------------------------------------

    @property
    def base_id(self) -> int | None:
        """The generation that was published when the crawl began."""
        return None if self._writer is None else self._writer.base_id

    async def previous(self, key: bytes) -> PreviousPage | None:
        """The page in the base generation. Visits that ask at the same time share one query."""
        if self.base_id is None:
            return None
        return await self._previous.find(key)

    async def links_before(self, page: PreviousPage, depth: int) -> PageLinks:
        """The links of a page that was not read now: after a 304 or a failure there is no body."""
        # from a greater depth they may have led too deep
        if page.link_set is None or self._followed.get(page.link_set, depth + 1) <= depth:
            return NO_LINKS
        packed = await self._links.find(page.link_set)
        self._followed[page.link_set] = depth
        if len(self._followed) > MAX_FOLLOWED:
            del self._followed[next(iter(self._followed))]
        if not packed:
            return NO_LINKS
        text = zstandard.ZstdDecompressor().decompress(packed, max_output_size=MAX_LINKS_BYTES)
        # the scope may be another one than when they were found
        follow, nofollow = (
            [url for url in urls if self._scope.outside(url) is None]
            for urls in links_from_text(text.decode())
        )
        urls = [*follow, *nofollow]
        keys = b"".join(url_key(url) for url in urls)
        return PageLinks("\n".join(urls).encode(), keys, len(follow))

    # --- what goes in ------------------------------------------------------------------------

    def plan(self, settled: Sequence[Settlement], refs: Sequence[ArchiveRef | None]) -> CommitPlan:
        """Plan the pages that a commit adds to the generation. Writes nothing."""
        if self._writer is None:
            return CommitPlan()
        pages = [
            _new_page(each, ref) for each, ref in zip(settled, refs, strict=True) if _has_page(each)
        ]
        previous = {each.entry.key: each.previous for each in settled if each.previous is not None}
        return self._writer.plan(pages, previous)

    async def write(self, connection: Connection, plan: CommitPlan) -> None:
        """Write a plan inside the transaction of a commit."""
        if self._writer is not None:
            await self._writer.write(connection, plan)

    async def complete(self) -> int:
        """Prepare the generation for readers; how many of its pages are nearly the same."""
        return 0 if self._writer is None else await self._writer.complete()

    async def publish(self, connection: Connection) -> str | None:
        """Part of the transaction that completes the job."""
        return None if self._writer is None else await self._writer.finish(connection)


def _has_page(settled: Settlement) -> bool:
    """Whether it is listed; after a 304 or a failure with the document from before."""
    if settled.outcome is Outcome.UNCHANGED or settled.carried_over:
        return True
    return settled.outcome is Outcome.FETCHED and settled.document is not None


def _new_page(settled: Settlement, ref: ArchiveRef | None) -> NewPage:
    return NewPage(
        url=settled.entry.url,
        key=settled.entry.key,
        document=settled.document,
        etag=settled.etag,
        last_modified=settled.last_modified,
        outlinks=settled.outlinks,
        archive=ref,
        carried_reason=settled.reason if settled.carried_over else None,
    )


DAY = 86400.0


class CarryOver:
    """Decides which failed pages stay in the new generation. Stores nothing."""

    def __init__(self, pages: Pages, options: CrawlOptions, settings: Settings) -> None:
        self._pages = pages
        # limits of consecutive failed refreshes and of days before a page is dropped
        refreshes, days = options.carry_over, options.carry_over_days
        self._refreshes = settings.carry_over_refreshes if refreshes is None else refreshes
        self._days = settings.carry_over_days if days is None else days

    async def apply(self, settled: Settlement) -> Settlement:
        """Add the previous version of a page to its temporary failure."""
        if settled.outcome is not Outcome.FAILED or not settled.temporary:
            return settled
        page = await self._pages.previous(settled.entry.key)
        if page is None:
            return settled
        # also of a page that goes: the rest of the site may be found through it alone
        links = await self._pages.links_before(page, settled.entry.depth)
        if page.carried_times >= self._refreshes or page.carried_seconds >= self._days * DAY:
            return replace(settled, links=links, detail=f"{settled.detail}; {_dropped(page)}")
        return replace(
            settled,
            links=links,
            previous=page,
            content_hash=page.content_hash,
            carried_over=True,
            detail=f"{settled.detail}; {self._carried(page)}",
        )

    def _carried(self, page: PreviousPage) -> str:
        number = f"refresh {page.carried_times + 1} of {self._refreshes}"
        return f"its version of {page.fetched_at:%Y-%m-%d %H:%M} UTC is carried over ({number})"


def _dropped(page: PreviousPage) -> str:
    if not page.carried_times:
        return "it is not carried over"
    days = page.carried_seconds / DAY
    return f"it was carried over {page.carried_times} times in {days:.1f} days, and is dropped"
