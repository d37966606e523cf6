"""Markdown first: pages that a site also offers as markdown are read from it.

The HTML of each page is fetched as well: it has the links, directives and anchors. How a site
offers markdown is found with its first pages, and remembered for the source. At one request per
second, each request for nothing is a second of the crawl: the first pages are requested as markdown
or HTML, and further requests are made only if there is a sign that the site offers markdown, or if
they are few beside those of the crawl.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

from forager.archive.warc_record import pack
from forager.crawl.extraction.pool import Extracted, PageExtractor
from forager.crawl.frontier.entry import FrontierEntry
from forager.crawl.frontier.seen import SeenSet
from forager.crawl.ledger import Ledger
from forager.crawl.settlement import Settlement
from forager.crawl.store import visited as visited_rows
from forager.crawl.visit.markdown_responses import (
    MarkdownListing,
    MarkdownWay,
    markdown_of,
    read_listing,
    record_of,
    with_body,
)
from forager.crawl.visit.outcomes import markdown_twin
from forager.documents.page import IndexedDocument
from forager.documents.writer import GenerationWriter
from forager.errors import GiveUp, Retry, WorkFailed
from forager.extract.hosts import host_of
from forager.extract.keys import key_fingerprint, url_key
from forager.extract.kinds import ContentKind
from forager.extract.markdown.listing import name_of, stem_of
from forager.extract.markdown.twin import (
    TwinShape,
    difference,
    has_little_text,
    page_end,
    usual_pages,
    usual_twins,
)
from forager.extract.urls import Refusal, normalize
from forager.fetch.budgets.slots import HostThrottled
from forager.fetch.failure import classify_status
from forager.fetch.redirects import fetch_page
from forager.fetch.response import Request, Response
from forager.fetch.robots.gate import RobotsGate, origin_of
from forager.jobs.context import JobContext
from forager.logs import get_logger

log = get_logger("crawl")

ACCEPT = "text/markdown, text/html;q=0.9"
# of ordinary requests, which may be for anything
ACCEPT_ANY = f"{ACCEPT}, application/xhtml+xml;q=0.9, */*;q=0.8"
NO_WAY = "none"
# pages whose request accepts markdown, while it is not known how the site offers it
NEGOTIATED_PAGES = 5
# pages of a site without markdown that are tried before it counts as such
TRIALS = 2
# known URLs of a crawl that looks for markdown without a sign of it, which takes three requests
LARGE_CRAWL = 100
# pages in a row without a twin, after which the site no longer offers markdown
MISSES = 20
# listings are kept in memory during the crawl; those of further hosts are not used
MAX_LISTING = 8 * 1024 * 1024
MAX_LISTINGS = 32 * 1024 * 1024


_NAMES = {
    MarkdownWay.LINK: "a link of the page",
    MarkdownWay.ACCEPT: "the Accept header",
    MarkdownWay.ADDRESS: "its address",
    MarkdownWay.LLMS: "llms.txt",
    MarkdownWay.LLMS_FULL: "llms-full.txt",
}


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """A page as read from its markdown twin."""

    document: IndexedDocument
    # the packed records of the page and its twin
    frame: bytes | None
    size: int
    message: str


class MarkdownFirst:
    """Reads the markdown twins of the pages of one crawl.

    `way` is how the site offers them; None: not known yet, NO_WAY: it does not.
    """

    def __init__(
        self,
        context: JobContext,
        robots: RobotsGate,
        extractor: PageExtractor,
        writer: GenerationWriter | None,
        ledger: Ledger,
        *,
        is_on: bool,
        negotiates: bool,
    ) -> None:
        """`negotiates`: requests of pages may have another Accept header."""
        self._context = context
        self._robots = robots
        self._extractor = extractor
        self._writer = writer if is_on else None
        self._ledger = ledger
        self.way: str | None = None if self._writer is None else self._writer.markdown_way
        # by the ends of the addresses of pages
        self._shapes: dict[str, TwinShape] = {}
        self._negotiations = NEGOTIATED_PAGES if negotiates else 0
        # whether the site has sent HTML to a client that accepts markdown
        self._is_negotiated = False
        # markdown that was sent instead of the HTML of a page
        self._offered: dict[str, Response] = {}
        self._has_sign = False
        self._trials = TRIALS
        self._misses = 0
        self._is_unsure = False
        self._probing = asyncio.Lock()
        self._listing = asyncio.Lock()
        self._listed: dict[tuple[str, MarkdownWay], MarkdownListing | None] = {}
        self._room = MAX_LISTINGS
        # twins that this process read, and their pages
        self._twins = SeenSet()
        self._pages = SeenSet()

    def negotiate(self, request: Request) -> Request:
        """The request of a page, which accepts markdown as well while the way is not known.

        A conditional request stays as it is: its answer is about the HTML. So does a retry: the
        header may be why the server failed.
        """
        if self._writer is None or self.way is not None or not self._negotiations:
            return request
        if request.etag or request.last_modified or request.is_retry or usual_pages(request.url):
            return request
        self._negotiations -= 1
        return replace(request, headers={**request.headers, "Accept": ACCEPT_ANY})

    def take_offer(self, response: Response) -> bool:
        """Whether the response to such a request is not the one for clients that want HTML.

        Markdown is kept until `read` is called for the page. Servers may lead clients that accept
        it to a page that does not exist, or to a text of another type, which has no links.
        """
        twin = markdown_of(response, response.url, by_type=True)
        if twin is not None:
            self._offered[response.url] = twin
            return True
        if response.redirect is not None and usual_pages(response.redirect):
            self._has_sign = True
            return True
        if markdown_of(response, response.url, by_type=False) is not None:
            return True
        if response.status == 200:
            self._is_negotiated = True
        return isinstance(classify_status(response.status, response.headers), GiveUp)

    async def as_duplicate(self, entry: FrontierEntry) -> Settlement | None:
        """The outcome of a URL that is the markdown of a page; None if it is no such URL."""
        if self._writer is None or self.way is None:
            return None
        usual = usual_pages(entry.url)
        if key_fingerprint(entry.key) in self._twins:
            page = next((url for url in usual if _fingerprint(url) in self._pages), None)
        else:
            page = await self._page_before(self._writer, usual)
            if page is None:
                return None
        return markdown_twin(entry, page)

    async def _page_before(self, writer: GenerationWriter, urls: list[str]) -> str | None:
        """One of these pages that was read as markdown before this process: it may not be again.

        The server may confirm it with 304, or the crawl was interrupted after it.
        """
        if not urls or self.way == NO_WAY:
            return None
        return await self._context.database.run(
            visited_rows.select_page_as_markdown,
            self._context.lease.job_id,
            writer.generation_id,
            writer.base_id,
            [url_key(url) for url in urls],
        )

    async def read(
        self, entry: FrontierEntry, response: Response, page: Extracted
    ) -> MarkdownPage | str | None:
        """The markdown of a page; None if the site offers none, a text if it cannot be used."""
        if self._writer is None or self.way == NO_WAY or page.document is None:
            return None
        is_html = page.kind in (ContentKind.HTML, ContentKind.XHTML)
        if not is_html or has_little_text(page.document.sections):
            return None
        if self.way is None:
            if not self._is_worth_asking(response, page):
                return None
            async with self._probing:
                if self.way is None:
                    return await self._find_way(entry, response, page)
        return await self._read_known(entry, response, page)

    def _is_worth_asking(self, response: Response, page: Extracted) -> bool:
        """Whether requests may be spent on the question how the site offers markdown."""
        if response.url in self._offered or page.may_have_markdown or self._has_sign:
            return True
        return max(self._ledger.discovered, page.links.followed) >= LARGE_CRAWL

    async def _read_known(
        self, entry: FrontierEntry, response: Response, page: Extracted
    ) -> MarkdownPage | str | None:
        if self.way is None or self.way == NO_WAY:
            return None
        try:
            found = await self._try(MarkdownWay(self.way), response, page)
        except Retry as error:
            if not entry.attempts:
                raise  # one of two versions of a page would be published by chance
            return f"its markdown cannot be fetched: {error.message}"
        if isinstance(found, MarkdownPage):
            self._misses = -MISSES
            return found
        self._misses += 1
        if self._misses >= MISSES:
            await self._remember(NO_WAY)
        return found

    async def _find_way(
        self, entry: FrontierEntry, response: Response, page: Extracted
    ) -> MarkdownPage | None:
        for way in MarkdownWay:
            if way is MarkdownWay.ACCEPT and not self._may_negotiate(response.url):
                continue
            try:
                if way is MarkdownWay.LLMS_FULL and not await self._has_listing(response.url):
                    continue
                found = await self._try(way, response, page)
            except Retry:
                self._is_unsure = True
                continue
            if isinstance(found, MarkdownPage):
                log.info("the site offers markdown", url=entry.url, way=way.value)
                await self._remember(way.value)
                return found
        self._trials -= 1
        if not self._trials:
            await self._remember(NO_WAY)
        return None

    def _may_negotiate(self, url: str) -> bool:
        """Whether markdown is here, or may be: the whole site negotiates, or none of it."""
        return url in self._offered or not (self._is_negotiated or self._trials < TRIALS)

    async def _remember(self, way: str) -> None:
        assert self._writer is not None
        self.way = way
        self._offered.clear()
        if way == NO_WAY and self._is_unsure:
            return  # the next crawl asks again
        async with self._context.transaction() as connection:
            await self._writer.store_markdown_way(connection, way)

    # --- twins ---------------------------------------------------------------------------------

    async def _try(
        self, way: MarkdownWay, response: Response, page: Extracted
    ) -> MarkdownPage | str | None:
        """The first text that is the page, or why the last one is not."""
        reason: str | None = None
        async for twin in self._twins_of(way, response, page):
            found = await self._verified(way, twin, response, page)
            if isinstance(found, MarkdownPage):
                return found
            reason = found
        return reason

    async def _twins_of(
        self, way: MarkdownWay, response: Response, page: Extracted
    ) -> AsyncIterator[Response]:
        if way in (MarkdownWay.LLMS, MarkdownWay.LLMS_FULL):
            listing = await self._list(response.url, way)
            stem = stem_of(response.url)
            found = listing and (listing.pages.get(stem) or listing.pages.get(name_of(stem)))
            if listing and found and way is MarkdownWay.LLMS_FULL:
                yield with_body(listing.file, *found)
            addresses = [found[0]] if found and way is MarkdownWay.LLMS else []
        elif way is MarkdownWay.LINK:
            addresses = [page.markdown] if page.markdown else []
        elif way is MarkdownWay.ACCEPT and (offered := self._offered.pop(response.url, None)):
            yield offered
            addresses = []
        elif way is MarkdownWay.ACCEPT:
            addresses = [response.url]
        else:
            addresses = self._addresses(response.url)
        for url in addresses:
            if host_of(url) != host_of(response.url):
                continue
            fetched = await self._fetch(url, by_type=way is MarkdownWay.ACCEPT)
            if fetched is not None:
                yield fetched

    def _addresses(self, url: str) -> list[str]:
        shape = self._shapes.get(page_end(url))
        if shape is not None:
            return [shape.twin_of(url)]
        usual = usual_twins(url)
        return usual[:1] if self.way is None else usual

    async def _fetch(self, url: str, *, by_type: bool = False) -> Response | None:
        """The response at an address, if it is markdown; `by_type`: if it is declared as such."""
        try:
            await self._robots.check(url)
            request = Request(url, headers={"Accept": ACCEPT})
            response = await fetch_page(self._robots, request, partial(self._check_hop, url))
        except (HostThrottled, Retry):
            raise
        except WorkFailed:
            return None
        return markdown_of(response, url, by_type=by_type)

    async def _check_hop(self, start: str, url: str) -> None:
        if host_of(url) != host_of(start):
            raise GiveUp(f"{url[:200]} is on another host")
        await self._robots.check(url)

    async def _verified(
        self, way: MarkdownWay, twin: Response, response: Response, page: Extracted
    ) -> MarkdownPage | str:
        """The page as read from its twin, or why that is another text."""
        assert page.document is not None
        try:
            read = await self._extractor.extract_twin(twin, response.url, page)
        except GiveUp as error:
            return error.message
        document = read.document
        if document is None:
            return "its markdown is empty"
        reason = difference(page.document.sections, document.sections)
        if reason is not None:
            return f"its markdown {twin.url} is not used: {reason}"
        if twin.url != response.url:
            shape = TwinShape.of(response.url, twin.url)
            if shape is not None and urlsplit(response.url).path != "/":
                self._shapes.setdefault(page_end(response.url), shape)
            self._twins.add(_fingerprint(twin.url))
            self._pages.add(_fingerprint(response.url))
        return MarkdownPage(
            document,
            page.frame and page.frame + pack(record_of(twin)),
            0 if way is MarkdownWay.LLMS_FULL else len(twin.body),
            f"read as markdown from {twin.url} ({_NAMES[way]})",
        )

    # --- listings ------------------------------------------------------------------------------

    async def _list(self, url: str, way: MarkdownWay) -> MarkdownListing | None:
        """The listing of an origin; None: it has none that can be used."""
        place = origin_of(url), way
        async with self._listing:
            if place not in self._listed:
                self._listed[place] = await self._fetch_listing(f"{place[0]}/{way.value}", way)
        return self._listed[place]

    async def _has_listing(self, url: str) -> bool:
        """Whether there is an llms.txt: sites with an llms-full.txt have both."""
        return await self._list(url, MarkdownWay.LLMS) is not None

    async def _fetch_listing(self, url: str, way: MarkdownWay) -> MarkdownListing | None:
        response = await self._fetch(url)
        if response is None or len(response.body) > min(MAX_LISTING, self._room):
            return None
        self._room -= len(response.body)
        return await asyncio.to_thread(read_listing, response, url, way)


def _fingerprint(url: str) -> int:
    normalized = normalize(url)
    return key_fingerprint(url_key(url if isinstance(normalized, Refusal) else normalized))
