"""The elements of a page that may describe its product, found in one walk of the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias

from selectolax.lexbor import LexborHTMLParser, LexborNode

_MAX_KEPT = 1_500
_MAX_TEXT = 300
_MAX_TEXTS = 20_000
_MAX_NAMES = 400

# the number of elements that begin before a text, its node, and the text
Text: TypeAlias = tuple[int, LexborNode, str]


class Element(NamedTuple):
    """An element, its position in document order, and its names in lower case.

    These are its class and id, or its type if it was collected by its tag.
    """

    order: int
    node: LexborNode
    names: str = ""

    @property
    def attributes(self) -> dict[str, str | None]:
        """The attributes, read from the tree each time: keeping them costs more on most pages."""
        return self.node.attributes


# as `Element(...)`, in half the time
_element = partial(tuple.__new__, Element)


@dataclass(slots=True)
class Elements:
    """Elements by what they may describe; an element may be in several lists."""

    scripts: list[Element] = field(default_factory=list)
    metas: list[Element] = field(default_factory=list)
    headings: list[Element] = field(default_factory=list)
    microdata: list[Element] = field(default_factory=list)
    rdfa: list[Element] = field(default_factory=list)
    prices: list[Element] = field(default_factory=list)
    stocks: list[Element] = field(default_factory=list)
    skus: list[Element] = field(default_factory=list)
    crumbs: list[Element] = field(default_factory=list)
    brands: list[Element] = field(default_factory=list)
    ratings: list[Element] = field(default_factory=list)
    buys: list[Element] = field(default_factory=list)
    buttons: list[Element] = field(default_factory=list)
    inputs: list[Element] = field(default_factory=list)
    images: list[Element] = field(default_factory=list)
    bases: list[Element] = field(default_factory=list)
    links: list[Element] = field(default_factory=list)
    # the short texts of the body that are shown
    texts: list[Text] = field(default_factory=list)
    json_attributes: list[str] = field(default_factory=list)

    @property
    def canonicals(self) -> list[str]:
        """The canonical URLs of the page."""
        named = (e.attributes for e in self.links if e.attributes.get("rel") == "canonical")
        return [href for each in named if (href := each.get("href"))]


def collect_elements(tree: LexborHTMLParser) -> Elements:
    """Collect elements in one walk for all readers, instead of one query per kind."""
    found = Elements()
    by_tag = {tag: getattr(found, name) for tag, name in _LISTS.items()}
    by_kind: dict[str, list[Element]] = {kind: getattr(found, kind) for kind, _ in _KINDS}
    nodes = tree.root.traverse(include_text=True, skip_empty=True) if tree.root is not None else ()
    order, last, in_body = -1, 0, False
    # the loop runs for thousands of nodes, most of them irrelevant: only cheap checks here
    text_id, comment_id, body_id, silent, typed = _TEXT, _COMMENT, _BODY, _SILENT_TAGS, _TYPED
    class_kinds, id_kinds, is_plain = _CLASS_KINDS, _ID_KINDS, _TELLING.isdisjoint
    list_of, keep_text, element = by_tag.get, found.texts.append, _element
    for node in nodes:
        if (tag := node.tag_id) == text_id:
            # invisible text is the first node of its element, and may be long
            if in_body and not (last in silent and _is_silent(node.parent)):
                text = node.text_content or ""
                if len(text) < _MAX_TEXT and (text := text.strip()):
                    keep_text((order, node, text))
            continue
        last = tag
        if tag == comment_id:
            continue
        order += 1
        if tag == body_id:
            in_body = True
        attributes = node.attributes
        if (kept := list_of(tag)) is not None:
            kind = (attributes.get("type") or "").lower() if tag in typed else ""
            kept.append(element((order, node, kind)))
        if not attributes:
            continue
        classes = attributes.get("class")
        kinds = class_kinds[classes] if classes else ()
        # an element with a class only, the most common one, needs no further check
        if len(attributes) > 1 or not classes:
            identifier = attributes.get("id")
            if identifier and (also := id_kinds[identifier]):
                kinds = tuple(dict.fromkeys((*kinds, *also)))
            if not is_plain(attributes):
                _collect_telling(found, element((order, node, "")), attributes, kinds)
                continue
        if kinds:
            named = element((order, node, _names(classes, attributes.get("id"))))
            for kind in kinds:
                by_kind[kind].append(named)
    for kept in (*by_tag.values(), *by_kind.values()):
        del kept[_MAX_KEPT:]
    del found.texts[_MAX_TEXTS:]
    return found


def _names(classes: str | None, identifier: str | None) -> str:
    return f"{classes or ''} {identifier or ''}"[:_MAX_NAMES].lower()


def _is_silent(node: LexborNode | None) -> bool:
    return node is not None and node.tag_id in _SILENT_TAGS


def anchors_near(tree: LexborHTMLParser, first: int, last: int) -> Iterator[Element]:
    """The links in a range of elements. Few pages need them, so the walk does not keep them."""
    order = -1
    for node in tree.root.traverse() if tree.root is not None else ():
        tag = node.tag_id
        order += tag != _COMMENT
        if order > last:
            return
        if tag == _ANCHOR and order >= first:
            yield Element(order, node)


def tag_id(tag: str) -> int:
    """The parser's ID of a tag, which is compared faster than its name."""
    element = LexborHTMLParser(f"<{tag}>").css_first(tag)
    assert element is not None, "the parser makes an element of every tag named here"
    return element.tag_id


