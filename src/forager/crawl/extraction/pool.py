"""The pool of extraction processes, each with a time and a memory limit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import orjson

from forager.crawl.extraction.reading import unpack_document
from forager.crawl.frontier.entry import PageLinks
from forager.documents.page import IndexedDocument
from forager.errors import ErrorKind, GiveUp
from forager.extract.text import scalar_values
from forager.fetch.response import Response
from forager.metrics.recorded import EXTRACTION_SECONDS
from forager.processes.pool import SandboxPool
from forager.processes.sandbox import SandboxLimits

if TYPE_CHECKING:
    from forager.extract.content.repeated import Block

MODULE = "forager.crawl.extraction.process"


@dataclass(frozen=True, slots=True)
class Extracted:
    """The facts about one page; those without bytes have the names of the response's header."""

    kind: str
    title: str | None
    canonical: str | None
    # URL and delay of a redirect in the page
    refresh: Sequence[Any] | None
    noindex: bool
    needs_javascript: bool
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
    # whether it is a product page; always false unless the crawl tracks products
    is_product: bool


class ExtractionPool:
    """Pages in, facts out. A page that breaks a limit fails; its process is replaced.

    Processes start with the first page: a refresh in which nothing changed needs none.
    """

    def __init__(
        self,
        limits: SandboxLimits,
        *,
        seeds: tuple[str, ...],
        scope: str,
        agent: str,
        documents: bool = True,
        products: bool = False,
        parser_modules: Sequence[str] = (),
        repeated: dict[str, Any] | None = None,
    ) -> None:
        self._setup = {
            "scope": scope,
            "agent": agent,
            "documents": documents,
            "products": products,
            "parser_modules": list(parser_modules),
            "memory_mb": limits.memory_mb,
        }
        self._seeds = seeds
        self._repeated: dict[str, Any] | None = repeated
        self._sandboxes = SandboxPool(MODULE, self._argument(), limits)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sandboxes.close()

    def add_seed(self, seed: str) -> None:
        """A new seed widens the scope, for all pages that are sent from now on."""
        self._seeds = (*self._seeds, seed)
        self._sandboxes.update({"seed": seed}, self._argument())

    def use_repeated(self, repeated: dict[str, Any]) -> None:
        """Remove repeated blocks of the source from all pages from now on."""
        self._repeated = repeated
        self._sandboxes.update({"repeated": repeated}, self._argument())

    async def blocks_of(self, response: Response) -> list[Block]:
        """The blocks of a page of a sample."""
        from forager.extract.content.repeated import Block

        header = _page_header(response)
        answer, blobs = await self._sandboxes.request({**header, "sample": True}, response.body)
        if "error" in answer:
            raise GiveUp(f"the page cannot be read: {answer['error']}", kind=ErrorKind.PARSE)
        blocks = [Block(*fields) for fields in orjson.loads(blobs[0])]
        return [replace(block, links=tuple(block.links)) for block in blocks]

    async def extract(
        self, response: Response, *, archive: bool = True, links: Sequence[str] = ()
    ) -> Extracted:
        """Facts of one response; GiveUp if it cannot be read within the limits.

        `links` are those that the page has besides the ones in its body.
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
        }
        await self._sandboxes.start()
        began = time.perf_counter()
        answer, blobs = await self._sandboxes.request(header, response.body)
        EXTRACTION_SECONDS.observe(time.perf_counter() - began, "page")
        if "error" in answer:
            raise GiveUp(f"the page cannot be read: {answer['error']}", kind=ErrorKind.PARSE)
        return _extracted(answer, blobs)

    def _argument(self) -> bytes:
        return orjson.dumps({**self._setup, "seeds": self._seeds, "repeated": self._repeated})


def _page_header(response: Response) -> dict[str, Any]:
    return {
        "url": response.url,
        "content_type": scalar_values(response.headers.get("Content-Type", "")) or None,
        # bytes that are no UTF-8 arrive as surrogates, which no JSON can carry
        "headers": [(scalar_values(n), scalar_values(v)) for n, v in response.headers.items()],
    }


def _extracted(answer: dict[str, Any], blobs: list[bytes]) -> Extracted:
    content_hash, frame, links, keys, outlinks, document = blobs
    return Extracted(
        content_hash=content_hash or None,
        frame=frame or None,
        links=PageLinks(links, keys, answer.pop("followed")),
        outlinks=outlinks or None,
        document=unpack_document(document) if document else None,
        **answer,
    )
