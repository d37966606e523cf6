"""The runner's side of extraction: a few processes, each with a time and a memory limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Self

import orjson

from forager.crawl.extraction.reading import ReadDocument, unpack_document
from forager.crawl.frontier.links import PageLinks
from forager.errors import ErrorKind, GiveUp
from forager.extract.text import scalar_values
from forager.fetch.response import Response
from forager.metrics.recorded import EXTRACTION_SECONDS
from forager.processes.frames import encode_frame
from forager.processes.sandbox import Sandbox, SandboxLimits

MODULE = "forager.crawl.extraction.process"


@dataclass(frozen=True, slots=True)
class Extracted:
    """What an extraction process says of one page."""

    kind: str
    title: str | None
    canonical: str | None
    refresh: tuple[str, float] | None
    noindex: bool
    needs_javascript: bool
    soft_error: str | None
    text_length: int
    truncated: tuple[str, ...]
    # how many links had a session id, and lost it
    sessions: int
    out_of_scope: Mapping[str, int]
    content_hash: bytes | None
    frame: bytes | None
    links: PageLinks
    outlinks: bytes | None
    # None for a page without content
    document: ReadDocument | None
    # whether it is the page of a product; never, unless the crawl looks for them
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
    ) -> None:
        self._limits = limits
        self._setup = {
            "scope": scope,
            "agent": agent,
            "documents": documents,
            "products": products,
            "parser_modules": list(parser_modules),
            "memory_mb": limits.memory_mb,
        }
        self._seeds = seeds
        self._numbers = count()
        self._processes: list[Sandbox] = []
        self._starting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
        for process in self._processes:
            await process.stop()

    def add_seed(self, seed: str) -> None:
        """A new seed widens the scope, for all pages that are sent from now on."""
        self._seeds = (*self._seeds, seed)
        for process in self._processes:
            process.tell(_seed_frame(seed), self._argument())

    async def extract(self, response: Response, *, archive: bool = True) -> Extracted:
        """Facts of one response; GiveUp if it cannot be read within the limits."""
        number = next(self._numbers)
        header = {
            "id": number,
            "url": response.url,
            "content_type": scalar_values(response.headers.get("Content-Type", "")) or None,
            # bytes that are no UTF-8 arrive as surrogates, which no JSON can carry
            "headers": [(scalar_values(n), scalar_values(v)) for n, v in response.headers.items()],
            "status": response.status,
            "reason": scalar_values(response.reason),
            "peer": response.peer,
            "protocol": f"http/{response.http_version}",
            "at": time.time(),
            "archive": archive,
        }
        process = min(await self._started(), key=lambda p: p.load)
        began = time.perf_counter()
        answer, blobs = await process.ask(number, header, response.body)
        EXTRACTION_SECONDS.observe(time.perf_counter() - began, "page")
        if "error" in answer:
            raise GiveUp(f"the page cannot be read: {answer['error']}", kind=ErrorKind.PARSE)
        return _extracted(answer, blobs)

    async def _started(self) -> list[Sandbox]:
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        if not self._starting.done():
            # a visit that is cancelled must not leave the others without processes
            await asyncio.shield(self._starting)
        self._starting.result()
        return self._processes

    async def _start(self) -> None:
        for _ in range(self._limits.processes):
            known = len(self._seeds)
            process = await Sandbox.start(MODULE, self._argument(), self._limits)
            self._processes.append(process)
            for seed in self._seeds[known:]:  # that came while it started
                process.tell(_seed_frame(seed), self._argument())

    def _argument(self) -> bytes:
        return orjson.dumps({**self._setup, "seeds": self._seeds})


def _seed_frame(seed: str) -> bytes:
    return encode_frame({"seed": seed}, [])


def _extracted(answer: dict[str, Any], blobs: list[bytes]) -> Extracted:
    content_hash, frame, links, keys, outlinks, document = blobs
    refresh = answer["refresh"]
    return Extracted(
        kind=answer["kind"],
        title=answer["title"],
        canonical=answer["canonical"],
        refresh=(refresh[0], refresh[1]) if refresh else None,
        noindex=answer["noindex"],
        needs_javascript=answer["needs_javascript"],
        soft_error=answer["soft_error"],
        text_length=answer["text_length"],
        truncated=tuple(answer["truncated"]),
        sessions=answer["sessions"],
        out_of_scope=answer["out_of_scope"],
        content_hash=content_hash or None,
        frame=frame or None,
        links=PageLinks(links, keys, answer["followed"]),
        outlinks=outlinks or None,
        document=unpack_document(document) if document else None,
        is_product=answer["product"],
    )
