"""The pool of sandboxed processes that parse product pages."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import orjson

from forager.errors import GiveUp, error_text
from forager.extract.hosts import host_of
from forager.extract.product.product import Product, from_plain
from forager.extract.text import scalar_values
from forager.metrics.catalog import EXTRACTION_SECONDS
from forager.parsers.page_cache import CachedPage
from forager.parsers.parser import FieldProblem
from forager.parsers.pattern import GENERIC_NAME
from forager.parsers.reader import used_parser
from forager.parsers.registry import chosen_parser, loaded_modules
from forager.processes.pool import SandboxPool
from forager.processes.sandbox import SandboxLimits
from forager.settings import Settings

MODULE = "forager.parsers.reader"


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result of one parser version for a page; without a product, the error."""

    parser: str
    version: str
    product: Product | None
    error: str | None
    # fields whose method failed, and those that the generic extraction supplied
    problems: tuple[FieldProblem, ...] = ()
    fallbacks: tuple[str, ...] = ()
    # fields that keep their known values: only the parser can read them, and it did not
    withheld: tuple[str, ...] = ()
    # name and version of the bypassed parser whose fields are withheld
    bypassed: tuple[str, str] | None = None
    language: str | None = None
    # of the canonical link
    canonical: str | None = None
    seconds: float = 0.0
    # a limit of the process was exceeded, or it died
    broke: bool = False
    # of an exception in the parser
    stack_trace: str | None = None
    # the visible text of a page without a price or a name, if the reader was asked for it
    text: str | None = None


@dataclass(frozen=True, slots=True)
class VersionReadings:
    """The results of the active version and of a canary."""

    active: Parsed
    canary: Parsed | None


class ReadingPool:
    """A page that exceeds a limit fails; its process is replaced. Processes start with a page."""

    def __init__(self, settings: Settings) -> None:
        limits = SandboxLimits.of_pages(settings)
        modules = dict.fromkeys((*settings.parser_modules, *loaded_modules()))
        argument = {"memory_mb": limits.memory_mb, "parser_modules": list(modules)}
        self.processes = limits.processes
        self._parser_seconds = settings.parser_time_limit
        self._with_text = settings.product_model != "off"
        self._sandboxes = SandboxPool(MODULE, orjson.dumps(argument), limits)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sandboxes.close()

    async def parse(self, page: CachedPage, versions: Mapping[str, str]) -> Parsed:
        """Parse a page; never raises an error because of a page or a parser.

        Site parsers take turns, and so do the hosts of the generic one. TurnRefused if `drop` is
        called while the page waits.
        """
        header: dict[str, Any] = {
            "url": scalar_values(page.url),
            "content_type": page.content_type,
            "versions": dict(versions),
            "seconds": self._parser_seconds,
            "place": asdict(page.place),
            "with_text": self._with_text,
        }
        began = time.perf_counter()
        try:
            user = _user(*used_parser(page.url, versions), page.url)
            answer, _ = await self._sandboxes.request(header, page.body, user=user)
        except GiveUp as error:
            answer = {"error": error.message}
        EXTRACTION_SECONDS.observe(time.perf_counter() - began, "product")
        if "parser" not in answer:  # it broke before one was chosen
            name, version = used_parser(page.url, versions)
            return Parsed(name, version, None, str(answer["error"]), broke=True)
        return _parsed(answer)

    def drop(self, parser: str, version: str) -> None:
        """Refuse the pages that wait for a version of a site parser."""
        self._sandboxes.drop((parser, version))


def _user(parser: str, version: str, url: str) -> Hashable:
    return host_of(url) if parser == GENERIC_NAME else (parser, version)


def tried_versions(
    url: str, active: Mapping[str, str], canary: Mapping[str, str] | None
) -> Mapping[str, str] | None:
    """The versions for a canary's reading; None if no canary applies to the URL."""
    if not canary:
        return None
    versions = {**active, **canary}
    return versions if chosen_parser(url, versions) in canary else None


def _parsed(answer: Mapping[str, Any]) -> Parsed:
    product, error = None, answer.get("error")
    try:
        product = from_plain(answer["product"]) if "product" in answer else None
    except ValueError as invalid:  # of a plug-in, whose values have any type
        error = f"the parser returned an invalid product: {error_text(invalid)}"
    problems = tuple(
        FieldProblem(str(field), str(words), trace)
        for field, words, trace in answer.get("problems", ())
    )
    return Parsed(
        answer["parser"],
        answer["version"],
        product,
        error,
        problems,
        tuple(map(str, answer.get("fallbacks", ()))),
        tuple(problem.field for problem in problems),
        language=answer["language"],
        canonical=answer["canonical"],
        seconds=answer["seconds"],
        broke=answer.get("broke", False),
        stack_trace=answer.get("stack_trace"),
        text=answer.get("text"),
    )
