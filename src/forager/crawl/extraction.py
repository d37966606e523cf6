"""The runner's side of extraction: a few processes, each with a time and a memory limit."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Self

import orjson

from forager.crawl.frames import (
    OUT_OF_MEMORY,
    PREFIX,
    READY,
    decode_frame,
    encode_frame,
    frame_lengths,
)
from forager.crawl.links import PageLinks
from forager.crawl.reading import ReadDocument, unpack_document
from forager.errors import ErrorKind, GiveUp
from forager.extract.text import scalar_values
from forager.fetch.response import Response

# pages that wait inside one process: enough to keep it busy while the loop does something else
QUEUE_LENGTH = 8
MODULE = "forager.crawl.extractor"
# importing takes half a second, unless the machine is very busy
START_LIMIT = 60.0


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    processes: int = 1
    seconds: float = 20.0
    memory_mb: int = 1024


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


class ExtractionPool:
    """Pages in, facts out. A page that breaks a limit fails; its process is replaced."""

    def __init__(
        self,
        limits: ExtractionLimits,
        *,
        seeds: tuple[str, ...],
        scope: str,
        agent: str,
        documents: bool = True,
    ) -> None:
        self._limits = limits
        self._setup = {
            "scope": scope,
            "agent": agent,
            "documents": documents,
            "memory_mb": limits.memory_mb,
        }
        self._seeds = seeds
        self._numbers = count()
        self._processes: list[_Process] = []

    async def __aenter__(self) -> Self:
        self._processes = [
            await _Process.start(self._argument(), self._limits)
            for _ in range(self._limits.processes)
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._processes:
            await process.stop()

    def add_seed(self, seed: str) -> None:
        """A new seed widens the scope, for all pages that are sent from now on."""
        self._seeds = (*self._seeds, seed)
        for process in self._processes:
            process.tell(encode_frame({"seed": seed}, []), self._argument())

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
        process = min(self._processes, key=lambda p: p.load)
        answer, blobs = await process.ask(number, header, response.body)
        if "error" in answer:
            raise GiveUp(f"the page cannot be read: {answer['error']}", kind=ErrorKind.PARSE)
        return _extracted(answer, blobs)

    def _argument(self) -> bytes:
        return orjson.dumps({**self._setup, "seeds": self._seeds})


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
    )


Answer = tuple[dict[str, Any], list[bytes]]


@dataclass(slots=True)
class _Question:
    message: bytes
    answer: asyncio.Future[Answer]


class _Process:
    """One extraction process and the pages it has been given, in order."""

    def __init__(self, argument: bytes, limits: ExtractionLimits) -> None:
        self._argument = argument
        self._limits = limits
        self._waiting: OrderedDict[int, _Question] = OrderedDict()
        self._room = asyncio.Semaphore(QUEUE_LENGTH)
        # when the process turned to the page it is working on
        self._turned_at = time.monotonic()
        self._child: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._ready = False
        self._too_slow = False
        # pages that this very process has answered
        self._answered = 0

    @classmethod
    async def start(cls, argument: bytes, limits: ExtractionLimits) -> Self:
        process = cls(argument, limits)
        await process._spawn()
        process._tasks = [
            asyncio.create_task(process._serve()),
            asyncio.create_task(process._watch()),
        ]
        return process

    @property
    def load(self) -> int:
        return len(self._waiting)

    async def ask(self, number: int, header: dict[str, Any], body: bytes) -> Answer:
        async with self._room:
            # only now: pages may be large, and many may wait
            message = encode_frame(header, [body])
            question = _Question(message, asyncio.get_running_loop().create_future())
            if not self._waiting:
                self._turned_at = time.monotonic()
            self._waiting[number] = question
            self._send(message)
            return await question.answer

    def tell(self, message: bytes, argument: bytes) -> None:
        """Something that concerns all later pages; `argument` says it to a process that starts."""
        self._argument = argument
        self._send(message)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._kill()
        if self._child is not None:
            await self._child.wait()

    async def _spawn(self) -> None:
        self._ready = self._too_slow = False
        self._answered = 0
        self._turned_at = time.monotonic()
        self._child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            MODULE,
            self._argument,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**20,
        )

    def _send(self, message: bytes) -> None:
        assert self._child is not None
        assert self._child.stdin is not None
        # a process that died is noticed by the reader, which sends everything again
        with contextlib.suppress(OSError, RuntimeError):
            self._child.stdin.write(message)

    async def _serve(self) -> None:
        """Read answers until the process dies; then blame its page, and go on with a new one."""
        while True:
            await self._read_answers()
            assert self._child is not None
            code = await self._child.wait()
            # what earlier pages left behind may be to blame: a page gets a second chance, alone
            if self._too_slow or not self._answered:
                self._blame_current(self._cause(code))
            await self._spawn()
            for question in self._waiting.values():
                self._send(question.message)

    async def _read_answers(self) -> None:
        assert self._child is not None
        assert self._child.stdout is not None
        stream = self._child.stdout
        with contextlib.suppress(asyncio.IncompleteReadError, OSError, ValueError):
            while True:
                head, body = frame_lengths(await stream.readexactly(PREFIX))
                header, blobs = decode_frame(
                    await stream.readexactly(head), await stream.readexactly(body)
                )
                self._turned_at = time.monotonic()
                if header == READY:
                    self._ready = True
                    continue
                self._answered += 1
                question = self._waiting.pop(header.pop("id"))
                if not question.answer.done():
                    question.answer.set_result((header, blobs))
        self._kill()

    async def _watch(self) -> None:
        """End a process that has been at one page for too long."""
        while True:
            await asyncio.sleep(min(1.0, self._limits.seconds / 4))
            limit = self._limits.seconds if self._ready else START_LIMIT
            if self._waiting and time.monotonic() - self._turned_at > limit:
                self._too_slow = True
                self._kill()

    def _blame_current(self, cause: str) -> None:
        if not self._waiting:
            return
        _, question = self._waiting.popitem(last=False)
        if not question.answer.done():
            question.answer.set_exception(
                GiveUp(f"the page cannot be read: {cause}", kind=ErrorKind.PARSE)
            )

    def _kill(self) -> None:
        if self._child is not None and self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._child.kill()

    def _cause(self, code: int) -> str:
        if self._too_slow:
            return f"it takes longer than {self._limits.seconds:g} s"
        if code == OUT_OF_MEMORY:
            return f"it needs more than {self._limits.memory_mb} MB"
        return f"extraction ended with code {code}"
