"""Fixtures of parsers: saved pages, and what must be read from them.

A fixture is two files side by side: `NAME.html` (or `NAME.html.gz`) and `NAME.json`.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import orjson

from forager.errors import InvalidInput, NotFound, error_text
from forager.extract.product.page import open_page
from forager.extract.product.product import FieldName, to_plain
from forager.parsers.registry import ParsedProduct, parse_product

_PAGES = (".html", ".html.gz")
_KEYS = frozenset(["url", "content_type", "parser", "version", "expected"])
_AMOUNTS = frozenset([FieldName.PRICE, FieldName.LIST_PRICE, FieldName.RATING])
_MAX_PAGE = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Fixture:
    """A page, and the expected values of some fields."""

    path: Path
    page: Path
    url: str
    content_type: str
    expected: Mapping[str, Any]
    # the required parser and version; by default any parser in its newest version
    parser: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """A field with an unexpected value; `origin` is where it was found."""

    field: str
    expected: Any
    found: Any
    origin: str | None = None

    def __str__(self) -> str:
        said = f" ({self.origin})" if self.origin else ""
        return f"{self.field}: expected {_shown(self.expected)}, found {_shown(self.found)}{said}"


def page_of(path: Path) -> Path | None:
    """The saved page of a fixture's JSON file; None if it is not a fixture."""
    stem = path.name.removesuffix(".json")
    pages = (path.with_name(stem + suffix) for suffix in _PAGES)
    return next((page for page in pages if page.is_file()), None)


def find_fixtures(paths: Iterable[Path]) -> Iterator[Fixture]:
    """All fixtures in these files and folders, in a fixed order."""
    for path in paths:
        if not path.exists():
            raise NotFound(f"there is no file or folder {path}")
        files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        for file in files:
            if page_of(file) is not None:
                yield load_fixture(file)
            elif not path.is_dir():
                raise InvalidInput(
                    f"{file} is not a fixture", hint="A fixture is a page.json beside a page.html."
                )


def load_fixture(path: Path) -> Fixture:
    """A fixture; raises NotFound without a saved page, and InvalidInput for another file."""
    page = page_of(path)
    if page is None:
        raise NotFound(f"{path} has no saved page beside it")
    try:
        given = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error_text(error)}") from None
    if not isinstance(given, dict) or not isinstance(given.get("url"), str):
        raise InvalidInput(f"{path} must be an object with a url and the expected fields")
    expected = given.get("expected", {})
    _refuse_unknown(path, set(given) - _KEYS)
    _refuse_unknown(path, set(expected) - set(FieldName))
    return Fixture(
        path=path,
        page=page,
        url=given["url"],
        content_type=given.get("content_type") or "text/html; charset=utf-8",
        expected=expected,
        parser=given.get("parser"),
        version=given.get("version"),
    )


def _refuse_unknown(path: Path, names: set[str]) -> None:
    if names:
        raise InvalidInput(
            f"{path} names {', '.join(sorted(names))}, which no fixture has",
            hint=f"Expected fields are: {', '.join(FieldName)}.",
        )


def read_page(path: Path) -> bytes:
    try:
        if not path.name.endswith(".gz"):
            return path.read_bytes()
        with gzip.open(path) as file:
            return file.read(_MAX_PAGE)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"{path} cannot be read: {error_text(error)}") from None


def check_fixture(fixture: Fixture) -> list[Difference]:
    """Parse the page; returns the differences."""
    page = open_page(read_page(fixture.page), fixture.url, fixture.content_type)
    versions = {fixture.parser: fixture.version} if fixture.parser and fixture.version else None
    parsed = parse_product(page, versions)
    return [*_reader_differences(fixture, parsed), *_field_differences(fixture, parsed)]


def _reader_differences(fixture: Fixture, parsed: ParsedProduct) -> Iterator[Difference]:
    if fixture.parser not in (None, parsed.parser):
        yield Difference("parser", fixture.parser, parsed.parser)
    elif fixture.version not in (None, parsed.version):
        yield Difference("version", fixture.version, parsed.version)
    for problem in parsed.problems:
        yield Difference(problem.field, "no error", problem.message, f"parser:{parsed.parser}")


def _field_differences(fixture: Fixture, parsed: ParsedProduct) -> Iterator[Difference]:
    found = to_plain(parsed.product)
    for field, expected in fixture.expected.items():
        if not _equal(field, expected, found.get(field)):
            evidence = parsed.product.evidence.get(field)
            origin = evidence.origin if evidence else None
            yield Difference(field, expected, _comparable(expected, found.get(field)), origin)


def _equal(field: str, expected: Any, found: Any) -> bool:
    if field in _AMOUNTS and expected is not None and found is not None:
        return _amount(expected) == _amount(found)
    if field == FieldName.CATEGORY and isinstance(expected, str):
        expected = [part.strip() for part in expected.split(">")]
    return bool((expected or None) == (_comparable(expected, found) or None))


def _comparable(expected: Any, found: Any) -> Any:
    """Images may be expected by their URLs only, and variants by some of their fields."""
    if not isinstance(expected, list) or not isinstance(found, list):
        return found
    if all(isinstance(item, str) for item in expected):
        return [item["url"] if isinstance(item, dict) else item for item in found]
    keys = {key for item in expected if isinstance(item, dict) for key in item}
    return [
        {key: item[key] for key in item if key in keys} if isinstance(item, dict) else item
        for item in found
    ]


def _amount(value: Any) -> Decimal | None:
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return None


def _shown(value: Any) -> str:
    return "nothing" if value is None else orjson.dumps(value).decode()


def write_fixture(folder: Path, stem: str, body: bytes, given: Mapping[str, Any]) -> Fixture:
    """Save a compressed page and its expected values; existing files are not overwritten."""
    path, page = folder / f"{stem}.json", folder / f"{stem}.html.gz"
    write_new(page, gzip.compress(body, mtime=0))
    write_new(path, orjson.dumps(given, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return load_fixture(path)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that must not exist."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        raise InvalidInput(
            f"{path} exists already", hint="Choose another name, or move it away."
        ) from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from None
