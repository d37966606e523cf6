"""The pool of extraction processes, each with a time and a memory limit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Self

import orjson

from forager.crawl.extraction.reading import unpack_document
from forager.crawl.frontier.entry import PageLinks
from forager.documents.page import IndexedDocument
from forager.errors import ErrorKind, GiveUp
from forager.extract.text import scalar_values
from forager.fetch.response import Response
from forager.metrics.catalog import EXTRACTION_SECONDS
from forager.processes.pool import SandboxPool
from forager.processes.sandbox import SandboxContext, SandboxLimits
from forager.processes.serving import Response as Answer

if TYPE_CHECKING:
    from forager.extract.content.repeated import Block
    from forager.extract.markdown.twin import TwinOf

MODULE = "forager.crawl.extraction.process"
# more bytes of blocks, or of more pages, are not kept: they can be read again from the archive
MAX_BLOCK_BYTES = 64 * 1024
MAX_BLOCK_PAGES = 256


@dataclass(frozen=True, slots=True)
class Extracted:
    """The facts about one page; those without bytes have the names of the response's header."""

    kind: str
    title: str | None
    canonical: str | None
    # where the page says it is as markdown
    markdown: str | None
    # whether it has a sign that its site offers markdown
    may_have_markdown: bool
    # URL and delay of a redirect in the page
    refresh: Sequence[Any] | None
    noindex: bool
    needs_javascript: bool
    asks_password: bool
    soft_error: str | None
    text_length: int
    truncated: Sequence[str]
    # how many links had a session id, and lost it
    sessions: int
    out_of_scope: Mapping[str, int]
    content_hash: bytes | None
    frame: bytes | None
    links: PageLinks
    outlinks: bytes | None
    # None for a page without content
    document: IndexedDocument | None
    # as the page declares it
    language: str | None
    # whether it is a product page; always false unless the crawl tracks products
    is_product: bool


class ExtractionPool:
    """Processes that read the pages of all crawls of a runner; crawls take turns.

    A page that breaks a limit fails; its process is replaced. Processes start with the first page
    at the latest: a refresh in which nothing changed needs none.
    """

    def __init__(self, limits: SandboxLimits, parser_modules: Sequence[str] = ()) -> None:
        argument = {"memory_mb": limits.memory_mb, "parser_modules": list(parser_modules)}
        self._sandboxes = SandboxPool(MODULE, orjson.dumps(argument), limits)
        self._numbers = count()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sandboxes.close()

    async def start(self) -> None:
        """Start the processes ahead of the first page, which would wait for their imports."""
        with suppress(OSError):  # the first page tries again
            await self._sandboxes.start()

    @property
    def waiting(self) -> int:
        """Pages that wait for a process."""
        return self._sandboxes.waiting

    def extractor(
        self,
        *,
        seeds: Sequence[str],
        scope: str,
        agent: str,
        documents: bool = True,
        products: bool = False,
        repeated: dict[str, Any] | None = None,
        language: str | None = None,
    ) -> PageExtractor:
        """The extraction of one crawl, with its parameters. Close it at the end of the crawl."""
        context = SandboxContext(str(next(self._numbers)))
        context.add(
            {
                "seeds": list(seeds),
                "scope": scope,
                "agent": agent,
                "documents": documents,
                "products": products,
                "language": language,
            }
        )
        extractor = PageExtractor(self._sandboxes, context)
        if repeated is not None:
            extractor.use_repeated(repeated)
        return extractor