def content_id(content: str) -> int:
    """The parser's ID of a node of this content: a text or a comment."""
    around = LexborHTMLParser(f"<p>{content}").css_first("p")
    assert around is not None
    assert around.first_child is not None
    return around.first_child.tag_id


_COMMENT = content_id("<!-- -->")
_TEXT = content_id("text")
_BODY = tag_id("body")
_ANCHOR = tag_id("a")
_SILENT_TAGS = frozenset(
    map(tag_id, ["script", "style", "option", "noscript", "textarea", "title"])
)
# of these, the type is kept
_TYPED = frozenset(map(tag_id, ["script", "input"]))
_LISTS = {
    tag_id(tag): name
    for tag, name in {
        "script": "scripts",
        "meta": "metas",
        "h1": "headings",
        "button": "buttons",
        "input": "inputs",
        "img": "images",
        "base": "bases",
        "link": "links",
    }.items()
}
_SKU_ATTRIBUTES = frozenset(
    ["data-sku", "data-product-id", "data-productid", "data-product_id", "data-item-id", "data-pid",
     "data-product-sku", "data-product_sku"]
)  # fmt: skip
_JSON_ATTRIBUTES = frozenset(
    ["data-product", "data-product_variations", "data-product-json", "data-props", "data-item",
     "data-product-data", "data-product-info", "data-product-details", "data-analytics",
     "data-analytics-product", "data-gtm", "data-gtm-product", "data-gtmdata", "data-ecommerce",
     "data-enhanced-ecommerce", "data-tracking", "data-tracking-data", "data-datalayer"]
)  # fmt: skip
_TEST_NAMES = (
    "data-testid",
    "data-test",
    "data-test-id",
    "data-automation",
    "data-qa",
    "data-auto",
    "data-hook",
    "data-cy",
)
BRAND_ATTRIBUTES = frozenset(
    ["data-brand", "data-product-brand", "data-item-brand", "data-brand-name", "data-manufacturer",
     "data-product-manufacturer", "data-vendor", "data-product-vendor"]
)  # fmt: skip
_MICRODATA = frozenset(["itemprop", "itemscope"])
_RDFA = frozenset(["typeof", "property"])
# attributes other than names that may say what an element describes
_TELLING = frozenset(
    [*_MICRODATA, *_RDFA, *_SKU_ATTRIBUTES, *BRAND_ATTRIBUTES, *_JSON_ATTRIBUTES, *_TEST_NAMES,
     "role"]
)  # fmt: skip


