"""The worker's side of reading: a few sandboxed processes, pages in, products out."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Self

import orjson

from forager.errors import GiveUp
from forager.extract.product.plain import from_plain
from forager.extract.product.record import Product
from forager.extract.text import scalar_values
from forager.metrics.recorded import EXTRACTION_SECONDS
from forager.parsers.page_cache import Page
from forager.parsers.parser import FieldProblem
from forager.parsers.reader import used_parser
from forager.parsers.registry import chosen_parser, loaded_modules
from forager.processes.sandbox import Sandbox, SandboxLimits
from forager.settings import Settings

MODULE = "forager.parsers.reader"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What one version of one parser made of a page; without a product, why not."""

    parser: str
    version: str
    product: Product | None
    error: str | None
    # fields that the parser broke at
    problems: tuple[FieldProblem, ...] = ()
    language: str | None = None
    seconds: float = 0.0
    # a limit of the process: time, memory, or its life
    broke: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What a page says, by the version that counts and by one on trial."""

    active: Parsed
    canary: Parsed | None


class ReadingPool:
    """A page that breaks a limit is one that cannot be read; its process is replaced."""

    def __init__(self, settings: Settings) -> None:
        self._limits = SandboxLimits(
            processes=settings.extraction_processes or max(1, (os.cpu_count() or 1) // 2),
            seconds=settings.extraction_time_limit,
            memory_mb=settings.extraction_memory_mb,
        )
        modules = dict.fromkeys((*settings.parser_modules, *loaded_modules()))
        self._argument = orjson.dumps(
            {"memory_mb": self._limits.memory_mb, "parser_modules": list(modules)}
        )
        self._numbers = count()
        self._processes: list[Sandbox] = []

    @property
    def processes(self) -> int:
        return self._limits.processes

    async def __aenter__(self) -> Self:
        starting = (
            Sandbox.start(MODULE, self._argument, self._limits)
            for _ in range(self._limits.processes)
        )
        self._processes = list(await asyncio.gather(*starting))
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._processes:
            await process.stop()

    async def parse(self, page: Page, versions: Mapping[str, str]) -> Parsed:
        """Never raises for what a page or a parser does."""
        number = next(self._numbers)
        header: dict[str, Any] = {
            "id": number,
            "url": scalar_values(page.url),
            "content_type": page.content_type,
            "versions": dict(versions),
        }
        process = min(self._processes, key=lambda p: p.load)
        began = time.perf_counter()
        try:
            answer, _ = await process.ask(number, header, page.body)
        except GiveUp as error:
            answer = {"error": error.message}
        EXTRACTION_SECONDS.observe(time.perf_counter() - began, "product")
        if "parser" not in answer:  # nobody came as far as choosing one
            name, version = used_parser(page.url, versions)
            return Parsed(name, version, None, str(answer["error"]), broke=True)
        return _parsed(answer)


def tried_versions(
    url: str, active: Mapping[str, str], canary: Mapping[str, str] | None
) -> Mapping[str, str] | None:
    """The versions of a second reading; None where none on trial would read pages of the URL."""
    if not canary:
        return None
    versions = {**active, **canary}
    return versions if chosen_parser(url, versions) in canary else None


def _parsed(answer: Mapping[str, Any]) -> Parsed:
    return Parsed(
        answer["parser"],
        answer["version"],
        from_plain(answer["product"]) if "product" in answer else None,
        answer.get("error"),
        tuple(FieldProblem(str(field), str(words)) for field, words in answer.get("problems", ())),
        answer["language"],
        answer["seconds"],
    )
