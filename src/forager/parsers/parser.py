"""The base class of site parsers: one method per field."""

from __future__ import annotations

import dataclasses
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from selectolax.lexbor import LexborNode

from forager.errors import InvalidInput, error_with_type
from forager.extract.product.page import ProductPage
from forager.extract.product.price import Money, money_in
from forager.extract.product.product import Fact, FieldName
from forager.parsers.pattern import UrlPattern, version_key
from forager.parsers.values import usable

PARSER_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
CONFIDENCE = 0.99
_MAX_TEXT = 20_000
_MAX_TRACE = 4_000
_SILENT = frozenset(["script", "style", "noscript", "template"])
_SILENT_SELECTOR = ", ".join(sorted(_SILENT))
# "#price" and "#price .amount": an element with an id, or elements in it. Not "#price .a .b":
# relative to an element, `.a` may also match one of its ancestors.
_PLACE = re.compile(r"#([A-Za-z_][\w-]*)(?:\s+([^\s,>+~#]+))?")
# the name of a product is `product_name`, because `name` is that of the parser
FIELD_METHODS = {
    "product_name" if field is FieldName.NAME else field.value: field for field in FieldName
}


class Absent:
    """The type of ABSENT."""

    def __repr__(self) -> str:
        return "ABSENT"


# the page does not have this field, whatever the generic extraction finds
ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A field whose method failed, or returned an invalid value."""

    field: str
    message: str
    stack_trace: str | None = dataclasses.field(default=None, compare=False)


class ParserTimedOut(BaseException):
    """A site parser took too long for a page. A plug-in that catches exceptions misses it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of a parser for one page."""

    facts: tuple[Fact, ...] = ()
    absent: tuple[FieldName, ...] = ()
    problems: tuple[FieldProblem, ...] = ()
    # fields without a value, which the generic extraction supplies if it can
    unread: tuple[FieldName, ...] = ()


class SiteParser:
    """The base of all site parsers. An instance reads one page.

    A subclass names itself and has a method for each field that it knows better than the generic
    extraction: `price`, `list_price`, `currency`, `availability`, `rating`, `review_count`,
    `brand`, `category`, `sku`, `gtin`, `mpn`, `product_id`, `variant_id`, `images`, `variants`,
    `description`, `product_name`.
    None leaves a field to the generic extraction; ABSENT says that there is none. An exception in
    a method is recorded as a problem of its field, and the generic extraction supplies the value.

        class LampShop(SiteParser):
            name = "lampshop"
            patterns = ("lamps.example.org/p/*",)

            def price(self) -> Decimal | None:
                return self.amount("#price .now")
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    # see `UrlPattern`
    patterns: ClassVar[tuple[str, ...]] = ()
    # of several matching parsers, the one with the highest priority is used
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
        """The values that the parser read, without its problems."""
        return cls.read(page).facts

    @classmethod
    def read(cls, page: ProductPage) -> Reading:
        """Call all methods; an error affects only its own field."""
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
                message = error_with_type(error)[:500]
                trace = "".join(traceback.format_exception(error))[-_MAX_TRACE:]
                problems.append(FieldProblem(field, message, trace))
        return Reading(tuple(facts), tuple(absent), tuple(problems), tuple(unread))

    @classmethod
    def read_fields(cls) -> tuple[FieldName, ...]:
        """The fields that this parser reads."""
        named = FIELD_METHODS.items()
        return tuple(each for name, each in named if callable(getattr(cls, name, None)))

    def _methods(self) -> Iterator[tuple[FieldName, Callable[[], Any]]]:
        for name, field in FIELD_METHODS.items():
            if callable(method := getattr(self, name, None)):
                yield field, method

    @property
    def currency_hints(self) -> tuple[str, ...]:
        """The currencies that a `$` may mean on this page."""
        return self.page.currency_hints

    def nodes(self, *selectors: str) -> Iterator[LexborNode]:
        """The elements that match the first selector, then the second, and so on."""
        for selector in selectors:
            place = _PLACE.fullmatch(selector)
            yield from self._inside(*place.groups()) if place else self.page.tree.css(selector)

    def _inside(self, identifier: str, selector: str | None) -> Iterator[LexborNode]:
        """The result of a query for an id, without a search through the whole page."""
        for node in self.page.by_id.get(identifier, ()):
            if selector is None:
                yield node
            else:
                yield from (each for each in node.css(selector) if each.mem_id != node.mem_id)

    def texts(self, *selectors: str) -> Iterator[str]:
        """The texts of the elements, one line each, without empty ones."""
        for node in self.nodes(*selectors):
            if text := visible_text(node):
                yield text

    def text(self, *selectors: str) -> str | None:
        """The text of the first element that has one."""
        return next(self.texts(*selectors), None)

    def attribute(self, selector: str, name: str) -> str | None:
        """The first value of an attribute that is not empty."""
        values = (node.attributes.get(name) for node in self.nodes(selector))
        return next((value.strip() for value in values if value and value.strip()), None)

    def money(self, *selectors: str) -> Money | None:
        """The first amount; one with a currency is preferred."""
        for text in self.texts(*selectors):
            amounts = list(money_in(text[:200], self.currency_hints))
            if amounts:
                return next((money for money in amounts if money.currency), amounts[0])
        return None

    def amount(self, *selectors: str) -> Decimal | None:
        """The first amount without its currency, as `money` finds it."""
        found = self.money(*selectors)
        return found.amount if found else None


def visible_text(node: LexborNode) -> str:
    """The text of an element in one line, without scripts and styles."""
    # faster, for the usual element without scripts
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
