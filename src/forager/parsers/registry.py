"""The registry of parsers, and the choice of the parser for a page."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from types import FrameType, TracebackType
from typing import TextIO

from forager.errors import NotFound
from forager.extract.product.extract import extract_product
from forager.extract.product.page import ProductPage
from forager.extract.product.places import LearnedPlace
from forager.extract.product.product import FieldName, Product
from forager.hints import Hint, action
from forager.parsers.parser import FieldProblem, ParserTimedOut, SiteParser
from forager.parsers.pattern import GENERIC_NAME, GENERIC_VERSION, version_key
from forager.parsers.plugins import BrokenPlugin, Plugin, installed_plugins, named_plugins

# instead of a version: pages of this parser are read generically
BYPASSED = "bypassed"


@dataclass(frozen=True, slots=True)
class ParsedProduct:
    """The product of a page, and the parser that read it.

    `problems` are fields whose methods raised or whose values were refused: `product` has no value
    for them. `fallbacks` are fields that the parser did not find and the generic extraction did.
    """

    product: Product
    parser: str
    version: str
    problems: tuple[FieldProblem, ...] = ()
    fallbacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParserVersion:
    """A parser that is installed."""

    name: str
    version: str
    patterns: tuple[str, ...]
    origin: str


@dataclass(frozen=True, slots=True)
class Registry:
    """Parsers by name and version, oldest first; `broken` ones could not be loaded."""

    plugins: Mapping[str, dict[str, Plugin]]
    broken: tuple[BrokenPlugin, ...] = ()

    def chosen(self, url: str, versions: Mapping[str, str] | None = None) -> str:
        """The name of the parser for a URL: highest priority, then the most telling pattern.

        Patterns count as the version that would read has them.
        """
        best, chosen = (-(10**9), -1), GENERIC_NAME
        for name in self.plugins:
            if versions and versions.get(name) == BYPASSED:
                continue
            parser = self.in_version(name, versions.get(name) if versions else None)
            rank = _rank(parser, url) if parser else None
            if rank is not None and rank > best:
                best, chosen = rank, name
        return chosen

    def in_version(self, name: str, version: str | None) -> type[SiteParser] | None:
        """The class; the newest version if the requested one is not installed."""
        versions = self.plugins.get(name)
        if not versions:
            return None
        if version is None or version not in versions:
            return next(reversed(versions.values())).parser
        return versions[version].parser

    def versions(self, name: str) -> tuple[str, ...]:
        """The versions of a parser, oldest first; empty for an unknown one."""
        if name == GENERIC_NAME:
            return (GENERIC_VERSION,)
        return tuple(self.plugins.get(name, ()))


def _rank(parser: type[SiteParser], url: str) -> tuple[int, int] | None:
    fitting = [pattern.weight for pattern in parser.compiled_patterns if pattern.matches(url)]
    return (parser.priority, max(fitting)) if fitting else None


def build_registry(modules: Iterable[str] = ()) -> Registry:
    """Load all parsers; those that fail are in `broken`."""
    plugins: dict[str, dict[str, Plugin]] = {}
    broken: list[BrokenPlugin] = []
    with prints_to_stderr:
        candidates = [*installed_plugins(), *named_plugins(modules)]
    for found in candidates:
        problem = found if isinstance(found, BrokenPlugin) else _add(plugins, found)
        if problem is not None:
            broken.append(problem)
    return Registry({name: _by_age(each) for name, each in plugins.items()}, tuple(broken))


def _by_age(versions: Mapping[str, Plugin]) -> dict[str, Plugin]:
    return {version: versions[version] for version in sorted(versions, key=version_key)}


def _add(plugins: dict[str, dict[str, Plugin]], plugin: Plugin) -> BrokenPlugin | None:
    parser = plugin.parser
    if parser.name == GENERIC_NAME:
        return BrokenPlugin(plugin.origin, f"a parser cannot be called {GENERIC_NAME}")
    known = plugins.setdefault(parser.name, {}).setdefault(parser.version, plugin)
    if known.parser is parser:
        return None
    return BrokenPlugin(
        plugin.origin, f"{parser.name} {parser.version} is there already, from {known.origin}"
    )


_modules: tuple[str, ...] = ()


def load_parsers(modules: Iterable[str] = ()) -> Registry:
    """Also use the parsers of these modules (setting `parser_modules`) in this process."""
    global _modules
    _modules = tuple(dict.fromkeys((*_modules, *modules)))
    return registry()


def loaded_modules() -> tuple[str, ...]:
    """The modules that another process must load to have the same parsers."""
    return _modules


def registry() -> Registry:
    """The parsers that are loaded in this process."""
    return _registry(_modules)


@cache
def _registry(modules: tuple[str, ...]) -> Registry:
    return build_registry(modules)


def installed_versions() -> dict[str, list[str]]:
    """The versions of each plug-in, newest last."""
    return {name: list(versions) for name, versions in registry().plugins.items()}


def all_parsers() -> list[ParserVersion]:
    """All versions of all parsers, the generic extraction included."""
    known = registry()
    found = [
        ParserVersion(name, version, plugin.parser.patterns, plugin.origin)
        for name, versions in known.plugins.items()
        for version, plugin in versions.items()
    ]
    found.append(ParserVersion(GENERIC_NAME, GENERIC_VERSION, ("*/*",), "forager"))
    return sorted(found, key=lambda each: (each.name, version_key(each.version)))


def find(name: str, version: str | None = None) -> str:
    """The requested version, or the newest one."""
    versions = registry().versions(name)
    if not versions:
        raise NotFound(
            f"there is no parser {name!r}",
            hint=Hint("{} lists installed parsers.", action("parsers list")),
        )
    if version is not None and version not in versions:
        raise NotFound(
            f"parser {name} has no version {version}", hint=f"Installed: {', '.join(versions)}."
        )
    return version or versions[-1]


def is_included(name: str) -> bool:
    """Whether a parser is part of Forager."""
    plugins = registry().plugins.get(name, {})
    return any(each.parser.__module__.startswith("forager.") for each in plugins.values())


def chosen_parser(url: str, versions: Mapping[str, str] | None = None) -> str:
    """The name of the parser that reads the pages of a URL."""
    return registry().chosen(url, versions)


def parse_product(
    page: ProductPage,
    versions: Mapping[str, str] | None = None,
    place: LearnedPlace | None = None,
    *,
    seconds: float | None = None,
) -> ParsedProduct:
    """Read a page with the best parser for its URL, in the version that `versions` names for it.

    ParserTimedOut if a site parser takes more than `seconds`.

    Without a name there, in its newest version. A version that is not installed here is replaced
    by the newest too: the answer says which one has read the page.
    """
    known = registry()
    name = known.chosen(page.url, versions)
    parser = known.in_version(name, (versions or {}).get(name))
    if parser is None:
        return ParsedProduct(extract_product(page, place=place), GENERIC_NAME, GENERIC_VERSION)
    with prints_to_stderr, time_limit(seconds):
        reading = parser.read(page)
    product = without(extract_product(page, reading.facts, place), reading.absent)
    product = withhold(product, [FieldName(problem.field) for problem in reading.problems])
    fallbacks = tuple(field.value for field in reading.unread if field in product.evidence)
    return ParsedProduct(product, parser.name, parser.version, reading.problems, fallbacks)


_MONEY = (FieldName.PRICE, FieldName.LIST_PRICE, FieldName.CURRENCY)


def withhold(product: Product, fields: Sequence[FieldName]) -> Product:
    """The product without fields that only its parser can read; the name stays, to tell products.

    An amount of the generic extraction is no substitute for one that a parser corrects, and a
    price in another currency is another price.
    """
    money = _MONEY if {FieldName.PRICE, FieldName.CURRENCY} & set(fields) else ()
    return without(product, tuple(f for f in (*fields, *money) if f is not FieldName.NAME))


def without(product: Product, absent: tuple[FieldName, ...]) -> Product:
    """The product without the fields that a parser says do not exist."""
    if not absent:
        return product
    evidence = {name: said for name, said in product.evidence.items() if name not in absent}
    empty = Product()
    gone = {field.value: getattr(empty, field.value) for field in absent}
    return replace(product, evidence=evidence, **gone)


# waiting, as for a lock, is limited less strictly than processor time
_WAITING = 4


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise ParserTimedOut in the main thread of a sandboxed process after this processor time."""
    if seconds is None:
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise ParserTimedOut(f"the parser took more than {seconds:g} s")

    handlers = {each: signal.signal(each, stop) for each in (signal.SIGPROF, signal.SIGALRM)}
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds * _WAITING)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)


class PrintsToStderr:
    """Redirects prints of all threads to standard error."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._stdout: TextIO | None = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._stdout, sys.stdout = sys.stdout, sys.stderr
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._stdout is not None:
                sys.stdout, self._stdout = self._stdout, None


prints_to_stderr = PrintsToStderr()