class PageExtractor:
    """Pages of one crawl in, facts out."""

    def __init__(self, sandboxes: SandboxPool, context: SandboxContext) -> None:
        self._sandboxes = sandboxes
        self._context = context
        # packed blocks of pages by the hash of their document; None if they are not wanted
        self._blocks: dict[bytes, bytes] | None = None

    def close(self) -> None:
        self._sandboxes.forget(self._context)

    def add_seed(self, seed: str) -> None:
        """A new seed widens the scope, for all pages that are sent from now on."""
        self._context.add({"seed": seed})

    def use_repeated(self, repeated: dict[str, Any]) -> None:
        """Remove repeated blocks of the source from all pages from now on."""
        self._blocks = None
        self._context.add({"repeated": repeated})

    def keep_blocks(self) -> None:
        """Keep the blocks of pages, until repeated ones are learned from them."""
        self._blocks = {}

    def kept_blocks(self, content_hash: bytes) -> list[Block] | None:
        """The blocks of a page that was extracted by this run, if they were kept."""
        packed = (self._blocks or {}).get(content_hash)
        return None if packed is None else _unpack_blocks(packed)

    async def blocks_of(self, response: Response) -> list[Block]:
        """The blocks of an archived page of a sample."""
        header = _page_header(response)
        answer, blobs = await self._request({**header, "sample": True}, response.body)
        if "error" in answer:
            raise GiveUp(f"the page cannot be read: {answer['error']}", kind=ErrorKind.PARSE)
        return _unpack_blocks(blobs[0])

    async def extract(
        self,
        response: Response,
        *,
        archive: bool = True,
        links: Sequence[str] = (),
        twin_of: TwinOf | None = None,
    ) -> Extracted:
        """Facts of one response; GiveUp if it cannot be read within the limits.

        `links` are those that the page has besides the ones in its body. `twin_of` is the page
        that the response is the markdown of.
        """
        header = {
            **_page_header(response),
            "status": response.status,
            "reason": scalar_values(response.reason),
            "peer": response.peer,
            "protocol": f"http/{response.http_version}",
            "at": time.time(),
            "archive": archive,
            "links": [scalar_values(link) for link in links],
            "blocks": archive and self._blocks is not None,
            "twin_of": twin_of,
        }
        await self._sandboxes.start()
        began = time.perf_counter()
        answer, blobs = await self._request(header, response.body)
        EXTRACTION_SECONDS.observe(time.perf_counter() - began, "page")
        if "error" in answer:
            raise GiveUp(f"the page cannot be read: {answer['error']}", kind=ErrorKind.PARSE)
        extracted = _extracted(answer, blobs)
        self._keep(extracted.document, blobs[-1])
        return extracted

    async def extract_twin(self, twin: Response, url: str, page: Extracted) -> Extracted:
        """The facts of the markdown twin of a page, which keeps the anchors of the page."""
        from forager.extract.markdown.twin import TwinOf, outline_of  # most sites have none

        assert page.document is not None
        before = page.document
        links = page.links.urls.decode().splitlines()
        of = TwinOf(url, before.title, page.language, outline_of(before.sections), links)
        read = await self.extract(twin, archive=False, twin_of=of)
        kept = (self._blocks or {}).get(before.content_hash)
        if kept is not None and read.document is not None:
            # boilerplate is learned from the HTML also where the document is markdown
            self._keep(read.document, kept)
        return read

    def _keep(self, document: IndexedDocument | None, blocks: bytes) -> None:
        if self._blocks is None or document is None or len(self._blocks) >= MAX_BLOCK_PAGES:
            return
        if 0 < len(blocks) <= MAX_BLOCK_BYTES:
            self._blocks[document.content_hash] = blocks

    async def _request(self, header: dict[str, Any], body: bytes) -> Answer:
        context = self._context
        return await self._sandboxes.request(header, body, context=context, user=context.key)


def _page_header(response: Response) -> dict[str, Any]:
    return {
        "url": response.url,
        "content_type": scalar_values(response.headers.get("Content-Type", "")) or None,
        # bytes that are no UTF-8 arrive as surrogates, which no JSON can carry
        "headers": [(scalar_values(n), scalar_values(v)) for n, v in response.headers.items()],
    }


def _unpack_blocks(packed: bytes) -> list[Block]:
    from forager.extract.content.repeated import Block  # what reads pages is not for every runner

    return [
        Block(element, place, text, tuple(links), *verdicts)
        for element, place, text, links, *verdicts in orjson.loads(packed)
    ]


def _extracted(answer: dict[str, Any], blobs: list[bytes]) -> Extracted:
    content_hash, frame, links, keys, outlinks, document, _ = blobs
    return Extracted(
        content_hash=content_hash or None,
        frame=frame or None,
        links=PageLinks(links, keys, answer.pop("followed")),
        outlinks=outlinks or None,
        document=unpack_document(document) if document else None,
        **answer,
    )
