"""Where parsers come from: entry points of installed packages, modules and files in settings."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from forager.errors import error_with_type
from forager.parsers.parser import SiteParser

GROUP = "forager.parsers"


@dataclass(frozen=True, slots=True)
class Plugin:
    """One version of a parser, and its package or module."""

    parser: type[SiteParser]
    origin: str


@dataclass(frozen=True, slots=True)
class BrokenPlugin:
    """A parser that could not be loaded."""

    origin: str
    reason: str


def installed_plugins() -> Iterator[Plugin | BrokenPlugin]:
    """The parsers of all installed packages, in a fixed order."""
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        yield from _plugins_of(_origin(entry), entry.load)


def named_plugins(modules: Iterable[str]) -> Iterator[Plugin | BrokenPlugin]:
    """The parsers of modules; a name that ends with `.py` is a file."""
    for name in modules:
        yield from _plugins_of(name, partial(_import, name))


def _import(name: str) -> ModuleType:
    if not name.endswith(".py"):
        return importlib.import_module(name)
    path = Path(name)
    spec = spec_from_file_location(f"forager_parser_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _origin(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


def _plugins_of(origin: str, load: Any) -> Iterator[Plugin | BrokenPlugin]:
    try:
        found = list(_parsers_in(load()))
    except (Exception, SystemExit) as error:  # whatever it does, the other parsers still work
        yield BrokenPlugin(origin, error_with_type(error)[:500])
        return
    if not found:
        yield BrokenPlugin(origin, "it has no SiteParser with a name")
    yield from (Plugin(parser, origin) for parser in found)


def _parsers_in(loaded: Any) -> Iterator[type[SiteParser]]:
    """A class itself, or every parser that a module defines or imports."""
    candidates = vars(loaded).values() if isinstance(loaded, ModuleType) else (loaded,)
    for candidate in candidates:
        if _is_parser(candidate):
            yield candidate


def _is_parser(candidate: Any) -> bool:
    return (
        isinstance(candidate, type)
        and issubclass(candidate, SiteParser)
        and isinstance(getattr(candidate, "name", None), str)
    )
