"""Site parsers: what one shop says in its own way, one method per field."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from selectolax.lexbor import LexborNode

from forager.errors import InvalidInput
from forager.extract.product.page import ProductPage
from forager.extract.product.price import Money, money_in
from forager.extract.product.record import Fact, FieldName
from forager.parsers.pattern import UrlPattern, version_key
from forager.parsers.values import usable

PARSER_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
# a parser was written for the shop
CONFIDENCE = 0.99
_MAX_TEXT = 20_000
_SILENT = frozenset(["script", "style", "noscript", "template"])
_SILENT_SELECTOR = ", ".join(sorted(_SILENT))
# "#price" and "#price .amount": one place of the page, or what stands in it. Not "#price .a .b":
# asked of an element, the `.a` of that may also stand around it.
_PLACE = re.compile(r"#([A-Za-z_][\w-]*)(?:\s+([^\s,>+~#]+))?")
# a product's name is `product_name` here: `name` is the parser's own
FIELD_METHODS = {
    "product_name" if field is FieldName.NAME else field.value: field for field in FieldName
}


class Absent:
    """The type of ABSENT."""

    def __repr__(self) -> str:
        return "ABSENT"


# for a field that the page does not have, whatever the generic extraction finds
ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A field whose method broke, or returned what is no value of it."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a parser says of one page."""

    facts: tuple[Fact, ...] = ()
    absent: tuple[FieldName, ...] = ()
    problems: tuple[FieldProblem, ...] = ()
    # fields whose methods found nothing: the generic extraction fills them if it can
    unread: tuple[FieldName, ...] = ()


class SiteParser:
    """The base of all site parsers. An instance reads one page.

    A subclass names itself and has a method for each field that it knows better than the generic
    extraction: `price`, `list_price`, `currency`, `availability`, `rating`, `review_count`,
    `brand`, `category`, `sku`, `gtin`, `mpn`, `product_id`, `variant_id`, `images`, `variants`,
    `description`, `product_name`.
    None leaves a field to the generic extraction; ABSENT says that there is none.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    # see `UrlPattern`
    patterns: ClassVar[tuple[str, ...]] = ()
    # of two parsers that fit a page, the one with the higher priority reads it
    priority: ClassVar[int] = 0
    compiled_patterns: ClassVar[tuple[UrlPattern, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if isinstance(getattr(cls, "name", None), str):
            _check(cls)
            cls.compiled_patterns = tuple(map(UrlPattern.compile, cls.patterns))

    def __init__(self, page: ProductPage) -> None:
        self.page = page

    @classmethod
    def facts(cls, page: ProductPage) -> tuple[Fact, ...]:
        return cls.read(page).facts

    @classmethod
    def read(cls, page: ProductPage) -> Reading:
        """Everything its methods say; one that raises costs its own field only."""
        parser = cls(page)
        facts: list[Fact] = []
        absent: list[FieldName] = []
        problems: list[FieldProblem] = []
        unread: list[FieldName] = []
        for field, method in parser._methods():
            try:
                value = method()
                if value is ABSENT:
                    absent.append(field)
                elif value is None or value == ():
                    unread.append(field)
                else:
                    kept = usable(field, value, page)
                    facts.append(Fact(field, kept, CONFIDENCE, f"parser:{cls.name}"))
            except MemoryError:
                raise
            except (
                Exception,
                SystemExit,
            ) as error:  # a plug-in may raise anything, and the other fields stand
                problems.append(FieldProblem(field, f"{type(error).__name__}: {error}"[:500]))
        return Reading(tuple(facts), tuple(absent), tuple(problems), tuple(unread))

    def _methods(self) -> Iterator[tuple[FieldName, Callable[[], Any]]]:
        for name, field in FIELD_METHODS.items():
            if callable(method := getattr(self, name, None)):
                yield field, method

    @property
    def currency_hints(self) -> tuple[str, ...]:
        """What a `$` means here; a parser that knows its shop may know better than the page."""
        return self.page.currency_hints

    # --- what most methods need ------------------------------------------------------------------

    def nodes(self, *selectors: str) -> Iterator[LexborNode]:
        """The elements that fit the first selector, then the second, and so on."""
        for selector in selectors:
            place = _PLACE.fullmatch(selector)
            yield from self._inside(*place.groups()) if place else self.page.tree.css(selector)

    def _inside(self, identifier: str, selector: str | None) -> Iterator[LexborNode]:
        """What a query for an id finds, without a search through the whole page for each."""
        for node in self.page.by_id.get(identifier, ()):
            if selector is None:
                yield node
            else:
                yield from (each for each in node.css(selector) if each.mem_id != node.mem_id)

    def texts(self, *selectors: str) -> Iterator[str]:
        """The texts of the elements, in one line each, without the empty ones."""
        for node in self.nodes(*selectors):
            if text := visible_text(node):
                yield text

    def text(self, *selectors: str) -> str | None:
        """The first text that is not empty."""
        return next(self.texts(*selectors), None)

    def attribute(self, selector: str, name: str) -> str | None:
        """The first value of an attribute that is not empty."""
        values = (node.attributes.get(name) for node in self.nodes(selector))
        return next((value.strip() for value in values if value and value.strip()), None)

    def money(self, *selectors: str) -> Money | None:
        """The first text with an amount; within it, an amount with a currency comes first."""
        for text in self.texts(*selectors):
            amounts = list(money_in(text[:200], self.currency_hints))
            if amounts:
                return next((money for money in amounts if money.currency), amounts[0])
        return None

    def amount(self, *selectors: str) -> Decimal | None:
        found = self.money(*selectors)
        return found.amount if found else None


def visible_text(node: LexborNode) -> str:
    """The text of an element in one line, without its scripts and styles."""
    # most have none, and then the parser puts their text together
    if node.css_first(_SILENT_SELECTOR) is None:
        return " ".join(node.text(separator=" ")[:_MAX_TEXT].split())
    pieces: list[str] = []
    length = 0
    for inner in node.traverse(include_text=True):
        if inner.is_text_node and (inner.parent is None or inner.parent.tag not in _SILENT):
            pieces.append(inner.text_content or "")
            length += len(pieces[-1])
            if length > _MAX_TEXT:
                break
    return " ".join(" ".join(pieces)[:_MAX_TEXT].split())


def _check(parser: Any) -> None:
    if not PARSER_NAME.fullmatch(parser.name):
        raise InvalidInput(
            f"{parser.name!r} cannot be the name of a parser",
            hint="Use lower-case letters, digits, - and _.",
        )
    version_key(parser.version)
    if isinstance(parser.patterns, str) or not parser.patterns:
        raise InvalidInput(f"parser {parser.name}: patterns must be a tuple of URL patterns")