def _collect_telling(
    found: Elements, element: Element, attributes: dict[str, str | None], kinds: tuple[str, ...]
) -> None:
    """Collect an element with an attribute that describes its content."""
    order, node, _ = element
    telling = _TELLING.intersection(attributes)
    if "role" in telling and attributes["role"] == "button" and node.tag != "button":
        _keep(found.buttons, element)
    if len(telling) == 1 and "role" in telling and not kinds:
        return
    if not telling.isdisjoint(_MICRODATA):
        _keep(found.microdata, element)
    if not telling.isdisjoint(_RDFA) and ("typeof" in telling or node.tag != "meta"):
        _keep(found.rdfa, element)
    if not telling.isdisjoint(_JSON_ATTRIBUTES):
        _collect_json(found, attributes)
    if not telling.isdisjoint(_SKU_ATTRIBUTES):
        kinds = (*kinds, "skus")
    if not telling.isdisjoint(BRAND_ATTRIBUTES):
        kinds = (*kinds, "brands")
    # the names of the element for the shop's tests
    tests = [value for name in _TEST_NAMES if (value := attributes.get(name))]
    if kinds := (*kinds, *(kind for value in tests for kind in _CLASS_KINDS[value])):
        names = _names(attributes.get("class"), attributes.get("id"))
        names = " ".join((names, *tests))[:_MAX_NAMES].lower()
        for kind in dict.fromkeys(kinds):
            _keep(getattr(found, kind), Element(order, node, names))


def _collect_json(found: Elements, attributes: dict[str, str | None]) -> None:
    for name in _JSON_ATTRIBUTES:
        value = attributes.get(name)
        if value and value[0] in "{[" and len(found.json_attributes) < 20:
            found.json_attributes.append(value)


# parts of class names, in the languages of shops
_KINDS = (
    ("prices", r"pri[cx]e|\bprix|preis|precio|prezzo|pre[cç]o|\bprijs|\bcena|\bpris\b|amount|harga"
               r"|fiyat|kaina|\bcost\b|buynow|tarif"),
    ("stocks", r"stock|avail|inventory|sold-?_?out|dispon|\blager|dostupn|sklad|out-of|unavailab"),
    ("skus", r"sku|(?:product|item|article|art|prod)[-_]?(?:id|code|no|nr|num|ref)|referen"
             r"|\bmodel"),
    ("crumbs", r"crumb"),
    ("buys", r"add-?_?to-?_?(?:cart|bag|basket)|addtocart|buy-?_?now|buy-?_?button|btn-?buy"),
    ("brands", r"brand|manufactur|\bmarque|\bmarke|\bmarca|vendor|byline|znacka|vyrobce"
               r"|designer|product-{0,2}_?(?:maker|supplier)|caption-with-letter-spacing"),
    ("ratings", r"rating|review-?_?count|reviews-?_?count"),
)  # fmt: skip
_ANY_KIND = re.compile("|".join(pattern for _, pattern in _KINDS))
_EACH_KIND = tuple((kind, re.compile(pattern)) for kind, pattern in _KINDS)


# ids are many and rarely useful, so only their plainest words count
_ANY_ID = re.compile(r"pri[cx]|prezzo|stock|avail|sku|crumb|brand|byline|rating|product[-_]?id")
_MAX_REMEMBERED = 65_536


class _Kinds(dict[str, tuple[str, ...]]):
    """Cache of the kinds of names, which repeat within a page and over the pages of a shop."""

    def __init__(self, telling: re.Pattern[str], length: int) -> None:
        self._telling = telling
        self._length = length

    def __missing__(self, names: str) -> tuple[str, ...]:
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        lower = names[: self._length].lower()
        searched = _EACH_KIND if self._telling.search(lower) else ()
        kinds = tuple(kind for kind, pattern in searched if pattern.search(lower))
        if len(names) <= self._length:
            self[names] = kinds
        return kinds


# separate, so that ids generated for one page do not evict classes
_CLASS_KINDS = _Kinds(_ANY_KIND, 300)
_ID_KINDS = _Kinds(_ANY_ID, 100)


def _keep(kept: list[Element], element: Element) -> None:
    if len(kept) < _MAX_KEPT:
        kept.append(element)
