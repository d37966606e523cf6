"""The scaffold of a new parser: a module, and a first fixture."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from forager.errors import InvalidInput
from forager.extract.product.page import open_page
from forager.extract.product.product import to_plain
from forager.extract.urls import Refusal, normalize
from forager.parsers.fixtures import Fixture, write_fixture, write_new
from forager.parsers.page_cache import CachedPage
from forager.parsers.parser import PARSER_NAME
from forager.parsers.pattern import UrlPattern
from forager.parsers.registry import parse_product

# the fields of a first fixture, without long texts and lists
_EXPECTED = (
    "name", "price", "list_price", "currency", "availability", "rating", "review_count", "brand",
    "category", "sku", "gtin", "mpn",
)  # fmt: skip

_MODULE = '''"""Product pages of {title}."""

from __future__ import annotations

from decimal import Decimal

from forager.parsers.parser import SiteParser


class {class_name}(SiteParser):
    name = "{name}"
    version = "1"
    patterns = ({patterns},)

    # One method for each field that the generic extraction gets wrong, and no other.
    def price(self) -> Decimal | None:
        return self.amount(".price")
'''


@dataclass(frozen=True, slots=True)
class Scaffold:
    """The written files, and the entry for pyproject.toml."""

    module: Path
    fixture: Path | None
    entry_point: str


def write_parser(
    name: str, patterns: tuple[str, ...], folder: Path, page: CachedPage | None = None
) -> Scaffold:
    """Write `NAME_parser.py` and, from a page, `fixtures/NAME/first`; overwrite nothing."""
    _check(name, patterns, page)
    module = f"{name.replace('-', '_')}_parser"
    path = folder / f"{module}.py"
    source = _MODULE.format(
        title=name,
        class_name=_class_name(name),
        name=name,
        patterns=", ".join(f'"{pattern}"' for pattern in patterns),
    )
    write_new(path, source.encode())
    fixture = write_first_fixture(name, folder, page) if page else None
    # the module, not the class, so that later versions in it are found as well
    entry = f'[project.entry-points."forager.parsers"]\n{name} = "{module}"'
    return Scaffold(path, fixture.path if fixture else None, entry)


def _check(name: str, patterns: tuple[str, ...], page: CachedPage | None) -> None:
    if not PARSER_NAME.fullmatch(name):
        raise InvalidInput(
            f"{name!r} cannot be the name of a parser",
            hint="Use lower-case letters, digits, - and _.",
        )
    compiled = [UrlPattern.compile(pattern) for pattern in patterns]
    url = normalize(page.url) if page else None
    if isinstance(url, Refusal):
        raise InvalidInput(f"{page.url if page else ''} is not the address of a page")
    if url is not None and not any(pattern.matches(url) for pattern in compiled):
        raise InvalidInput(
            f"{url} does not fit {', '.join(patterns)}",
            hint="A pattern is a host and a path: shop.example/item/*",
        )


def write_first_fixture(name: str, folder: Path, page: CachedPage) -> Fixture:
    """Write a page with its current values, which a developer corrects."""
    content_type = page.content_type or "text/html; charset=utf-8"
    found = to_plain(parse_product(open_page(page.body, page.url, content_type)).product)
    given = {
        "url": page.url,
        "content_type": content_type,
        "parser": name,
        "expected": {field: found.get(field) for field in _EXPECTED},
    }
    return write_fixture(folder / "fixtures" / name, "first", page.body, given)


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in re.split("[-_]", name)) + "Parser"
