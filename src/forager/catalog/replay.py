"""Archived pages read again, in processes with limits and without one request to the web."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count

import orjson

from forager.archive.reader import ArchivedResponse
from forager.errors import GiveUp
from forager.extract.product.plain import from_plain
from forager.extract.product.record import Product
from forager.extract.text import scalar_values
from forager.parsers.registry import loaded_modules
from forager.sandbox.process import Sandbox, SandboxLimits
from forager.settings import Settings

MODULE = "forager.catalog.replay_process"


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one version made of one page; without a product, `error` says why."""

    parser: str
    version: str
    product: Product | None
    error: str | None = None
    problems: tuple[str, ...] = ()
    seconds: float = 0.0


class Replay:
    """Pages in, products out. A version that hangs or eats its memory fails at that page."""

    def __init__(self, processes: list[Sandbox]) -> None:
        self._processes = processes
        self._numbers = count()

    @property
    def width(self) -> int:
        return len(self._processes)

    async def read(self, page: ArchivedResponse, parser: str, version: str) -> Replayed:
        number = next(self._numbers)
        header = {
            "id": number,
            "url": scalar_values(page.url),
            "content_type": scalar_values(_header(page, "content-type")) or None,
            "versions": {parser: version},
        }
        process = min(self._processes, key=lambda process: process.load)
        try:
            answer, _ = await process.ask(number, header, page.body)
        except GiveUp as error:
            return Replayed(parser, version, None, error.message)
        if "error" in answer:
            return Replayed(parser, version, None, answer["error"])
        return Replayed(
            answer["parser"],
            answer["version"],
            from_plain(answer["product"]),
            problems=tuple(answer["problems"]),
            seconds=answer["seconds"],
        )


def _header(page: ArchivedResponse, wanted: str) -> str:
    return next((value for name, value in page.headers if name.lower() == wanted), "")


@asynccontextmanager
async def open_replay(settings: Settings) -> AsyncIterator[Replay]:
    """A few processes with the limits of extraction, and the parsers of this one."""
    limits = SandboxLimits(
        processes=settings.extraction_processes or max(1, (os.cpu_count() or 2) // 2),
        seconds=settings.extraction_time_limit,
        memory_mb=settings.extraction_memory_mb,
    )
    argument = orjson.dumps(_setup(settings, limits))
    async with contextlib.AsyncExitStack() as stack:
        processes = []
        for _ in range(limits.processes):
            process = await Sandbox.start(MODULE, argument, limits)
            stack.push_async_callback(process.stop)
            processes.append(process)
        yield Replay(processes)


def _setup(settings: Settings, limits: SandboxLimits) -> Mapping[str, object]:
    modules = dict.fromkeys((*settings.parser_modules, *loaded_modules()))
    return {"modules": list(modules), "memory_mb": limits.memory_mb}
